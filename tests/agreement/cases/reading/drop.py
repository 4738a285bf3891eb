# SPDX-License-Identifier: Apache-2.0
"""DROP (arXiv:1903.00161): numbers, dates and several spans."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from newskills.base.records import Row
from tests.agreement.cases.reading import replies
from tests.agreement.compare import ANSWERS, Comparison, Verdict
from tests.agreement.originals import loaded

_SPANS = (
    ["Tom Brady", "Aaron Rodgers"],
    ["12-yard", "45 yard"],
    ["the Bears", "a Packers fan", "Lions"],
    ["1,200", "3.5"],
    ["German", "Italian-born"],
)


def rows() -> Iterator[Row]:
    yield from replies.rows((*replies.GOLDS, "6 January 1871", "0.50", "-3", "1e3", "43-yard field goal"))
    for spans in _SPANS:
        for measure in ("em", "f1"):
            yield {"task": measure, "expected_answer": spans, "accepted_answers": []}


def forms(row: Row) -> Mapping[str, Any]:
    """Several spans are a list to the original, and a text to ours."""
    gold = row["expected_answer"]
    if isinstance(gold, str):
        return {form: _reply([text.removeprefix(replies.LABEL)]) for form, text in replies.forms(row).items()}
    lists = {
        "spans": gold,
        "spans reversed": list(reversed(gold)),
        "first span": gold[:1],
        "last span": gold[-1:],
        "a span more": [*gold, "Nobody"],
        "a span twice": [*gold, gold[0]],
        "another span": ["Nobody", *gold[1:]],
        "spans in small letters": [span.lower() for span in gold],
        "spans with words more": [f"{span} himself" for span in gold],
        "first words": [span.split()[0] for span in gold],
    }
    return {form: _reply(spans) for form, spans in lists.items()}


def _reply(spans: list[str]) -> Row:
    return {"generation": f"{replies.LABEL}{'; '.join(spans)}", "spans": spans}


def original(folder: Path) -> Verdict:
    """Needs numpy and scipy."""
    score = loaded(folder / "allennlp_rc" / "eval" / "drop_eval.py").get_metrics

    def verdict(row: Row, reply: Any) -> float:
        given = reply["spans"] if len(reply["spans"]) > 1 else reply["spans"][0]
        scores = [score(given, gold) for gold in (row["expected_answer"], *row["accepted_answers"])]
        return float(max(pair[row["task"] == "f1"] for pair in scores))

    return verdict


def ours(row: Row, reply: Any) -> float | None:
    return _DROP(row, reply["generation"])


_DROP = replies.ours({"measure": "drop"})
COMPARISON = Comparison(
    name="drop",
    benchmarks=("drop",),
    scorer="DROP `drop_eval.py`",
    compared=ANSWERS,
    repository="allenai/allennlp-reading-comprehension",
    rows=rows,
    forms=forms,
    original=original,
    ours=ours,
)
