# SPDX-License-Identifier: Apache-2.0
"""Text of the command line → typed values. The grammar of `++key=value`: null, true, 0.6, [a,b], {a:1}, 'text'."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from typing import Any, Literal, get_args, get_origin

import msgspec

from newskills.base.errors import ConfigError, suggest
from newskills.base.type_errors import type_fault
from newskills.config.fields import Leaf, union_members

_NUMBER = re.compile(r"[+-]?(?:\d+(?:_\d+)*(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?\Z")
_WORDS = {"null": None, "none": None, "~": None, "true": True, "false": False}
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


class Text(str):
    """A value as typed, not yet interpreted; its meaning depends on the type of the key it goes to."""

    __slots__ = ()


def convert_value(value: Any, leaf: Leaf, shown: str) -> Any:
    """Convert `value` to the type of `leaf`. Raises ConfigError naming `shown` (what the user typed) and what is
    expected."""
    if isinstance(value, Text):
        value = _interpreted_text(value, leaf)
    try:
        converted = msgspec.convert(value, leaf.type, strict=False, str_keys=True)
        check_finite(converted, shown)
        return converted
    except msgspec.ValidationError as error:
        if (choices := _literal_choices(leaf)) and isinstance(value, str):
            raise ConfigError(f"{shown}: this is not one of the choices{suggest(value, choices)}") from error
        raise ConfigError(f"{shown}: {type_fault(error, value)}.") from error


def is_sequence(value: Any) -> bool:
    """Return whether `value` holds several values, rather than one: a list, a tuple, a range; never a text."""
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def check_finite(value: Any, shown: str) -> None:
    """Raise ConfigError naming `shown` where a number in `value` is inf or nan: bounds do not catch every one."""
    if isinstance(value, float) and not math.isfinite(value):
        raise ConfigError(f"{shown}: expected a finite number, got {value}.")
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            check_finite(item, shown)


def _literal_choices(leaf: Leaf) -> list[str]:
    """Return the words of the `Literal` types that a key may have."""
    return [
        str(word) for kind in union_members(leaf.type) if get_origin(kind) is Literal for word in get_args(kind)
    ]


def _interpreted_text(text: Text, leaf: Leaf) -> Any:
    if (word := strip_quotes(text)) in _literal_choices(leaf):
        return word  # also where it would be read as null or a number
    kinds = union_members(leaf.type)
    structured = text[:1] in "[{" and any(leaf_kind not in (str, type(None)) for leaf_kind in kinds)
    if str in kinds and not structured:
        if type(None) in kinds and text.lower() in ("null", "none") and not leaf.extra.get("name"):
            return None
        return strip_quotes(text)
    value = parse_value(text)
    if leaf.is_list and not leaf.open and not isinstance(value, list) and value is not None:
        return [value]
    return value


def parse_value(text: str) -> Any:
    """Read one value. Raises ConfigError where brackets or quotes do not close, or text follows the value."""
    parser = _ValueParser(text)
    value = parser.read_value(stops="")
    parser.skip_spaces()
    if parser.at < len(text):
        raise ConfigError(f"Cannot read the value {text!r}: unexpected text at character {parser.at + 1}.")
    return value


def written_value(value: Any, leaf: Leaf) -> Text:
    """Return `value` as it may be typed after `++key=`: `convert` makes the same value of it. Raises ConfigError for
    what has no written form."""
    if isinstance(value, str) and str in union_members(leaf.type):
        plain = Text(value)
        if _interpreted_text(plain, leaf) == value:
            return plain
        return Text(_quoted_text(value))
    return Text(_written_text(value, leaf))


def _written_text(value: Any, leaf: Leaf) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str | PathLike):
        return _quoted_text(str(fspath(value)))
    if isinstance(value, Mapping):
        items = (f"{_quoted_text(str(key))}: {_written_text(item, leaf)}" for key, item in value.items())
        return f"{{{', '.join(items)}}}"
    if is_sequence(value):
        return f"[{', '.join(_written_text(item, leaf) for item in value)}]"
    raise ConfigError(f"{leaf.path}: a value of type {type(value).__name__} cannot be written as a setting.")


def _quoted_text(text: str) -> str:
    escaped = text.replace("\\", r"\\").replace("'", r"\'")
    return f"'{escaped}'"


def strip_quotes(text: str) -> str:
    """Remove one pair of quotes around the whole text."""
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return _ESCAPE.sub(r"\1", text[1:-1])
    return str(text)


class _ValueParser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def skip_spaces(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def peek_character(self) -> str:
        self.skip_spaces()
        return self.text[self.at : self.at + 1]

    def read_value(self, stops: str) -> Any:
        head = self.peek_character()
        if head == "[":
            return self.read_sequence()
        if head == "{":
            return self.read_mapping()
        if head and head in "'\"":
            return self.read_quoted(head)
        return _scalar_value(self.read_bare(stops))

    def read_sequence(self) -> list[Any]:
        self.at += 1
        items: list[Any] = []
        while self.peek_character() != "]":
            items.append(self.read_value(",]"))
            self.read_comma("]")
        self.at += 1
        return items

    def read_mapping(self) -> dict[str, Any]:
        self.at += 1
        items: dict[str, Any] = {}
        while self.peek_character() != "}":
            head = self.peek_character()
            if head and head in "'\"":
                key = self.read_quoted(head)
            else:
                key = self.read_bare(":")
            if self.peek_character() != ":":
                raise ConfigError(f"Cannot read the value {self.text!r}: ':' is missing after {key!r}.")
            self.at += 1
            items[key] = self.read_value(",}")
            self.read_comma("}")
        self.at += 1
        return items

    def read_comma(self, close: str) -> None:
        mark = self.peek_character()
        if mark == ",":
            self.at += 1
        elif mark != close:
            raise ConfigError(f"Cannot read the value {self.text!r}: '{close}' is missing.")

    def read_quoted(self, quote: str) -> str:
        end = self.at + 1
        while end < len(self.text) and self.text[end] != quote:
            end += 2 if self.text[end] == "\\" else 1
        if end >= len(self.text):
            raise ConfigError(f"Cannot read the value {self.text!r}: the quote {quote} is not closed.")
        body, self.at = self.text[self.at + 1 : end], end + 1
        return _ESCAPE.sub(r"\1", body)

    def read_bare(self, stops: str) -> str:
        start = self.at
        while self.at < len(self.text) and self.text[self.at] not in stops:
            self.at += 1
        return self.text[start : self.at].strip()


def _scalar_value(text: str) -> Any:
    """Convert null, booleans and numbers; all else stays text."""
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if any(ch.isdigit() for ch in text) and _NUMBER.match(text):
        if any(ch in text for ch in ".eE"):
            return float(text)
        return int(text)
    return text
