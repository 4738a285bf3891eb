# SPDX-License-Identifier: Apache-2.0
"""Answers about long texts, where each task has a measure of its own (LongBench, InfiniteBench, BABILong)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from typing import Literal, get_args

from newskills.base.records import Row, Score
from newskills.graders.reading.overlap import squad_score, squad_tokens
from newskills.graders.reading.replies import after_thinking, decided, unanswered, unscored
from newskills.graders.short_answer import short_answer

Measure = Literal[
    "f1", "rouge_l", "summary", "class", "count", "retrieval", "code", "contains", "sequence", "label"
]
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_LATIN_WORD = re.compile(r"[a-z0-9]+")
_INTEGER = re.compile(r"\d+")
_MOST_TOKENS, _LONGEST_LINE = 4_000, 2_000


class LongTextGrader:
    """Field written: `score` (0–1, by the record's `measure`; the best of all right answers), `predicted_answer`.

    f1          words of the final answer (characters of Chinese and Japanese)
    rouge_l     longest common subsequence of words in the whole reply, as the package rouge-score (rougeL) has it
    summary     the same of distinct words, sentence by sentence, as the package rouge (rouge-l) has it
    class       the right class among `all_classes` that the reply names, shared by as many as it names
    count       the share of numbers in the reply that are the right one
    retrieval   the same of numbers of paragraphs
    code        likeness (difflib's ratio) of the first line that is neither a fence nor a comment
    contains    the right text occurs in the reply
    sequence    the share of leading numbers that are right
    label       the right one is all of `all_classes` that the first sentence names, but for those in `asked`
    """

    name = "long_text"
    version = "4"

    def gold_reply(self, record: Row) -> str | None:
        golds = record.get("answers") or [record.get("expected_answer")]
        return None if golds[0] is None else str(golds[0])

    def grade(self, record: Row) -> Score:
        stamp = f"{self.name}@{self.version}"
        golds = [
            str(gold) for gold in record.get("answers") or [record.get("expected_answer")] if gold is not None
        ]
        measure = str(record.get("measure"))
        if not golds or measure not in get_args(Measure):
            why = "the record has no expected_answer" if not golds else f"there is no measure '{measure}'"
            return unscored(stamp, why, {"predicted_answer": None, "score": None})
        reply = after_thinking(str(record.get("generation") or "")) or ""
        if not (text := reply.strip()):
            return unanswered(stamp, record, {"predicted_answer": None, "score": 0.0})
        answer = (short_answer(text) if measure == "f1" else reply if measure == "code" else text) or text
        value = max(_MEASURES[measure](answer, gold, record) for gold in golds)
        fields: Row = {"predicted_answer": answer, "score": value}
        return decided(stamp, value == 1, fields, f"{measure} {value:.2f}", value)


def _f1(answer: str, gold: str, record: Row) -> float:
    return squad_score(answer, gold, str(record.get("language", "en")))[1]


def _rouge_l(answer: str, gold: str, record: Row) -> float:
    """Lin 2004; of English, letters and digits are words, of other languages `squad_tokens`."""
    language = str(record.get("language", "en"))
    first, second = (
        (_LATIN_WORD.findall(text.lower()) if language == "en" else squad_tokens(text, language))[:_MOST_TOKENS]
        for text in (answer, gold)
    )
    common = longest_common(first, second)
    return 2 * common / (len(first) + len(second)) if common else 0.0


def _summary(answer: str, gold: str, record: Row) -> float:
    ours, theirs = _sentences(answer), _sentences(gold)
    if not ours or not theirs:
        return 0.0
    common = {word for right in theirs for line in ours for word in _common_words(right, line)}
    distinct = [len({word for sentence in sentences for word in sentence}) for sentences in (ours, theirs)]
    return 2 * len(common) / sum(distinct)


def _sentences(text: str) -> list[list[str]]:
    """Words of the parts between full stops; a part of blanks alone is one empty word, as in the package."""
    sentences: list[list[str]] = []
    room = _MOST_TOKENS
    for part in text.split("."):
        if part and room > 0:
            sentences.append(part.split()[:room] or [""])
            room -= len(sentences[-1])
    return sentences


def _common_words(first: Sequence[str], second: Sequence[str]) -> set[str]:
    """The words of a longest common subsequence; of several, the one whose words stand last in `second`."""
    rows = _rows(first, second)
    common: set[str] = set()
    at, other = len(first), len(second)
    while at and other:
        if first[at - 1] == second[other - 1]:
            common.add(first[at - 1])
            at, other = at - 1, other - 1
        elif _length(rows[other], at - 1) > _length(rows[other - 1], at):
            at -= 1
        else:
            other -= 1
    return common


def _length(row: int, size: int) -> int:
    """Of the longest common subsequence with the first `size` tokens."""
    return size - (row & ((1 << size) - 1)).bit_count()


def longest_common(first: Sequence[str], second: Sequence[str]) -> int:
    """Length of the longest common subsequence: O(len(first) · len(second) / 64)."""
    return _length(_rows(first, second)[-1], len(first))


def _rows(first: Sequence[str], second: Sequence[str]) -> list[int]:
    """The table of longest common subsequences, by sets of bits (Hyyrö 2004); a bit is 0 where the length grows."""
    places: dict[str, int] = {}
    for at, token in enumerate(first):
        places[token] = places.get(token, 0) | 1 << at
    full = (1 << len(first)) - 1
    rows = [full]
    for token in second:
        row = rows[-1]
        met = row & places.get(token, 0)
        rows.append(((row + met) | (row - met)) & full)
    return rows


def _class(answer: str, gold: str, record: Row) -> float:
    named = {name for name in record.get("all_classes") or [gold] if name in answer}
    named -= {name for name in named if any(name != other and name in other for other in named) and name != gold}
    return 1 / len(named) if gold in named else 0.0


def _count(answer: str, gold: str, record: Row) -> float:
    numbers = Counter(_INTEGER.findall(answer))
    wanted = _INTEGER.findall(gold)
    return numbers[wanted[0]] / numbers.total() if wanted and numbers else 0.0


def _code(answer: str, gold: str, record: Row) -> float:
    lines = (
        line for line in answer.lstrip("\n").split("\n") if not any(mark in line for mark in ("`", "#", "//"))
    )
    first = next(lines, "")[:_LONGEST_LINE]
    return round(100 * SequenceMatcher(None, first, gold[:_LONGEST_LINE]).ratio()) / 100


def _contains(answer: str, gold: str, record: Row) -> float:
    pattern = re.escape(" ".join(gold.split()).casefold())
    text = " ".join(answer.split()).casefold()
    whole = rf"(?<![\w.]){pattern}(?![\w])" if gold[:1].isalnum() and gold.isascii() else pattern
    return float(re.search(whole, text) is not None)


def _sequence(answer: str, gold: str, record: Row) -> float:
    ours, theirs = _NUMBER.findall(answer), _NUMBER.findall(gold)
    right = 0
    while right < min(len(ours), len(theirs)) and ours[right] == theirs[right]:
        right += 1
    return right / len(theirs) if theirs else 0.0


def _label(answer: str, gold: str, record: Row) -> float:
    sentence = answer.lower().partition(".")[0].partition("<context>")[0].partition("<example>")[0]
    labels = {str(label).lower() for label in record.get("all_classes") or [gold]}
    question = str(record.get("asked")).lower()
    named = {label for label in labels if label in sentence and label not in question}
    return float(named == {gold.lower()})


_MEASURES: dict[str, Callable[[str, str, Row], float]] = {
    "f1": _f1,
    "rouge_l": _rouge_l,
    "summary": _summary,
    "class": _class,
    "count": _count,
    "retrieval": _count,
    "code": _code,
    "contains": _contains,
    "sequence": _sequence,
    "label": _label,
}
