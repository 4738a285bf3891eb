# SPDX-License-Identifier: Apache-2.0
"""Answers of LegalBench, compared as its authors do by task (Guha et al. 2023, arXiv:2308.11462; evaluation.py)."""

from __future__ import annotations

import re
import string
from collections.abc import Callable

from newskills.base.records import Row, Score
from newskills.graders.reading.replies import no_answer_score, ungradable_score, verdict_score, visible_reply
from newskills.graders.reading.stems import stem_word

NAMES, LABEL = "names", "label"
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_DIGITS = re.compile(r"\d+")


def plain_words(text: str) -> str:
    """Return `text` in small letters, without punctuation.

    >>> plain(" De facto merger, ")
    'de facto merger'
    """
    return text.translate(_PUNCTUATION).strip().lower()


def amount_is_near(reply: str, gold: str) -> bool:
    """Return whether the first number of the reply is within a tenth of the right one; points and commas belong to
    numbers.

    Raises ValueError for a right answer that is no whole number of dollars.
    """
    number = _DIGITS.search(reply.replace(",", "").replace(".", ""))
    amount = int(number[0]) if number else 0
    return abs(amount / (int(gold.replace("$", "")) + 0.1) - 1.0) < 0.1


def shares_a_term(reply: str, gold: str) -> bool:
    """Return whether one of the terms between commas is the same in both, by its stem."""
    return bool(
        {stem_word(plain_words(term)) for term in reply.split(",")}
        & {stem_word(plain_words(term)) for term in gold.split(",")}
    )


def name_counts(reply: str, gold: str) -> tuple[int, int, int]:
    """Count (right, superfluous, missing) names, which commas part.

    What is left of the reply counts as superfluous again for each right name, as in the authors' program.
    """
    left = [plain_words(name) for name in reply.split(",")]
    right = superfluous = missing = 0
    for name in map(plain_words, gold.split(",")):
        place = next((at for at, entry in enumerate(left) if name in entry), None)
        if place is None:
            missing += 1
        else:
            right += 1
            del left[place]
        superfluous += len(left)
    return right, superfluous, missing


_SAME: dict[str, Callable[[str, str], bool]] = {
    LABEL: lambda reply, gold: plain_words(reply) == plain_words(gold),
    "amount": amount_is_near,
    "contains": lambda reply, gold: plain_words(gold) in plain_words(reply),
    "term": shares_a_term,
    NAMES: lambda reply, gold: name_counts(reply, gold)[2] == 0 and reply.count(",") <= gold.count(","),
}
MEASURES = tuple(_SAME)


class LegalGrader:
    """`measure` of a row says how the reply is compared with `expected_answer`: `label`, `amount`, `contains`, `term`,
    `names`. Fields written: `symbolic_correct`; for names also `name_counts`, of which the task's F1 is made."""

    name = "legalbench"
    version = "2"
    answer_keys = ("generation",)
    gold_is_text = True

    def gold_reply(self, record: Row) -> str | None:
        gold = record.get("expected_answer")
        if gold is None:
            return None
        return str(gold)

    def same_replies(self, record: Row) -> list[str]:
        """Return the right answer in capitals, and with a full stop."""
        gold = str(record["expected_answer"])
        return [gold.upper(), f"  {gold}."]

    def grade(self, record: Row) -> Score:
        stamp = f"{self.name}@{self.version}"
        gold, measure = record.get("expected_answer"), str(record.get("measure"))
        if gold is None or measure not in _SAME:
            if gold is None:
                why = "the record has no expected_answer"
            else:
                why = f"there is no measure '{measure}'"
            return ungradable_score(stamp, why, {"symbolic_correct": None})
        reply = visible_reply(str(record.get("generation") or "")) or ""
        fields: Row = {"symbolic_correct": False}
        if measure == NAMES:
            fields["name_counts"] = list(name_counts(reply, str(gold)))
        if not reply:
            return no_answer_score(stamp, record, fields)
        try:
            correct = _SAME[measure](reply, str(gold))
        except ValueError as error:
            return ungradable_score(stamp, str(error), {"symbolic_correct": None})
        return verdict_score(stamp, correct, fields | {"symbolic_correct": correct}, f"compared as {measure}")
