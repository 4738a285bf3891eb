# SPDX-License-Identifier: Apache-2.0
"""Short answers about long conversations: F1 of stemmed words (LoCoMo: Maharana et al. 2024, arXiv:2402.17753)."""

from __future__ import annotations

import re
import string
from collections import Counter

from newskills.base.records import Row, Score
from newskills.graders.reading.replies import no_answer_score, ungradable_score, verdict_score, visible_reply
from newskills.graders.reading.stems import stem_word

ADVERSARIAL = "adversarial"
NOTHING = "No information available"
_ABSTAINS = ("no information available", "not mentioned")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_SMALL = re.compile(r"\b(?:a|an|the|and)\b")


class MemoryGrader:
    """`question_type` says how the reply is compared with `expected_answer`.

    `multi-hop`: the items between commas, the best F1 for each right one; `commonsense`: only what stands before the
    first semicolon; `adversarial`: the reply says that it is not mentioned, or that there is no information. Fields
    written: `f1`, `symbolic_correct` (the same); correct is an F1 of 1.
    """

    name = "memory"
    version = "2"
    answer_keys = ("generation",)
    gold_is_text = True

    def gold_reply(self, record: Row) -> str | None:
        gold = record.get("expected_answer")
        if gold is None:
            return None
        return _compared_gold(str(gold), str(record.get("question_type")))

    def same_replies(self, record: Row) -> list[str]:
        """Return the right answer in capitals, and with a full stop."""
        gold = _compared_gold(str(record.get("expected_answer")), str(record.get("question_type")))
        return [gold.upper(), f"  {gold}."]

    def grade(self, record: Row) -> Score:
        stamp = f"{self.name}@{self.version}"
        gold = record.get("expected_answer")
        if gold is None:
            return ungradable_score(
                stamp, "the record has no expected_answer", {"f1": None, "symbolic_correct": None}
            )
        answer = visible_reply(str(record.get("generation") or ""))
        if not answer:
            return no_answer_score(stamp, record, {"f1": 0.0, "symbolic_correct": 0.0})
        value = memory_score(answer, str(gold), str(record.get("question_type")))
        fields: Row = {"f1": value, "symbolic_correct": value}
        return verdict_score(stamp, value == 1.0, fields, f"F1 {value:.2f}", value)


def memory_score(answer: str, gold: str, kind: str) -> float:
    """Return the score of the answer, 0–1."""
    if kind == ADVERSARIAL:
        return float(any(phrase in answer.lower() for phrase in _ABSTAINS))
    if kind == "multi-hop":
        items = answer.split(",")
        wanted = gold.split(",")
        return sum(max(stemmed_f1(item, right) for item in items) for right in wanted) / len(wanted)
    return stemmed_f1(answer, _compared_gold(gold, kind))


def _compared_gold(gold: str, kind: str) -> str:
    if kind == "commonsense":
        return gold.partition(";")[0]
    return gold


def stemmed_f1(answer: str, gold: str) -> float:
    """Return the F1 of stems, without punctuation and the words a, an, the, and.

    >>> stemmed_f1("the red foxes", "A red fox")
    1.0
    """
    first, second = _word_stems(answer), _word_stems(gold)
    common = (Counter(first) & Counter(second)).total()
    if common:
        return 2 * common / (len(first) + len(second))
    return 0.0


def _word_stems(text: str) -> list[str]:
    bare = text.replace(",", "").lower().translate(_PUNCTUATION)
    return [stem_word(word) for word in _SMALL.sub(" ", bare).split()]
