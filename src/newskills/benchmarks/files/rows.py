# SPDX-License-Identifier: Apache-2.0
"""Raw rows of a file → prepared rows with the fields that prompts and graders of a kind expect."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from string import ascii_uppercase
from typing import Any

import msgspec
from msgspec import Struct

from newskills.base.records import Row
from newskills.benchmarks.files.format import AnswerAs, ColumnRule, Columns, Kind
from newskills.benchmarks.files.kinds import ROLES
from newskills.benchmarks.files.rubrics import ROLE, criteria_of
from newskills.benchmarks.text import choices, number_text, split_options, yes_no

_YES = frozenset(("yes", "y", "true", "1"))
_NO = frozenset(("no", "n", "false", "0"))
_LETTERS = re.compile(r"[\s,;&/+]+(?:and\s+)?")
_AROUND_LETTER = " .():"
DECIMAL_COMMA = re.compile(r"([-+−]?)(\d{1,3}(?:[.\u00a0 ]\d{3})+|\d+)(?:,(\d+))?")
"""Sign, whole part and decimals of a number as it is written where a comma stands before the decimals."""
_LONGEST_LITERAL = 100_000


class RowRules(Struct, frozen=True, kw_only=True):
    """Everything in the description of a benchmark that decides what its prepared rows hold; maps one raw row.

    columns     role or field → where its value stands
    fields      fields that are the same for all rows
    rubric      criteria of all rows, which come after a row's own
    kept        columns that the prompt shows under their own names, although they fill a role
    """

    kind: Kind
    columns: dict[str, Columns]
    fields: Row = {}
    answer_as: AnswerAs | None = None
    rubric: tuple[Row, ...] = ()
    kept: tuple[str, ...] = ()

    def __call__(self, raw: Row, index: int) -> Row:
        """Return the prepared row. Raises KeyError for a missing column, ValueError for a value that does not fit."""
        row = {role: self.value(raw, role) for role in self.columns}
        own = {name: value for name, value in row.items() if name not in ROLES}
        rest = {name: value for name, value in raw.items() if name not in self.used_columns() or name in self.kept}
        prepared = {**rest, **self.fields, **own, **self._fields(row)}
        if (identity := row.get("id", prepared.pop("id", None))) not in (None, ""):
            prepared["id"] = str(identity)
        if "subset" in row:
            prepared["subset_for_metrics"] = _text_value(row["subset"], "subset")
        return prepared

    def used_columns(self) -> frozenset[str]:
        """Return the columns that fill a role."""
        names = [name for role in self.columns for name in columns_of(self.columns[role])]
        return frozenset(names)

    def value(self, raw: Row, role: str) -> Any:
        """Return what the columns of `role` hold. Raises KeyError, ValueError."""
        where = self.columns[role]
        if isinstance(where, tuple):
            return [cell for cell in (_cell_value(raw, name) for name in where) if cell not in (None, "")]
        if isinstance(where, str):
            return _cell_value(raw, where)
        return _by_rule(_cell_value(raw, where.column), where)

    def _fields(self, row: Row) -> Row:
        if self.kind == "free":
            return {role: row[role] for role in row if role in ROLES and role not in ("id", "subset")}
        if self.kind == "likelihood":
            return self._continuations(row)
        if self.kind == "text":
            return {"text": _text_value(row["text"], "text")}
        if self.kind == "translation":
            return {name: _text_value(row[name], name) for name in ("source", "reference")}
        question = _text_value(row["question"], "question")
        if "context" in row:
            question = f"{_text_value(row['context'], 'context')}\n\n{question}"
        if self.kind in ("choice", "choices"):
            return self._choice_fields(question, row)
        if self.kind == "yes_no":
            return yes_no(question, _parse_yes_no(row["answer"]))
        if self.kind == "code":
            return _program_fields(question, row)
        fields: Row = {"problem": question, "question": question}
        if "answer" in row:
            fields |= _expected_fields(row)
        if self.kind == "rubric":
            fields |= {"conversation": f"user: {question}", "rubrics": self._rubrics(row)}
        if "solution" in row:
            fields["solution"] = _text_value(row["solution"], "solution")
        return fields

    def _rubrics(self, row: Row) -> list[Row]:
        """Return the criteria of a row. Raises ValueError where none of them has positive points."""
        own, rubrics = row.get(ROLE), list(self.rubric)
        if own not in (None, ""):
            rubrics = [*criteria_of(own), *rubrics]
        if not any(rubric["points"] > 0 for rubric in rubrics):
            raise ValueError("no criterion has positive points")
        return rubrics

    def _choice_fields(self, question: str, row: Row) -> Row:
        options = options_of(row["options"])
        if self.kind == "choice":
            place = place_of_answer(row["answer"], options, self.answer_as)
            letters = ascii_uppercase[place]
        else:
            several = _answer_parts(row["answer"], options)
            places = {place_of_answer(part, options, self.answer_as) for part in several}
            letters = ", ".join(ascii_uppercase[place] for place in sorted(places))
        return {"question": question, **choices(question, options), "expected_answer": letters}

    def _continuations(self, row: Row) -> Row:
        """Return context and continuations, with a blank between them where neither has one."""
        context = "".join(_text_value(row[role], role) for role in ("context", "question") if role in row)
        options = options_of(row["options"], fewest=1)
        blank = " " if context and not context[-1].isspace() else ""
        texts = [option if option[:1].isspace() else f"{blank}{option}" for option in options]
        place = place_of_answer(row["answer"], options, self.answer_as)
        return {"context": context, "continuations": texts, "expected_answer": place}


def columns_of(where: Columns) -> tuple[str, ...]:
    """Return the names of the columns that a role is read from."""
    if isinstance(where, tuple):
        return where
    if isinstance(where, str):
        return (where,)
    return (where.column,)


def _cell_value(raw: Row, name: str) -> Any:
    """Return the value of a column; `a.b.0` reaches into objects and lists. Raises KeyError."""
    head, dot, rest = name.partition(".")
    if name in raw or not dot or head not in raw:
        return raw[name]
    value = raw[head]
    for step in rest.split("."):
        if isinstance(value, Mapping) and step in value:
            value = value[step]
        elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            raise ValueError(f"the column '{name}' is not there: there is no '{step}' in {str(value)[:60]!r}")
    return value


def _by_rule(value: Any, rule: ColumnRule) -> Any:
    if rule.pattern:
        match = re.search(rule.pattern, _text_value(value, rule.column))
        if match is None:
            raise ValueError(f"the column '{rule.column}' does not match the pattern {rule.pattern!r}")
        value = match[1] if match.re.groups else match[0]
    if rule.split:
        return [
            part for part in (part.strip() for part in _text_value(value, rule.column).split(rule.split)) if part
        ]
    if rule.decimal == "," and isinstance(value, str) and (number := DECIMAL_COMMA.fullmatch(value.strip())):
        sign, whole, decimals = number.groups()
        plain = sign + re.sub(r"\D", "", whole)
        if decimals:
            plain += f".{decimals}"
        return [plain, value, plain.replace(".", ",")]  # models may answer as the language writes it
    return value


def _text_value(value: Any, role: str) -> str:
    """Return a value as text. Raises ValueError where there is nothing, or nothing that is a text."""
    if value is None or value == "":
        raise ValueError(f"there is nothing in the column for '{role}'")
    if isinstance(value, list | tuple | Mapping):
        raise ValueError(f"the column for '{role}' holds {str(value)[:60]!r}, which is not a text")
    if isinstance(value, float):
        return number_text(value)
    return str(value)


def _expected_fields(row: Row) -> Row:
    """Return the expected answer, and others that are accepted, too."""
    answer = row["answer"]
    answers = (answer or [None]) if isinstance(answer, list) else [answer]
    texts = [_text_value(item, "answer").strip() for item in answers]
    accepted = row.get("accepted")
    if isinstance(accepted, str) and accepted.startswith("["):
        accepted = _parse_literal(accepted)
    more = accepted if isinstance(accepted, list) else [accepted]
    texts += [_text_value(item, "accepted").strip() for item in more if item not in (None, "")]
    first, *others = dict.fromkeys(texts)
    if others:
        return {"expected_answer": first, "accepted_answers": others}
    return {"expected_answer": first}


def _parse_yes_no(value: Any) -> bool:
    word = _text_value(value, "answer").strip().casefold()
    if word not in _YES | _NO:
        raise ValueError(f"the answer {value!r} is neither yes nor no")
    return word in _YES


def _program_fields(question: str, row: Row) -> Row:
    tests = row["tests"]
    if isinstance(tests, str):
        tests = _parse_literal(tests) if tests.lstrip().startswith("[") else tests.splitlines()
    fields = {
        "question": question,
        "entry_point": _text_value(row["entry_point"], "entry_point"),
        "test_list": [_text_value(test, "tests") for test in tests if str(test).strip()],
    }
    if solution := row.get("solution"):
        fields["canonical_solution"] = _text_value(solution, "solution")
    return fields


def options_of(value: Any, *, fewest: int = 2) -> list[str]:
    """Return options as texts, from a list, an object, a list that is written in a cell (JSON or Python), or
    `A) … B) …`.

    Raises ValueError for what is none of these.
    """
    if isinstance(value, str):
        text = value.strip()
        value = _parse_literal(text) if text[:1] in "[{" else split_options(text)
    if isinstance(value, Mapping):
        texts = value.get("text")
        value = texts if isinstance(texts, list) else list(value.values())
    if not isinstance(value, list) or not fewest <= len(value) <= len(ascii_uppercase):
        raise ValueError(f"{fewest} to {len(ascii_uppercase)} options are expected, not {str(value)[:60]!r}")
    return [_text_value(option, "options") for option in value]


def _parse_literal(text: str) -> Any:
    """Return the list or object that is written as JSON or as Python writes it. Raises ValueError."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        pass
    try:
        if len(text) <= _LONGEST_LITERAL:
            return ast.literal_eval(text)
        return None
    except (ValueError, SyntaxError, MemoryError, RecursionError) as error:
        raise ValueError(f"{text[:60]!r} is neither a list in JSON nor one in Python") from error


