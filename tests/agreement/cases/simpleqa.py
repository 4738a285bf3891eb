# SPDX-License-Identifier: Apache-2.0
"""SimpleQA (arXiv:2411.04368): how the replies of its judge are read."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from newskills.base.records import Row
from tests.agreement.compare import VERDICTS, Comparison, Verdict
from tests.graders.plain import plain_grader

_VERDICTS = {"A": "CORRECT", "B": "INCORRECT", "C": "NOT_ATTEMPTED"}
_WORTH = {"correct": 1.0, "incorrect": 0.0, "not_attempted": 0.5}
_NONE = -1.0
"""In place of a score: the judge's text has no verdict."""
_REMARKS = (
    "the names agree",
    "the gold target is a year",
    "the predicted answer hedges",
    "one of two names is missing",
    "it gives the same number",
    "the model did not say",
    "there is no contradiction",
    "it differs in the first name",
    "the question has one answer",
    "the date is not the same",
)


def rows() -> Iterator[Row]:
    for letter in _VERDICTS:
        for remark in _REMARKS:
            yield {"letter": letter, "remark": remark}


def forms(row: Row) -> Mapping[str, str]:
    letter, remark = row["letter"], row["remark"]
    word = _VERDICTS[letter]
    return {
        "letter": letter,
        "letter, point": f"{letter}.",
        "letter in brackets": f"({letter})",
        "letter in bold": f"**{letter}**",
        "letter in code": f"`{letter}`",
        "letter, blank lines": f"\n {letter} \n",
        "letter and word": f"{letter}: {word}",
        "letter, then why": f"{letter}\n\nwhy: {remark}",
        "letter in a box": f"\\boxed{{{letter}}}",
        "label": f"grade: {letter}",
        "why, then letter": f"{remark}\n{letter}",
        "word": word,
        "letter in a tag": f"<grade>{letter}</grade>",
        "letter, tick": f"✅ {letter}",
        "option": f"Option {letter}",
        "graded as": f"{remark}, so it is graded as {letter}.",
        "letter, why": f"{letter}. {remark.capitalize()}.",
        "nothing": remark,
    }


def original(folder: Path) -> Verdict:
    """Needs pandas, numpy, jinja2, requests and tqdm."""
    sys.path.insert(0, str(folder.parent))
    grade = importlib.import_module(f"{folder.name}.simpleqa_eval").SimpleQAEval.grade_sample

    def verdict(row: Row, reply: Any) -> float:
        judge = _Judge(reply)
        return _WORTH[_VERDICTS[grade(SimpleNamespace(grader_model=judge), "", "", "")].lower()]

    return verdict


class _Judge:
    """A model that always says the same."""

    def __init__(self, text: str) -> None:
        self._text = text

    def _pack_message(self, content: str, role: str) -> Row:
        return {"content": content, "role": role}

    def __call__(self, messages: Any) -> Any:
        return SimpleNamespace(response_text=self._text)


def ours(row: Row, reply: Any) -> float:
    verdict = plain_grader("verdict", {}).grade({"judgement": reply}).fields["verdict"]
    return _NONE if verdict is None else _WORTH[verdict]


COMPARISON = Comparison(
    name="simpleqa",
    benchmarks=("simpleqa",),
    scorer="simple-evals `simpleqa_eval.py`, reading of the judge",
    compared=VERDICTS,
    repository="openai/simple-evals",
    rows=rows,
    forms=forms,
    original=original,
    ours=ours,
    known={
        "word": "the original takes the first A, B or C of the text: `CORRECT` is C, `NOT_ATTEMPTED` is A",
        "nothing": "the original counts a text without a verdict as not attempted; ours leaves the sample unscored",
    },
)
