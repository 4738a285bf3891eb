# SPDX-License-Identifier: Apache-2.0
"""IFEval (arXiv:2311.07911): its verifiers, as IFBench carries them on, on replies that keep and that do not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from newskills.base.records import Row
from tests.agreement.cases import ifbench
from tests.agreement.compare import WHOLE, Comparison, by_grader


def rows() -> Iterator[Row]:
    yield from ifbench.recorded("if")


def forms(row: Row) -> Mapping[str, str]:
    text = row["text"]
    return {"reply": text, "reply in small letters": text.lower(), "reply twice": f"{text}\n\n{text}"}


COMPARISON = Comparison(
    name="ifeval",
    benchmarks=("ifeval",),
    scorer="IFEval verifiers in IFBench",
    compared=WHOLE,
    repository="allenai/IFBench",
    rows=rows,
    forms=forms,
    original=ifbench.original,
    ours=by_grader("if", value="is_correct"),
    known=dict.fromkeys(
        ("change_case:english_lowercase/reply in small letters", "change_case:english_lowercase/reply twice"),
        "the original tells languages by random draws; ours always the same",
    ),
)
