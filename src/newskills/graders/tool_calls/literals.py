# SPDX-License-Identifier: Apache-2.0
"""Values written as Java or JavaScript source, which is how models are asked to give them. Linear in their length.

A text that is no literal of the wanted type stays the text that it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

JAVA_TYPES: dict[str, type] = {
    **dict.fromkeys(("byte", "short", "integer", "long"), int),
    **dict.fromkeys(("float", "double"), float),
    **dict.fromkeys(("Array", "ArrayList", "Queue", "Stack"), list),
    **dict.fromkeys(("HashMap", "Hashtable"), dict),
    **dict.fromkeys(("char", "String", "any"), str),
    "boolean": bool,
}
JAVASCRIPT_TYPES: dict[str, type] = {
    **dict.fromkeys(("integer", "Bigint"), int),
    **dict.fromkeys(("String", "any"), str),
    "float": float,
    "Boolean": bool,
    "dict": dict,
    "array": list,
}
_DIGITS = 400
_WHOLE, _REAL = r"-?\d+", r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?"
_NUMBERS = {
    "java": {
        **dict.fromkeys(("byte", "short", "integer"), (re.compile(_WHOLE), int)),
        "long": (re.compile(rf"({_WHOLE})[lL]"), int),
        "float": (re.compile(rf"({_REAL})[fF]"), float),
        "double": (re.compile(_REAL), float),
    },
    "javascript": {
        "integer": (re.compile(_WHOLE), int),
        "float": (re.compile(r"-?\d+(?:\.\d+)?"), float),
        "Bigint": (re.compile(rf"({_WHOLE})n"), int),
    },
}
_ANY_NUMBER = re.compile(rf"({_REAL})([lLfFn]?)")
_LIST_HEADS = {
    "Array": re.compile(r"new\s+\w+\s*\[\s*\]\s*\{"),
    "ArrayList": re.compile(r"new\s+ArrayList\s*<[^>]{0,200}>\s*\(\s*Arrays\.asList\("),
    "array": re.compile(r"new\s+Array\(|\["),
}
"""By type; a list as JSON writes it is none in Java."""
_LIST_ADDS = re.compile(r"new\s+ArrayList\s*<[^>]{0,200}>\s*\(\s*\)")
_MAP_HEAD = re.compile(r"new\s+HashMap\s*<[^>]{0,200}>\s*\(\s*\)")
_ADD, _PUT = re.compile(r"\badd\("), re.compile(r"\bput\(")
_OPENING, _CLOSING = "([{", ")]}"
_MOST_BRACKETS = 300
_MOST_DEEP = 100
"""Brackets within brackets; four calls read each of them, and Python bears a thousand."""


def value_of(text: str, kind: str, item: str | None, language: str) -> Any:
    """Return the value of `text` as the type `kind`; `item` is the type of a list's members."""
    text = text.strip()
    if kind in _NUMBERS[language]:
        return _read_number(text, kind, language)
    if kind in ("boolean", "Boolean"):
        return {"true": True, "false": False}.get(text, text)
    if kind == "String" and language == "javascript":
        return _without_quotes(text)
    if sum(map(text.count, _OPENING)) > _MOST_BRACKETS or _bracket_depth(text) > _MOST_DEEP:
        return text
    if kind in ("Array", "ArrayList", "array"):
        return _read_list(text, kind, item, language)
    if kind in ("HashMap", "dict"):
        return _read_map(text, language)
    return text


def _read_number(text: str, kind: str, language: str) -> Any:
    pattern, make = _NUMBERS[language][kind]
    if len(text) <= _DIGITS and (match := pattern.fullmatch(text)):
        return make(match[match.lastindex or 0])
    return text


def _read_any(text: str, language: str) -> Any:
    """Read a value where no type is known."""
    if text in ("true", "false"):
        return text == "true"
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    if len(text) <= _DIGITS and (match := _ANY_NUMBER.fullmatch(text)):
        if match[2] in ("f", "F") or not re.fullmatch(_WHOLE, match[1]):
            return float(match[1])
        return int(match[1])
    if language == "javascript" and text[:1] in ("[", "{"):
        if text[0] == "[":
            return _read_list(text, "array", None, language)
        return _read_map(text, language)
    return text


def _read_list(text: str, kind: str, item: str | None, language: str) -> Any:
    if head := _LIST_HEADS[kind].match(text):
        inner = _inside_bracket(text, head.end() - 1)
        if inner is None:
            return text
        return [_read_item(part, item, language) for part in _split_outside_brackets(inner)]
    if kind == "ArrayList" and _LIST_ADDS.match(text):
        return [_read_item(part, item, language) for part in _call_arguments(text, _ADD)]
    return text


def _read_item(text: str, item: str | None, language: str) -> Any:
    if item is None or item in ("any", "array", "dict"):
        return _read_any(text, language)
    if item in ("String", "char"):
        return _without_quotes(text)
    return value_of(text, item, None, language)


def _read_map(text: str, language: str) -> Any:
    if language == "java":
        if not _MAP_HEAD.match(text):
            return text
        pairs = [_split_outside_brackets(part) for part in _call_arguments(text, _PUT)]
        return {_without_quotes(pair[0]): _read_any(pair[1], language) for pair in pairs if len(pair) == 2}
    inner = None
    if text.startswith("{"):
        inner = _inside_bracket(text, 0)
    if inner is None:
        return text
    pairs = [_split_outside_brackets(part, ":") for part in _split_outside_brackets(inner)]
    return {_without_quotes(pair[0]): _read_any(pair[1], language) for pair in pairs if len(pair) == 2}


def _without_quotes(text: str) -> str:
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    return text


def _inside_bracket(text: str, at: int) -> str | None:
    """Return the text between the bracket at `at` and its partner; None without one."""
    end = next(
        (place for place, depth, char in _unquoted_characters(text, at) if depth == 0 and char in _CLOSING), None
    )
    if end is None:
        return None
    return text[at + 1 : end]


def _call_arguments(text: str, call: re.Pattern[str]) -> list[str]:
    arguments: list[str] = []
    at = 0
    while match := call.search(text, at):
        inner = _inside_bracket(text, match.end() - 1)
        if inner is None:
            break
        arguments.append(inner.strip())
        at = match.end() + len(inner)
    return arguments


def _split_outside_brackets(text: str, separator: str = ",") -> list[str]:
    """Return the parts, none of them empty, between separators that stand in no bracket and no quotation marks; `:`
    splits once."""
    places = [place for place, depth, char in _unquoted_characters(text, 0) if depth == 0 and char == separator]
    if separator == ":":
        places = places[:1]
    ends = [*places, len(text)]
    begins = [0, *(place + 1 for place in places)]
    parts = [text[begin:end].strip() for begin, end in zip(begins, ends, strict=True)]
    return [part for part in parts if part]


def _bracket_depth(text: str) -> int:
    return max((depth for _, depth, _ in _unquoted_characters(text, 0)), default=0)


def _unquoted_characters(text: str, at: int) -> Iterator[tuple[int, int, str]]:
    """Yield (place, depth of brackets behind it, character) of all outside quotation marks, from `at`."""
    depth, quote, escaped = 0, "", False
    for place in range(at, len(text)):
        char = text[place]
        if quote:
            if char == quote and not escaped:
                quote = ""
            escaped = char == "\\" and not escaped
            continue
        if char in "\"'":
            quote = char
        elif char in _OPENING:
            depth += 1
        elif char in _CLOSING:
            depth -= 1
        yield place, depth, char
