# SPDX-License-Identifier: Apache-2.0
"""MT-Bench (arXiv:2306.05685): the mark in the text of a judge."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from newskills.base.records import Row
from tests.agreement.compare import VERDICTS, Comparison, Verdict
from tests.agreement.originals import defined
from tests.graders.plain import plain_grader

_WHY = "The answer is helpful and mostly correct, but it lacks depth.\n\n"
_READ = (
    *(
        "as wanted",
        "alone",
        "first",
        "in bold",
        "bold within",
        "point",
        "single brackets",
        "single brackets in bold",
    ),
    *("reference before", "decimal", "heading", "twice", "another after it", "code", "dollars", "thought before"),
)
_MARKS = ("1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "7.5", "8.5", "9.5", "6.25", "10.0", "0")


def rows() -> Iterator[Row]:
    for mark in _MARKS:
        yield {"task": "1 to 10" if 1 <= float(mark) <= 10 else "outside", "mark": mark}


def forms(row: Row) -> Mapping[str, Any]:
    mark = row["mark"]
    texts = {
        "as wanted": f"{_WHY}Rating: [[{mark}]]",
        "alone": f"[[{mark}]]",
        "first": f"Rating: [[{mark}]]\n\n{_WHY}",
        "in bold": f"{_WHY}**Rating: [[{mark}]]**",
        "bold within": f"{_WHY}Rating: **[[{mark}]]**",
        "point": f"{_WHY}My rating is [[{mark}]].",
        "single brackets": f"{_WHY}Rating: [{mark}]",
        "single brackets in bold": f"{_WHY}**Rating:** [{mark}]",
        "reference before": f"As said in [2], it is fine. Rating: [[{mark}]]",
        "of ten": f"{_WHY}Rating: {mark}/10",
        "of ten in brackets": f"{_WHY}Rating: [[{mark}/10]]",
        "without brackets": f"{_WHY}Rating: {mark}",
        "decimal": f"{_WHY}Rating: [[{mark.partition('.')[0]}.0]]",
        "heading": f"### Rating\n\n[[{mark}]]",
        "twice": f"Rating: [[{mark}]]\n{_WHY}Rating: [[{mark}]]",
        "another after it": f"Rating: [[3]]\n{_WHY}Rating: [[{mark}]]",
        "blanks": f"{_WHY}Rating: [[ {mark} ]]",
        "code": f"{_WHY}`[[{mark}]]`",
        "dollars": f"{_WHY}$[[{mark}]]$",
        "nothing": _WHY,
        "cut off": f"{_WHY}Rating: [[{mark}",
        "thought before": f"<think>Perhaps [[3]]?</think>{_WHY}Rating: [[{mark}]]",
    }
    return {form: {"judgement": text} for form, text in texts.items()}


def ours(row: Row, reply: Any) -> float | None:
    """Marks as shares of ten; -1 for none."""
    ratings = plain_grader("rating", {}).grade(reply).fields["ratings"]
    return -1.0 if ratings["all"] is None else ratings["all"] / 10


def original(folder: Path) -> Verdict:
    patterns = defined(
        folder / "fastchat" / "llm_judge" / "common.py", "one_score_pattern", "one_score_pattern_backup", re=re
    )

    def verdict(row: Row, reply: Any) -> float:
        text = reply["judgement"]
        match = patterns.one_score_pattern.search(text) or patterns.one_score_pattern_backup.search(text)
        return ast.literal_eval(match[1]) / 10 if match else -1.0

    return verdict


COMPARISON = Comparison(
    name="mt-bench",
    benchmarks=("mt-bench",),
    scorer="FastChat `llm_judge/common.py`, reading of the judge",
    compared=VERDICTS,
    repository="lm-sys/FastChat",
    rows=rows,
    forms=forms,
    original=original,
    ours=ours,
    known={
        "1 to 10/another after it": "the original takes the first mark, ours the last",
        "1 to 10/thought before": "the original takes the first mark, thoughts included",
        **dict.fromkeys((f"outside/{form}" for form in _READ), "the original takes any number for a mark"),
    },
)
