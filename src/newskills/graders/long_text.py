# SPDX-License-Identifier: Apache-2.0
"""Answers about long texts, where each task has a measure of its own (LongBench, InfiniteBench, BABILong)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from difflib import SequenceMatcher
from itertools import takewhile
from operator import eq
from typing import Literal, get_args

from newskills.base.reading.reply_text import after_thinking
from newskills.base.records import Row, Score
from newskills.graders.exact import final_answer
from newskills.graders.multichoice import MultichoiceGrader
from newskills.graders.reading.overlap import squad_score
from newskills.graders.reading.replies import no_answer_score, ungradable_score, verdict_score
from newskills.graders.reading.rouge import rouge_l, rouge_l_of_lines, rouge_l_of_sentences

Measure = Literal[
    "f1",
    "f1_characters",
    "rouge_l",
    "rouge_l_lines",
    "summary",
    "first_number",
    "last_number",
    "choice",
    "class",
    "count",
    "retrieval",
    "code",
    "contains",
    "sequence",
    "label",
]
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_POSITIVE = re.compile(r"\d+\.\d+|\d+")
_AT_THE_END = re.compile(r"(?<![\w.,])(-?\d{1,40})[^\w\-]{0,40}\Z", re.ASCII)
_INTEGER = re.compile(r"\d+")
_MARKS = re.compile(
    "[!-/:-@\\[-`{-~\uff01-\uff0d\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff64\u3001-\u3003\u300b-\u3011\u3014-\u301f"
    "\u3030\u303e\u303f\u2013\u2014\u2018\u2019\u201b-\u201f\u2026\u2027\ufe4f]"
)
"""The marks that InfiniteBench does not count; not among them is the first of the brackets of a book's title."""
_CHOICE = MultichoiceGrader()
_LONGEST_LINE = 2_000


class LongTextGrader:
    """Field written: `score` (0–1, by the record's `measure`; the best of all right answers), `predicted_answer`.

    f1              words of the final answer (characters of Chinese and Japanese)
    f1_characters   characters of the final answer
    rouge_l         longest common subsequence of words in the whole reply, as the package rouge-score (rougeL) has it
    rouge_l_lines   the same line by line (rougeLsum)
    summary         the same of distinct words, sentence by sentence, as the package rouge (rouge-l) has it
    first_number    the first number of the final answer, or of a reply that marks none, is the right one
    last_number     the final answer ends with the right number, or the reply that marks none does
    choice          the letter of the right one of the options `A`, `B`, …, as the grader `multichoice` reads replies
    class           the right class among `all_classes` that the reply names, shared by as many as it names
    count           the share of numbers in the reply that are the right one
    retrieval       the same of numbers of paragraphs
    code            likeness (difflib's ratio) of the first line that is neither a fence nor a comment
    contains        the right text occurs in the reply
    sequence        the share of leading numbers that are right
    label           the right one is all of `all_classes` that the first sentence names, but for those in `asked`
    """

    name = "long_text"
    version = "6"
    answer_keys = ("generation",)

    def gold_reply(self, record: Row) -> str | None:
        gold = (record.get("answers") or [record.get("expected_answer")])[0]
        if gold is None:
            return None
        return str(gold)

    def grade(self, record: Row) -> Score:
        stamp = f"{self.name}@{self.version}"
        golds = [
            str(gold) for gold in record.get("answers") or [record.get("expected_answer")] if gold is not None
        ]
        measure = str(record.get("measure"))
        if not golds or measure not in get_args(Measure):
            why = "the record has no expected_answer"
            if golds:
                why = f"there is no measure '{measure}'"
            return ungradable_score(stamp, why, {"predicted_answer": None, "score": None})
        reply = after_thinking(str(record.get("generation") or "")) or ""
        if not (text := reply.strip()):
            return no_answer_score(stamp, record, {"predicted_answer": None, "score": 0.0})
        answer = reply if measure == "code" else text
        if measure in _READ:
            answer = _READ[measure](text, record)
        if not answer:
            return no_answer_score(stamp, record, {"predicted_answer": None, "score": 0.0})
        value = max(_MEASURES[measure](answer, gold, record) for gold in golds)
        fields: Row = {"predicted_answer": answer, "score": value}
        return verdict_score(stamp, value == 1, fields, f"{measure} {value:.2f}", value)


def _score_f1(answer: str, gold: str, record: Row) -> float:
    return squad_score(answer, gold, str(record.get("language", "en")))[1]


