# SPDX-License-Identifier: Apache-2.0
"""Numbers, lists and words as the leaderboard of GAIA compares them (Mialon et al. 2023, arXiv:2311.12983)."""

from __future__ import annotations

import re
import string

from newskills.base.records import Row, Score
from newskills.graders.exact import final_answer
from newskills.graders.reading.replies import no_answer_score, ungradable_score, verdict_score, visible_reply

_LABEL = re.compile(r"final answer[\s*_]{0,4}:[\s*_]{0,4}([^\n]+)", re.IGNORECASE)
_SEPARATORS = re.compile("[,;]")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_NO_SIGNS = str.maketrans("", "", "$%,")


class GaiaGrader:
    """The line after "FINAL ANSWER:", else the box or "Answer: …", else a reply of one line.

    A right answer that is a number is compared as a number, without $, % and commas; one with commas or semicolons item
    by item, in order; any other without blanks, case and punctuation. Fields written: `predicted_answer`,
    `symbolic_correct`.
    """

    name = "gaia"
    version = "2"
    answer_keys = ("generation",)
    gold_is_text = True

    def gold_reply(self, record: Row) -> str | None:
        gold = record.get("expected_answer")
        if gold is None:
            return None
        return f"FINAL ANSWER: {gold}"

    def same_replies(self, record: Row) -> list[str]:
        """Return replies in other case, marked, and after other words."""
        gold = str(record.get("expected_answer"))
        return [
            f"I looked it up.\n\n**FINAL ANSWER:** {gold.upper()}",
            f"final answer: {gold.lower()}",
            f"FINAL ANSWER:   {gold}  ",
        ]

    def same_answer(self, left: str, right: str) -> bool:
        """Return whether one is right by the leaderboard's rules where the other is the right answer.

        Of `1200` and `$1,200` the rules take only the first for a number.
        """
        return same_answer(left, right) or same_answer(right, left)

    def grade(self, record: Row) -> Score:
        stamp = f"{self.name}@{self.version}"
        gold = record.get("expected_answer")
        if gold is None:
            why = "the record has no expected_answer"
            return ungradable_score(stamp, why, {"predicted_answer": None, "symbolic_correct": None})
        answer = given_answer(visible_reply(str(record.get("generation") or "")))
        if not answer:
            return no_answer_score(stamp, record, {"predicted_answer": None, "symbolic_correct": False})
        correct = same_answer(answer, str(gold))
        fields: Row = {"predicted_answer": answer, "symbolic_correct": correct}
        return verdict_score(stamp, correct, fields, "same" if correct else "another answer")


def given_answer(text: str | None) -> str | None:
    """Return the answer that the reply gives; None where it gives none."""
    if not text:
        return None
    if labelled := _LABEL.findall(text):
        return str(labelled[-1]).strip().removesuffix("**").strip() or None
    return final_answer(text)


def same_answer(answer: str, gold: str) -> bool:
    """Return whether the answer is right by the rules of the leaderboard's scorer.

    >>> same_answer("$1,200", "1200"), same_answer("red, blue", "blue, red"), same_answer("Saint-Malo", "saint malo")
    (True, False, True)
    """
    if (number := _read_float(gold)) is not None:
        return _read_number(answer) == number
    if not _SEPARATORS.search(gold):
        return _compact_text(answer).translate(_NO_PUNCTUATION) == _compact_text(gold).translate(_NO_PUNCTUATION)
    items, golds = _SEPARATORS.split(answer), _SEPARATORS.split(gold)
    return len(items) == len(golds) and all(
        _read_number(item) == number
        if (number := _read_float(wanted)) is not None
        else _compact_text(item) == _compact_text(wanted)
        for item, wanted in zip(items, golds, strict=True)
    )


def _read_float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _read_number(text: str) -> float:
    number = _read_float(text.translate(_NO_SIGNS))
    if number is None:
        return float("inf")
    return number


def _compact_text(text: str) -> str:
    return re.sub(r"\s", "", text).lower()
