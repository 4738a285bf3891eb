# SPDX-License-Identifier: Apache-2.0
"""Why the grader decided so: where the answer was taken from, and the rule that made two answers equal or different."""

from __future__ import annotations

import re

import msgspec

from newskills.base.records import Row
from newskills.view.records import as_text, gold_of
from newskills.view.rows import OUTCOME_NAMES, Head, outcome_of

HOW = {
    "box": "the last \\boxed{…} of the reply",
    "boxes": "several \\boxed{…} side by side, taken as a list",
    "regex": "the regular expression of the settings",
    "hashes": "the text behind ####",
    "tag": "the answer tag of the reply",
    "phrase": "a phrase such as “the answer is”",
    "closing": "the closing words of the reply",
    "number": "the last number of the reply",
    "field": "the field predicted_answer, as the record had it",
    "thinking": "nowhere: the reasoning never ended",
    "unclosed": "nowhere: the last box never closes",
    "none": "nowhere: the reply has no answer in a form that counts",
}
"""What the mathematics grader calls a place of the answer → what that is."""
RULES = {
    "exact": "both are numbers, and these were compared",
    "identical": "the texts are the same, character for character",
    "normalised": "the texts are the same once spaces and notation are set aside",
    "option": "both are letters of a choice",
    "time of day": "both are times of day",
    "value": "both were read as mathematics, and their values were compared",
    "words": "both are words",
    "modulo": "the remainders were compared",
    "within the tolerance": "the difference is within the tolerance of the settings",
    "another unit": "the units of measurement differ",
    "length": "one of them is too long to be compared as mathematics",
    "empty": "one of them is empty once notation is set aside",
    "prose": "the answer is prose, and the right one is not in it",
    "too big to compare symbolically": "the numbers are too large to be computed",
    "no answer": "no answer was found",
    "same text": "the texts are the same",
    "another text": "the texts differ",
}
"""What a grader calls its last step → what that means."""
_MOST_PLACES = 100_000
"""Places in longer words that are passed over: beyond, a reply is no text in which somebody names an answer."""
_WHY = re.compile(r"(?P<rule>.*?)(?: \((?P<how>\w+)\))?", re.DOTALL)


def verdict_of(row: Row, reply: str) -> Row:
    """Return what the record tells of its grading. Spans are [start, end) in UTF-16 units of `reply`."""
    why = as_text(row.get("why"))
    rule, how = why, None
    if match := _WHY.fullmatch(why):
        rule, how = match["rule"], match["how"]
    answer = as_text(row.get("predicted_answer"))
    answer_shown = answer if row.get("predicted_answer") is not None else None
    gold_field, gold = gold_of(row) or ("", None)
    gold_span = None
    if gold is not None and gold != answer:
        gold_span = answer_span(reply, gold)
    return {
        "outcome": OUTCOME_NAMES[outcome_of(msgspec.convert(row, Head))],
        "cause": row.get("outcome_cause"),
        "grader": as_text(row.get("grader")),
        "why": why,
        "taken_from": HOW.get(how or "", ""),
        "rule": RULES.get(rule.removesuffix(", in prose"), ""),
        "has_answer": "predicted_answer" in row,
        "answer": answer_shown,
        "gold": gold,
        "gold_field": gold_field,
        "answer_span": answer_span(reply, answer),
        "gold_span": gold_span,
        "judgement": as_text(row.get("judgement")),
        "error": as_text(row.get("detailed_error") or row.get("error")),
    }


def answer_span(reply: str, answer: str) -> list[int] | None:
    """Return where the answer stands: in the last box, else where the reply names it last as a word of its own."""
    answer = answer.strip()
    if not answer:
        return None
    place = answer_place(reply, answer)
    if place < 0:
        return None
    return _utf16_span(reply, place, len(answer))


def answer_place(reply: str, answer: str) -> int:
    """Return where the answer begins, in characters: in the last box that holds it alone, else where the reply names it
    last as a word of its own; -1 where it does not stand there."""
    start = reply.rfind(f"\\boxed{{{answer}}}")
    if start >= 0:
        return start + len("\\boxed{")
    last = reply.rfind(answer)
    for _ in range(_MOST_PLACES):
        if last < 0 or not _word_continues(reply, last, last + len(answer)):
            return last
        last = reply.rfind(answer, 0, last + len(answer) - 1)
    return -1


def _word_continues(text: str, start: int, end: int) -> bool:
    """Return whether a word goes on beyond either end."""
    return any(char.isalnum() or char == "_" for char in text[max(0, start - 1) : start] + text[end : end + 1])


def _utf16_span(text: str, start: int, length: int) -> list[int]:
    before = len(text[:start].encode("utf-16-le", "surrogatepass")) // 2
    return [before, before + len(text[start : start + length].encode("utf-16-le", "surrogatepass")) // 2]