def _rouge_l(answer: str, gold: str, record: Row) -> float:
    return rouge_l(answer, gold, str(record.get("language", "en")))


def _f1_characters(answer: str, gold: str, record: Row) -> float:
    first, second = (
        [char for char in text.lower() if not (char.isspace() or _MARKS.match(char))] for text in (answer, gold)
    )
    common = (Counter(first) & Counter(second)).total()
    return 2 * common / max(len(first) + len(second), 1)


def _score_same(answer: str, gold: str, record: Row) -> float:
    """Return 1.0 for the same text or, where one of two numbers has a point, the same value; else 0.0."""
    if "." in answer + gold:
        numbers = [float(text) for text in (answer, gold) if _NUMBER.fullmatch(text)]
    else:
        numbers = []
    return float(answer == gold or (len(numbers) == 2 and numbers[0] == numbers[1]))


def _score_class(answer: str, gold: str, record: Row) -> float:
    named = {name for name in record.get("all_classes") or [gold] if name in answer}
    named -= {name for name in named if any(name != other and name in other for other in named) and name != gold}
    if gold not in named:
        return 0.0
    return 1 / len(named)


def _score_count(answer: str, gold: str, record: Row) -> float:
    numbers = Counter(_INTEGER.findall(answer))
    wanted = _INTEGER.findall(gold)
    if not wanted or not numbers:
        return 0.0
    return numbers[wanted[0]] / numbers.total()


def _score_code(answer: str, gold: str, record: Row) -> float:
    lines = (
        line for line in answer.lstrip("\n").split("\n") if not any(mark in line for mark in ("`", "#", "//"))
    )
    first = next(lines, "")[:_LONGEST_LINE]
    return round(100 * SequenceMatcher(None, first, gold[:_LONGEST_LINE]).ratio()) / 100


def _score_contained(answer: str, gold: str, record: Row) -> float:
    pattern = re.escape(" ".join(gold.split()).casefold())
    text = " ".join(answer.split()).casefold()
    if gold[:1].isalnum() and gold.isascii():
        whole = rf"(?<![\w.]){pattern}(?![\w])"
    else:
        whole = pattern
    return float(re.search(whole, text) is not None)


def _score_sequence(answer: str, gold: str, record: Row) -> float:
    ours, theirs = ([float(number) for number in _NUMBER.findall(text)] for text in (answer, gold))
    right = sum(takewhile(bool, map(eq, ours, theirs)))
    return float(right / max(len(theirs), 1))


def _score_label(answer: str, gold: str, record: Row) -> float:
    sentence = answer.lower().partition(".")[0].partition("<context>")[0].partition("<example>")[0]
    labels = {str(label).lower() for label in record.get("all_classes") or [gold]}
    question = str(record.get("asked")).lower()
    named = {label for label in labels if label in sentence and label not in question}
    return float(named == {gold.lower()})


def _first_number(text: str, record: Row) -> str:
    if match := _POSITIVE.search(final_answer(text) or text):
        return match[0]
    return ""


def _last_number(text: str, record: Row) -> str:
    if match := _AT_THE_END.search((final_answer(text) or text).replace("\u2212", "-")):
        return str(int(match[1]))
    return ""


def _read_option(text: str, record: Row) -> str:
    return str(_CHOICE.grade({**record, "generation": text}).fields["predicted_answer"] or "")


def _marked_answer(text: str, record: Row) -> str:
    return final_answer(text) or text


_READ: dict[str, Callable[[str, Row], str]] = {
    **dict.fromkeys(("f1", "f1_characters"), _marked_answer),
    "first_number": _first_number,
    "last_number": _last_number,
    "choice": _read_option,
}
"""Measure → what it looks at of a reply; of others, the whole."""
_MEASURES: dict[str, Callable[[str, str, Row], float]] = {
    "f1": _score_f1,
    "f1_characters": _f1_characters,
    "rouge_l": _rouge_l,
    "rouge_l_lines": lambda answer, gold, record: rouge_l_of_lines(answer, gold),
    "summary": lambda answer, gold, record: rouge_l_of_sentences(answer, gold),
    "first_number": _score_same,
    "last_number": _score_same,
    "choice": _score_same,
    "class": _score_class,
    "count": _score_count,
    "retrieval": _score_count,
    "code": _score_code,
    "contains": _score_contained,
    "sequence": _score_sequence,
    "label": _score_label,
}
