# SPDX-License-Identifier: Apache-2.0
"""The arguments of a call against the tool's JSON schema: names, types and choices, at the top level.

What the schema says deeper down is the tool's own business; the aim is a sentence from which a model can fix its
call. Keywords: https://json-schema.org/draft/2020-12/json-schema-validation
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from newskills.base.errors import ToolError, suggest
from newskills.base.records import Row

SHOWN = 100

_TYPES: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "integer": lambda value: (
        isinstance(value, int | float) and not isinstance(value, bool) and value == value // 1
    ),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
    "null": lambda value: value is None,
}


def check_arguments(schema: Row, arguments: Row) -> Row:
    """Check `arguments`; return them with whole floats made integers where these are expected.

    Raises ToolError that names all that is wrong.
    """
    properties: Row = schema.get("properties") or {}
    wrong = [f"'{name}' is missing" for name in schema.get("required") or () if name not in arguments]
    checked: Row = {}
    for name, value in arguments.items():
        kind = properties.get(name)
        if kind is None:
            if _is_closed(schema):
                wrong.append(f"there is no '{name}'{suggest(name, properties)}".rstrip("."))
            checked[name] = value
            continue
        checked[name], problem = _check_value(kind, value)
        if problem:
            wrong.append(f"'{name}' must be {problem}, not {_shorten_repr(value)}")
    if wrong:
        raise ToolError(f"The arguments do not fit: {'; '.join(wrong)}.")
    return checked


def _is_closed(schema: Row) -> bool:
    """Return whether only known names make sense. A schema that says nothing about others does not invite them."""
    open_ended = schema.get("additionalProperties", False) is not False or "patternProperties" in schema
    return "properties" in schema and not open_ended


def _check_value(kind: Any, value: Any) -> tuple[Any, str]:
    """Check a value; return (value, what it must be; empty where it fits)."""
    if not isinstance(kind, dict):
        return value, ""
    alternatives = kind.get("anyOf") or kind.get("oneOf")
    if isinstance(alternatives, list):
        outcomes = [_check_value(alternative, value) for alternative in alternatives]
        fitting = [outcome for outcome in outcomes if not outcome[1]]
        if fitting:
            return fitting[0]
        return (value, " or ".join(dict.fromkeys(words for _, words in outcomes)))
    names = kind.get("type")
    names = [names] if isinstance(names, str) else names
    type_names = [name for name in names or () if name in _TYPES]
    if type_names and not any(_TYPES[name](value) for name in type_names):
        return value, " or ".join(f"of type {name}" for name in type_names)
    choices = kind.get("enum")
    if isinstance(choices, list) and value not in choices:
        return value, f"one of {', '.join(_shorten_repr(choice) for choice in choices[:12])}"
    if "integer" in type_names and isinstance(value, float) and "number" not in type_names:
        return int(value), ""
    return value, ""


def _shorten_repr(value: Any) -> str:
    text = repr(value)
    if len(text) <= SHOWN:
        return text
    return f"{text[:SHOWN]}…"
