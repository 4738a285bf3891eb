# SPDX-License-Identifier: Apache-2.0
"""Answers about workbooks: letters, amounts, dates, words, and tables of them (DSBench, arXiv:2409.07703)."""

from __future__ import annotations

import re
from datetime import date
from decimal import Decimal
from typing import Any

import msgspec
from msgspec import Struct

from newskills.base.records import Row, Score
from newskills.graders.math.config import MathConfig
from newskills.graders.math.extraction import extract_by_policy
from newskills.graders.math.grader import MathGrader, policy_of
from newskills.graders.reading.replies import no_answer_score, ungradable_score, verdict_score
from newskills_math.normalise import strip_around, tidy_answer
from newskills_math.values.exact import plain_number

_LETTER = re.compile(r"[A-N]", re.IGNORECASE)
_AMOUNT = re.compile(
    r"(?P<sign>-?)(?:[$€£]|USD|EUR|GBP)? ?(?P<digits>(?:\d{1,3}(?:,\d{3}){1,12}|\d{1,40})(?:\.\d{0,40})?) ?"
    r"(?P<scale>k|m|mn|bn|b|thousand|million|billion)?",
    re.IGNORECASE,
)
_SCALES = {"k": 3, "thousand": 3, "m": 6, "mn": 6, "million": 6, "b": 9, "bn": 9, "billion": 9}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DATES = (
    re.compile(r"(?P<day>\d{1,2})(?:st|nd|rd|th)?[ -](?P<month>[a-z]{3})[a-z]{0,6}\.?,?[ -](?P<year>\d{4})"),
    re.compile(r"(?P<month>[a-z]{3})[a-z]{0,6}\.? (?P<day>\d{1,2})(?:st|nd|rd|th)?,? (?P<year>\d{4})"),
    re.compile(r"(?P<year>\d{4})-(?P<month>\d{1,2})-(?P<day>\d{1,2})(?:[t ]00:00(?::00)?)?"),
)
_DRESS = re.compile(r"\\(?:text|mathrm|textbf)\s?\{([^{}]{0,500})\}")
_LONGEST = 10_000


class DSBenchGrader:
    """Compares by what the record's `expected_answer` is, the last box of the reply (else what other forms tell).

    letter      case aside        amount    `$61,868`, `18217 k`: with or without the unit and the scale
    date        in any order with the month's name, or ISO         list    each part, in order
    table       JSON of the keys (more may be there), or its values in order
    anything else as mathematics. Fields: `predicted_answer`, `symbolic_correct`.
    """

    name = "dsbench"
    version = "3"
    answer_keys = ("generation", "predicted_answer")
    Config = MathConfig

    def __init__(self, config: MathConfig | None = None) -> None:
        self.config = config or MathConfig(relaxed_extraction=True)
        self._policy = policy_of(self.config)
        self._math = MathGrader(msgspec.structs.replace(self.config, use_predicted_answer_key=True))
        self._stamp = f"{self.name}@{self.version}"

    def preload(self) -> None:
        self._math.preload()

    def gold_reply(self, record: Row) -> str:
        return f"\\boxed{{{_value_text(record.get('expected_answer'))}}}"

    def same_replies(self, record: Row) -> list[str]:
        """Return replies with letters in lower case, and with amounts without their unit."""
        gold = str(record.get("expected_answer"))
        if _LETTER.fullmatch(gold):
            return [f"\\boxed{{{gold.lower()}}}", f"\\boxed{{\\text{{{gold}}}}}", f"The final answer is {gold}"]
        match = _AMOUNT.fullmatch(gold)
        if match and not match["sign"]:
            return [f"\\boxed{{{match['digits'].replace(',', '')}}}"]
        return []

    def grade(self, record: Row) -> Score:
        gold = record.get("expected_answer")
        if gold in (None, "", [], {}):
            return ungradable_score(self._stamp, "the record has no expected_answer", _score_fields(None, None))
        answer = self._answer_text(record)
        if answer is None or not answer.strip():
            return no_answer_score(self._stamp, record, _score_fields(None, False))
        right = self._is_same_answer(gold, _bare_text(answer))
        if right is None:
            score = ungradable_score(self._stamp, "undecided", _score_fields(answer, None))
            score.cause = "grader"
            return score
        why = "the same" if right else "another answer"
        return verdict_score(self._stamp, right, _score_fields(answer, right), why)

    def _answer_text(self, record: Row) -> str | None:
        if self.config.use_predicted_answer_key or "generation" not in record:
            if (field := record.get("predicted_answer")) is None:
                return None
            return str(field)
        return extract_by_policy(str(record["generation"] or ""), self._policy).answer

    def _is_same_answer(self, gold: Any, answer: str) -> bool | None:
        """Return whether the answer is the gold one; None where that is undecided.

        A list or object counts as its value where it has only one: several would be guesses.
        """
        if len(answer) > _LONGEST:
            return False
        if isinstance(gold, str) and gold.lstrip().startswith(("{", "[")):
            gold = _read_json(gold, gold)
        if isinstance(gold, dict):
            return self._is_same_table(gold, answer)
        if isinstance(gold, list):
            return self._are_same_parts(gold, _answer_parts(answer, len(gold)))
        value = _read_json(answer, None)
        if isinstance(value, dict | list) and len(value) == 1:
            values = value.values() if isinstance(value, dict) else value
            answer = _bare_text(str(next(iter(values))))
        return self._is_same_scalar(str(gold).strip(), answer)

    def _is_same_table(self, gold: Row, answer: str) -> bool | None:
        columns = _read_json(answer, None)
        if not isinstance(columns, dict):
            return self._are_same_parts(list(gold.values()), _answer_parts(answer, len(gold)))
        folded = {_fold_text(key): value for key, value in columns.items()}
        return self._are_same_parts(
            list(gold.values()), [_value_text(folded.get(_fold_text(key), "")) for key in gold]
        )

    def _are_same_parts(self, golds: list[Any], parts: list[str]) -> bool | None:
        if len(golds) != len(parts):
            return False
        verdicts = [self._is_same_answer(gold, part) for gold, part in zip(golds, parts, strict=True)]
        if False in verdicts:
            return False
        if None in verdicts:
            return None
        return True

    def _is_same_scalar(self, gold: str, answer: str) -> bool | None:
        if _LETTER.fullmatch(gold):
            return answer.strip("().").upper() == gold.upper()
        if (when := _read_date(gold)) is not None:
            return _read_date(answer) == when
        if (wanted := _read_amount(gold)) and (amount := _read_amount(answer)):
            return wanted.is_same_amount(amount)
        if ", " in gold:
            parts = gold.split(", ")
            return self._are_same_parts(list(parts), _answer_parts(answer, len(parts)))
        if plain_number(tidy_answer(gold)) is None and "%" not in gold and _fold_text(gold) == _fold_text(answer):
            return True
        score = self._math.grade({"expected_answer": gold, "predicted_answer": answer})
        if score.outcome == "unscored":
            return None
        return score.outcome == "correct"


