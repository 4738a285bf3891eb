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
from newskills.config.fields import Leaf, alternatives

_NUMBER = re.compile(r"[+-]?(?:\d+(?:_\d+)*(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?\Z")
_WORDS = {"null": None, "none": None, "~": None, "true": True, "false": False}
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


class Text(str):
    """A value as typed, not yet interpreted; its meaning depends on the type of the key it goes to."""

    __slots__ = ()


def convert(value: Any, leaf: Leaf, shown: str) -> Any:
    """Convert `value` to the type of `leaf`. Raises ConfigError naming `shown` (what the user typed) and what is
    expected."""
    if isinstance(value, Text):
        value = _interpret(value, leaf)
    try:
        converted = msgspec.convert(value, leaf.type, strict=False, str_keys=True)
        check_finite(converted, shown)
        return converted
    except msgspec.ValidationError as error:
        if (choices := _choices(leaf)) and isinstance(value, str):
            raise ConfigError(f"{shown}: this is not one of the choices{suggest(value, choices)}") from error
        raise ConfigError(f"{shown}: {type_fault(error, value)}.") from error


def is_sequence(value: Any) -> bool:
    """Return whether `value` holds several values, rather than one: a list, a tuple, a range; never a text."""
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def check_finite(value: Any, shown: str) -> None:
    """Raise ConfigError naming `shown` where a number in `value` is inf or nan: bounds do not catch every one."""
    if isinstance(value, float) and not math.isfinite(value):
        raise ConfigError(f"{shown}: expected a finite number, got {value}.")
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    for item in inner:
        check_finite(item, shown)


def _choices(leaf: Leaf) -> list[str]:
    """Return the words of the `Literal` types that a key may have."""
    return [
        str(word) for kind in alternatives(leaf.type) if get_origin(kind) is Literal for word in get_args(kind)
    ]


def _interpret(text: Text, leaf: Leaf) -> Any:
    if (word := unquote(text)) in _choices(leaf):
        return word  # also where it would be read as null or a number
    kinds = alternatives(leaf.type)
    structured = text[:1] in "[{" and any(leaf_kind not in (str, type(None)) for leaf_kind in kinds)
    if str in kinds and not structured:
        if type(None) in kinds and text.lower() in ("null", "none") and not leaf.extra.get("name"):
            return None
        return unquote(text)
    value = parse_value(text)
    if leaf.is_list and not leaf.open and not isinstance(value, list) and value is not None:
        return [value]
    return value


def parse_value(text: str) -> Any:
    """Read one value. Raises ConfigError where brackets or quotes do not close, or text follows the value."""
    parser = _ValueParser(text)
    value = parser.value(stops="")
    parser.skip()
    if parser.at < len(text):
        raise ConfigError(f"Cannot read the value {text!r}: unexpected text at character {parser.at + 1}.")
    return value


def written(value: Any, leaf: Leaf) -> Text:
    """Return `value` as it may be typed after `++key=`: `convert` makes the same value of it. Raises ConfigError for
    what has no written form."""
    if isinstance(value, str) and str in alternatives(leaf.type):
        plain = Text(value)
        return plain if _interpret(plain, leaf) == value else Text(_quoted(value))
    return Text(_written(value, leaf))


def _written(value: Any, leaf: Leaf) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str | PathLike):
        return _quoted(str(fspath(value)))
    if isinstance(value, Mapping):
        items = (f"{_quoted(str(key))}: {_written(item, leaf)}" for key, item in value.items())
        return f"{{{', '.join(items)}}}"
    if is_sequence(value):
        return f"[{', '.join(_written(item, leaf) for item in value)}]"
    raise ConfigError(f"{leaf.path}: a value of type {type(value).__name__} cannot be written as a setting.")


def _quoted(text: str) -> str:
    escaped = text.replace("\\", r"\\").replace("'", r"\'")
    return f"'{escaped}'"


def unquote(text: str) -> str:
    """Remove one pair of quotes around the whole text."""
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return _ESCAPE.sub(r"\1", text[1:-1])
    return str(text)


class _ValueParser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def skip(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def peek(self) -> str:
        self.skip()
        return self.text[self.at : self.at + 1]

    def value(self, stops: str) -> Any:
        head = self.peek()
        if head == "[":
            return self.sequence()
        if head == "{":
            return self.mapping()
        if head and head in "'\"":
            return self.quoted(head)
        return scalar(self.bare(stops))

    def sequence(self) -> list[Any]:
        self.at += 1
        items: list[Any] = []
        while self.peek() != "]":
            items.append(self.value(",]"))
            self.comma("]")
        self.at += 1
        return items

    def mapping(self) -> dict[str, Any]:
        self.at += 1
        items: dict[str, Any] = {}
        while self.peek() != "}":
            head = self.peek()
            key = self.quoted(head) if head and head in "'\"" else self.bare(":")
            if self.peek() != ":":
                raise ConfigError(f"Cannot read the value {self.text!r}: ':' is missing after {key!r}.")
            self.at += 1
            items[key] = self.value(",}")
            self.comma("}")
        self.at += 1
        return items

    def comma(self, close: str) -> None:
        mark = self.peek()
        if mark == ",":
            self.at += 1
        elif mark != close:
            raise ConfigError(f"Cannot read the value {self.text!r}: '{close}' is missing.")

    def quoted(self, quote: str) -> str:
        end = self.at + 1
        while end < len(self.text) and self.text[end] != quote:
            end += 2 if self.text[end] == "\\" else 1
        if end >= len(self.text):
            raise ConfigError(f"Cannot read the value {self.text!r}: the quote {quote} is not closed.")
        body, self.at = self.text[self.at + 1 : end], end + 1
        return _ESCAPE.sub(r"\1", body)

    def bare(self, stops: str) -> str:
        start = self.at
        while self.at < len(self.text) and self.text[self.at] not in stops:
            self.at += 1
        return self.text[start : self.at].strip()


def scalar(text: str) -> Any:
    """Convert null, booleans and numbers; all else stays text."""
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if any(ch.isdigit() for ch in text) and _NUMBER.match(text):
        return float(text) if any(ch in text for ch in ".eE") else int(text)
    return text
