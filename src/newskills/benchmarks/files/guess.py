# SPDX-License-Identifier: Apache-2.0
"""What a file of questions is, seen from its columns and first rows; where two readings fit, the user decides."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from statistics import median
from string import ascii_lowercase
from typing import Any, NamedTuple

from newskills.base.records import Row
from newskills.base.terminal import counted
from newskills.benchmarks.files.format import AnswerAs, ColumnRule, Columns, Kind
from newskills.benchmarks.files.kinds import KINDS
from newskills.benchmarks.files.rows import (
    DECIMAL_COMMA,
    RowRules,
    columns_of,
    options_of,
    readings_of_answer,
)

LOOKED_AT = 500
"""Rows from which a file is judged."""
_SHORT, _LONG = 8, 25
"""Words of an answer that is short for certain, and the median of those that only a judge can compare."""
_FEW_NUMBERS, _MANY_NUMBERS = 0.2, 1.0
_NAMES: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "question": (("question", "problem"), ("prompt", "input", "query", "instruction", "q", "text")),
    "answer": (
        ("answer", "expected_answer", "target", "label", "correct_answer", "correct", "gold", "ground_truth"),
        ("answers", "output", "response", "expected", "ideal", "reference", "solution", "a"),
    ),
    "options": (("options", "choices"), ("endings", "candidates", "continuations")),
    "context": (("context", "passage"),),
    "accepted": (("accepted", "accepted_answers", "aliases"),),
    "entry_point": (("entry_point",),),
    "tests": (("tests", "test_list"),),
    "text": (("text", "page", "document"), ("content",)),
}
"""Role → names that columns usually have, the surest first."""
_LETTERED = re.compile(r"(?P<stem>|option|opt|choice)[ _-]?(?P<mark>[a-z]|\d)", re.IGNORECASE)
_NUMBER = re.compile(r"(?=\D*\d)[-+−]?\s?[$€£]?\s?(\d[\d,_  ]*)?(\.\d+)?([eE][-+]?\d+)?\s?(%|/\s?\d+)?")
_FORMULA = re.compile(r"\\[a-zA-Z]+|[\^_]\{|\$.+\$|(?<![a-z])[a-z0-9)]\s?[\^=+*]\s?[a-z0-9(]", re.IGNORECASE)


class UndecidedError(Exception):
    """Two readings fit. `key`: what the user has to say; `readings`: value → what it means."""

    def __init__(self, key: str, what: str, readings: Mapping[str, str]) -> None:
        super().__init__(what)
        self.key, self.what, self.readings = key, what, readings


class Guess(NamedTuple):
    """What was seen, and why, as lines for people."""

    kind: Kind
    columns: dict[str, Columns]
    answer_as: AnswerAs | None
    reasons: tuple[str, ...]


def guess_kind_and_columns(
    rows: Sequence[Row], kind: Kind | None, columns: Mapping[str, Columns], answer_as: AnswerAs | None
) -> Guess:
    """Return what the user says, completed by what the rows show. Raises UndecidedError where several readings fit,
    LookupError where none does."""
    reasons: list[str] = []
    header = column_names(rows)
    columns = dict(columns)
    if kind != "free":
        columns |= _guessed_columns(header, columns, kind, reasons)
    if kind is None:
        kind, reason = _guessed_kind(rows, columns)
        reasons.append(f"kind {kind}, because {reason}")
    spec = KINDS[kind]
    columns = {role: where for role, where in columns.items() if role not in _NAMES or role in _used_roles(kind)}
    if missing := [role for role in spec.needs if role not in columns]:
        raise LookupError(_missing_role_message(missing[0], kind, header))
    if kind == "math":
        _check_decimals(rows, columns)
    if answer_as is None and "options" in columns:
        answer_as = _guessed_answer_as(rows, kind, columns, reasons)
    return Guess(kind, columns, answer_as, tuple(reasons))


def column_names(rows: Sequence[Row]) -> list[str]:
    """Return the columns that any of the rows has, in their order."""
    return list(dict.fromkeys(name for row in rows for name in row if name != "_file"))


def _used_roles(kind: Kind) -> tuple[str, ...]:
    spec = KINDS[kind]
    if spec.asked_by in ("problem", "question"):
        return (*spec.needs, *spec.may, "context")
    return (*spec.needs, *spec.may)


def _missing_role_message(role: str, kind: str, header: Sequence[str]) -> str:
    return f"which column holds the {role} (kind {kind})? {_columns_sentence(header)}"


def _guessed_columns(
    header: Sequence[str], columns: Mapping[str, Columns], kind: Kind | None, reasons: list[str]
) -> dict[str, Columns]:
    """Return role → column for the roles that the user says nothing of."""
    taken = {name for role, where in columns.items() if role in _NAMES for name in columns_of(where)}
    left = [name for name in header if name not in taken]
    wanted = [role for role in _NAMES if role not in columns and (kind is None or role in _used_roles(kind))]
    guessed: dict[str, Columns] = {}
    if "options" in wanted and (lettered := _lettered_columns(left)):
        guessed["options"] = tuple(lettered)
        left = [name for name in left if name not in lettered]
    for role in wanted:
        if role not in guessed and (name := _usual_column(role, left)) is not None:
            guessed[role] = name
            left.remove(name)
    shown = [f"{role} = {_format_columns(where)}" for role, where in guessed.items() if where != role]
    if shown:
        reasons.append(f"columns: {', '.join(shown)}")
    return guessed


def _format_columns(where: Columns) -> str:
    return ", ".join(columns_of(where))


def _usual_column(role: str, header: Sequence[str]) -> str | None:
    """Return the column that is called as `role` usually is. Raises UndecidedError where several are."""
    for names in _NAMES[role]:
        fitting = [name for name in header if re.sub(r"\W+", "_", name.strip().casefold()) in names]
        if len(fitting) > 1:
            readings = {f"{{{role}: {name}}}": f"the column '{name}'" for name in fitting}
            raise UndecidedError("columns", f"several columns may hold the {role}", readings)
        if fitting:
            return fitting[0]
    return None


def _lettered_columns(header: Sequence[str]) -> list[str]:
    """Return columns called A, B, C or option_1, option_2 and so on; none where there is no such row of names."""
    stems: dict[str, dict[str, str]] = {}
    for name in header:
        if (match := _LETTERED.fullmatch(name.strip())) is not None:
            stems.setdefault(match["stem"].casefold(), {})[match["mark"].casefold()] = name
    for marks in stems.values():
        for order in (ascii_lowercase, "0123456789", "123456789"):
            run: list[str] = []
            for mark in order:
                if mark not in marks:
                    break
                run.append(marks[mark])
            if len(run) >= 2:
                return run
    return []


def _guessed_kind(rows: Sequence[Row], columns: Mapping[str, Columns]) -> tuple[Kind, str]:
    """Return the kind that the answers show, and why. Raises UndecidedError, LookupError."""
    if "tests" in columns and "entry_point" in columns:
        return "code", "there are tests and an entry point"
    if "question" not in columns:
        raise LookupError(f"which column holds the question? {_columns_sentence(column_names(rows))}")
    if "answer" not in columns:
        raise LookupError(f"which column holds the answer? {_columns_sentence(column_names(rows))}")
    answers = _column_values(rows, columns, "answer")
    where = columns["answer"]
    if isinstance(where, ColumnRule) and where.decimal and "options" not in columns:
        return "math", "answers are numbers"
    if "options" in columns:
        return _kind_of_choice(rows, columns, answers)
    if any(isinstance(answer, list) for answer in answers):
        return "short_answer", "answers are lists of texts"
    texts = [str(answer).strip() for answer in answers]
    if not texts:
        raise LookupError("the column of answers is empty.")
    return _kind_of_texts(texts)


def _columns_sentence(header: Sequence[str]) -> str:
    shown = ", ".join(f"'{name}'" for name in header[:12])
    if len(header) > 12:
        shown += ", …"
    return f"The columns are {shown}."


def _kind_of_texts(texts: Sequence[str]) -> tuple[Kind, str]:
    count = f"all {len(texts)} answers looked at are" if len(texts) > 1 else "the only answer is"
    if all(text.casefold() in ("yes", "no", "true", "false") for text in texts):
        return "yes_no", f"{count} yes or no"
    numbers = sum(bool(_NUMBER.fullmatch(text) or DECIMAL_COMMA.fullmatch(text)) for text in texts) / len(texts)
    formulas = sum(_FORMULA.search(text) is not None for text in texts) / len(texts)
    if numbers + formulas >= _MANY_NUMBERS:
        what = "numbers or formulas" if formulas else "numbers"
        return "math", f"{count} {what}"
    words = sorted(len(text.split()) for text in texts)
    fitting: dict[str, str] = {}
    if numbers + formulas >= _FEW_NUMBERS:
        fitting["math"] = KINDS["math"].meaning
    if median(words) < _LONG:
        fitting["short_answer"] = KINDS["short_answer"].meaning
    if words[-1] > _SHORT:
        fitting["judged"] = KINDS["judged"].meaning
    if len(fitting) > 1:
        raise UndecidedError("kind", "answers of several kinds fit", fitting)
    if "judged" in fitting:
        return "judged", f"answers have {median(words):g} words, so a judge has to compare them"
    return "short_answer", f"answers have at most {counted(words[-1], 'word')}"


def _kind_of_choice(
    rows: Sequence[Row], columns: Mapping[str, Columns], answers: Sequence[Any]
) -> tuple[Kind, str]:
    letters = re.compile(r"[A-Z](?:[\s,;&]+(?:and\s+)?[A-Z])+|\[.*\]", re.DOTALL)
    several = [
        answer
        for answer in answers
        if isinstance(answer, list) or (isinstance(answer, str) and letters.fullmatch(answer.strip()))
    ]
    if several:
        return "choices", f"there are options, and answers with several of them ({str(several[0])[:30]})"
    return "choice", "there are options"


def _check_decimals(rows: Sequence[Row], columns: Mapping[str, Columns]) -> None:
    """Raise UndecidedError for answers such as `1,5`, of which nobody has said whether they are one number or two."""
    where = columns["answer"]
    if not isinstance(where, str):
        return
    for text in _column_values(rows, columns, "answer"):
        match = DECIMAL_COMMA.fullmatch(text.strip()) if isinstance(text, str) else None
        if match is not None and match[3] and (len(match[3]) != 3 or "." in match[2]):
            others = "".join(
                f"{role}: {name}, " for role, name in columns.items() if isinstance(name, str) and name != where
            )
            readings = {
                f'{{{others}answer: {{column: {where}, decimal: "{mark}"}}}}': f"{text} is {meaning}"
                for mark, meaning in ((",", "a number with a decimal comma"), (".", "two numbers"))
            }
            raise UndecidedError("columns", f"answers such as {text} can be read in two ways", readings)


def _guessed_answer_as(
    rows: Sequence[Row], kind: Kind, columns: Mapping[str, Columns], reasons: list[str]
) -> AnswerAs | None:
    """Return the way to name the right option that fits all rows; None: rows tell it, or cannot be read.

    Raises UndecidedError where several fit, and differ.
    """
    if kind == "choices":
        return None
    readings: list[dict[AnswerAs, int]] = []
    unclear: tuple[Any, list[str]] | None = None
    for row in rows:
        try:
            answer = _column_value(row, columns, "answer")
            options = options_of(_column_value(row, columns, "options"), fewest=1)
            reading = readings_of_answer(answer, options)
        except (KeyError, ValueError):
            continue  # preparing names the row, and what is wrong with it
        readings.append(reading)
        if unclear is None and len(set(reading.values())) > 1:
            unclear = answer, options
    ways = [way for way in _WAYS if readings and all(way in reading for reading in readings)]
    distinct: dict[tuple[int, ...], AnswerAs] = {}
    for way in ways:
        distinct.setdefault(tuple(reading[way] for reading in readings), way)
    if len(distinct) > 1 and unclear is not None:
        answer, options = unclear
        reading = readings_of_answer(answer, options)
        shown: dict[str, str] = {
            way: f"{_WAYS[way]}: {answer} is '{options[reading[way]]}'" for way in distinct.values()
        }
        raise UndecidedError("answer_as", "right options can be read in several ways", shown)
    if not distinct or (unclear is None and ways[0] in ("letter", "text")):
        return None
    reasons.append(f"answer_as {ways[0]}: answers name options {_WAYS[ways[0]]}")
    return ways[0]


_WAYS: Mapping[AnswerAs, str] = {
    "letter": "by their letters",
    "text": "by their texts",
    "from_0": "by numbers from 0",
    "from_1": "by numbers from 1",
}


def _column_values(rows: Sequence[Row], columns: Mapping[str, Columns], role: str) -> list[Any]:
    values = []
    for row in rows:
        try:
            value = _column_value(row, columns, role)
        except (KeyError, ValueError):
            continue
        if value not in (None, "", []):
            values.append(value)
    return values


def _column_value(row: Row, columns: Mapping[str, Columns], role: str) -> Any:
    return RowRules(kind="free", columns={role: columns[role]}).value(row, role)
