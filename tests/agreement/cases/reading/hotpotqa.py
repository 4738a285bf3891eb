# SPDX-License-Identifier: Apache-2.0
"""HotpotQA (arXiv:1809.09600): an answer, the sentences that support it, and both together."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from newskills.base.records import Row
from tests.agreement.cases.reading import replies
from tests.agreement.compare import ANSWERS, Comparison, Verdict
from tests.agreement.originals import loaded
from tests.graders.plain import plain_grader

_OURS = {
    "em": "answer_em",
    "f1": "answer_f1",
    **{name: name for name in ("sp_em", "sp_f1", "joint_em", "joint_f1")},
}
_FACTS = [["Ed Wood", 0], ["Scott Derrickson", 0], ["Scott Derrickson", 3]]
_GOLDS = ("yes", "no", "The Beatles", "July 4, 1776", "rock 'n' roll", "noanswer", "1,500", "U.S. Navy")
_ANSWERS = ("the same", "a word more", "with an article", "first word", "another", "no", "sentence", "in quotes")


def rows() -> Iterator[Row]:
    for gold in _GOLDS:
        for measure in _OURS:
            yield {"task": measure, "expected_answer": gold, "accepted_answers": [], "supporting_facts": _FACTS}


def forms(row: Row) -> Mapping[str, Any]:
    facts = {
        "all facts": _FACTS,
        "one fact": _FACTS[:1],
        "a fact more": [*_FACTS, ["Ed Wood", 1]],
        "a fact twice": [*_FACTS, _FACTS[0]],
        "other facts": [["Ed Wood", 7]],
        "no facts": [],
    }
    answers = replies.forms(row)
    return {
        f"{form}, {kind}": json.dumps(
            {"answer": answers[form].removeprefix(replies.LABEL), "supporting_facts": named}
        )
        for place, form in enumerate(_ANSWERS)
        for kind, named in (list(facts.items()) if place < 2 else [list(facts.items())[place % len(facts)]])
    }


def original(folder: Path) -> Verdict:
    """The module wants ujson, or json by that name."""
    script = loaded(folder / "hotpot_evaluate_v1.py")
    place = folder / "compared"
    place.mkdir(exist_ok=True)

    def verdict(row: Row, reply: Any) -> float:
        given = json.loads(reply)
        gold = {"_id": "1", "answer": row["expected_answer"], "supporting_facts": row["supporting_facts"]}
        (place / "gold").write_text(json.dumps([gold]))
        (place / "given").write_text(
            json.dumps({"answer": {"1": given["answer"]}, "sp": {"1": given["supporting_facts"]}})
        )
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            script.eval(place / "given", place / "gold")
        return float(json.loads(printed.getvalue().replace("'", '"'))[row["task"]])

    return verdict


def ours(row: Row, reply: Any) -> float:
    return float(_GRADER.grade({**row, "generation": reply}).fields[_OURS[row["task"]]])


_GRADER = plain_grader("hotpotqa", {})
COMPARISON = Comparison(
    name="hotpotqa",
    benchmarks=("hotpotqa", "hotpotqa_closedbook"),
    scorer="HotpotQA `hotpot_evaluate_v1.py`",
    compared=ANSWERS,
    repository="hotpotqa/hotpot",
    rows=rows,
    forms=forms,
    original=original,
    ours=ours,
)