class _Amount(Struct, frozen=True):
    """As it is written, and with its scale (`18217 k`: 18217, 18217000)."""

    written: Decimal
    scaled: Decimal | None

    def is_same_amount(self, other: _Amount) -> bool:
        """Return whether both are the same amount; either may leave the scale out, or write it out."""
        if self.scaled is not None and other.scaled is not None:
            return self.scaled == other.scaled
        return bool({self.written, self.scaled} & {other.written, other.scaled} - {None})


def _score_fields(answer: str | None, correct: bool | None) -> Row:
    return {"predicted_answer": answer, "symbolic_correct": correct}


def _bare_text(text: str) -> str:
    bare = _DRESS.sub(r"\1", text).replace("\\$", "$").replace("\\%", "%").replace("\\,", "")
    return strip_around(bare, " .$\n")


def _fold_text(text: str) -> str:
    return " ".join(text.casefold().split())


def _value_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return msgspec.json.encode(value).decode()


def _read_json(text: str, default: Any) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return default


def _answer_parts(answer: str, count: int) -> list[str]:
    """Return the values of a JSON list or object, else the `count` parts between semicolons or commas (commas of
    thousands stay where that fits), else the whole text without brackets as one value."""
    value = _read_json(answer, None)
    if isinstance(value, list | dict):
        return [_value_text(item) for item in (value.values() if isinstance(value, dict) else value)]
    bare = answer.strip("[](){} ")
    for separator in (";", ", ", ","):
        parts = [part.strip() for part in bare.split(separator)]
        if len(parts) == count:
            return parts
    return [bare]


def _read_amount(text: str) -> _Amount | None:
    match = _AMOUNT.fullmatch(text)
    if match is None:
        return None
    number = Decimal(match["sign"] + match["digits"].replace(",", ""))
    scaled = None
    if match["scale"]:
        scaled = number.scaleb(_SCALES[match["scale"].lower()])
    return _Amount(number, scaled)


def _read_date(text: str) -> date | None:
    for form in _DATES:
        if match := form.fullmatch(text.strip().lower()):
            month = match["month"]
            if not month.isdigit() and month not in _MONTHS:
                return None
            number = int(month) if month.isdigit() else _MONTHS.index(month) + 1
            try:
                return date(int(match["year"]), number, int(match["day"]))
            except ValueError:
                return None
    return None
