# SPDX-License-Identifier: Apache-2.0
"""A YAML mapping → `BenchmarkFile`, with file, line and column of whatever does not fit."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal, get_args, get_origin

import msgspec
from msgspec import Struct

from newskills.base.errors import ConfigError, suggest
from newskills.base.type_errors import PLACE_PATTERN, type_fault
from newskills.benchmarks.files.format import BenchmarkFile, ColumnRule, Columns, DataPlace, FewShot, JudgeSection
from newskills.benchmarks.files.positions import KeyPath, MarkedDocument
from newskills.config.fields import union_members

_STEP = re.compile(r"\.?([^.\[\]]+)|\[(\d+)\]")
_SECTIONS: Mapping[str, type[Struct]] = {"data": DataPlace, "few_shot": FewShot, "judge": JudgeSection}


def description_of(document: MarkedDocument) -> BenchmarkFile:
    """Return what the document says. Raises ConfigError: a key that there is not, a value of a wrong type, `data`
    missing."""
    document.check_keys((), _field_names(BenchmarkFile))
    for section, kind in _SECTIONS.items():
        document.check_keys((section,), _field_names(kind))
    document.check_keys(("few_shot", "data"), _field_names(DataPlace))
    columns = document.at(("columns",))
    for role in columns if isinstance(columns, dict) else ():
        document.check_keys(("columns", role), _field_names(ColumnRule))
        _check_value(document, ("columns", role), Columns)
        _check_pattern(document, ("columns", role, "pattern"))
    if "data" not in document.values:
        raise document.fault(
            (), "the key 'data' is missing, which names the questions.", hint="For example: data: questions.csv"
        )
    for field in msgspec.structs.fields(BenchmarkFile):
        if field.name in document.values:
            _check_value(document, (field.name,), field.type)
    made: BenchmarkFile = msgspec.convert(document.values, BenchmarkFile)
    return made


def _check_pattern(document: MarkedDocument, path: KeyPath) -> None:
    pattern = document.at(path)
    try:
        re.compile(pattern if isinstance(pattern, str) else "")
    except re.error as error:
        raise document.fault(path, f"the pattern is no regular expression: {error}.") from error


def columns_from(text: Any, shown: str) -> dict[str, Columns]:
    """Return the columns that a value of the command line names. Raises ConfigError naming `shown`."""
    try:
        return msgspec.convert(text, dict[str, Columns])
    except msgspec.ValidationError as error:
        raise ConfigError(
            f"{shown}: {type_fault(error, text)}.", hint="For example: ++columns='{question: q, answer: a}'"
        ) from error


def _field_names(kind: type[Struct]) -> list[str]:
    return [field.name for field in msgspec.structs.fields(kind)]


def _check_value(document: MarkedDocument, path: KeyPath, kind: Any) -> None:
    value = document.at(path)
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        inner = PLACE_PATTERN.search(str(error))
        below = _path_steps(inner["path"]) if inner else ()
        wrong = document.at((*path, *below))
        if isinstance(wrong, str) and not below and (choices := _literal_choices(kind)):
            raise document.fault(
                path, f"{path[-1]}: '{wrong}' is not one of the choices{suggest(wrong, choices)}"
            ) from error
        what = type_fault(msgspec.ValidationError(PLACE_PATTERN.sub("", str(error))), document.at((*path, *below)))
        named = ".".join(map(str, (*path, *below)))
        where = document.fault(
            (*path, *below), f"{named}: {what}.", hint=_quoting_hint(document.at((*path, *below)))
        )
        raise where from error


def _literal_choices(kind: Any) -> list[str]:
    """Return the words that a key may have, where its type lists them."""
    return [str(word) for part in union_members(kind) if get_origin(part) is Literal for word in get_args(part)]


def _quoting_hint(value: Any) -> str:
    if isinstance(value, bool):
        return "YAML reads yes, no, on and off as true and false; write a text in quotes."
    if isinstance(value, int | float):
        return "Write a text in quotes."
    return ""


def _path_steps(path: str) -> KeyPath:
    return tuple(name or int(index) for name, index in _STEP.findall(path) if name != "...")