def _answer_parts(answer: Any, options: Sequence[str]) -> list[Any]:
    """Return the parts of an answer that names several options: a list, or letters with marks between them."""
    if isinstance(answer, str) and answer.strip().startswith("["):
        answer = _parse_literal(answer.strip())
    if isinstance(answer, list):
        parts = answer
    elif isinstance(answer, str) and answer.strip() not in options:
        parts = [part for part in _LETTERS.split(answer.strip()) if part]
        if len(parts) == 1 and len(parts[0]) > 1 and set(parts[0]) <= set(ascii_uppercase[: len(options)]):
            parts = list(parts[0])
    else:
        parts = [answer]
    if not parts:
        raise ValueError("there is nothing in the column for 'answer'")
    return parts


def readings_of_answer(answer: Any, options: Sequence[str]) -> dict[AnswerAs, int]:
    """Return each way to read `answer` → the place (from 0) of the option that it then names."""
    text = _text_value(answer, "answer").strip()
    readings: dict[AnswerAs, int] = {}
    stripped = [option.strip() for option in options]
    if stripped.count(text) == 1:
        readings["text"] = stripped.index(text)
    letter = text.strip(_AROUND_LETTER).upper()
    if len(letter) == 1 and letter in ascii_uppercase[: len(options)]:
        readings["letter"] = ascii_uppercase.index(letter)
    if text.isascii() and text.isdecimal():
        number = int(text)
        if number < len(options):
            readings["from_0"] = number
        if 1 <= number <= len(options):
            readings["from_1"] = number - 1
    return readings


def place_of_answer(answer: Any, options: Sequence[str], answer_as: AnswerAs | None) -> int:
    """Return the place of the right option. Raises ValueError where the answer names none, or may name several."""
    readings = readings_of_answer(answer, options)
    if answer_as is not None:
        readings = {way: place for way, place in readings.items() if way == answer_as}
    places = sorted(set(readings.values()))
    if len(places) == 1:
        return places[0]
    if not places:
        how = f" (answer_as: {answer_as})" if answer_as else ""
        raise ValueError(f"the answer {answer!r} names none of the {len(options)} options{how}")
    ways = ", ".join(f"{way} ({ascii_uppercase[place]})" for way, place in readings.items())
    raise ValueError(f"the answer {answer!r} can be read in several ways; write answer_as: {ways}")
