# SPDX-License-Identifier: Apache-2.0
"""Filters such as `outcome = wrong and tokens > 2000 and subset ~ algebra`: text → tree → text.

filter     any of `condition`, `not filter`, `filter and filter`, `filter or filter`, `( filter )`
condition  `name op value`, `name in (value, value)`, `name not in (value, value)`
op         = != < <= > >=, ~ (contains, whatever the case), !~ (does not)
value      a word, a number, or a text in single or double quotes; `none` stands for a missing value

`not` binds tighter than `and`, `and` tighter than `or`. This module knows no names of columns.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

from msgspec import Struct

from newskills.base.errors import ConfigError

Operator = Literal["=", "!=", "<", "<=", ">", ">=", "~", "!~", "in", "not in"]
MAX_FILTER_CHARS = 10_000
"""Characters of a filter."""
MAX_FILTER_DEPTH = 50
"""Parentheses and negations within each other."""
NONE = "none"
_OPERATORS: tuple[Operator, ...] = ("!=", "!~", "<=", ">=", "=", "~", "<", ">")
_WORDS = ("and", "or", "not", "in")
_TOKEN = re.compile(
    r"""\s*(?: (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*') | (?P<sign>!=|!~|<=|>=|=|~|<|>|\(|\)|,)
    | (?P<word>[^\s()=!<>~,"']+) )""",
    re.VERBOSE | re.DOTALL,
)
_PLAIN = re.compile(r"""[^\s()=!<>~,"'\\]+""")


class FilterValue(Struct, frozen=True):
    """What a column is compared with. `quoted`: a text even where it looks like `none`."""

    text: str
    quoted: bool = False


class FilterCondition(Struct, frozen=True, tag="condition"):
    name: str
    operator: Operator
    values: tuple[FilterValue, ...]


class FilterNot(Struct, frozen=True, tag="not"):
    part: Filter


class FilterAll(Struct, frozen=True, tag="and"):
    parts: tuple[Filter, ...]


class FilterAny(Struct, frozen=True, tag="or"):
    parts: tuple[Filter, ...]


Filter: TypeAlias = FilterCondition | FilterNot | FilterAll | FilterAny


class _Token(NamedTuple):
    kind: Literal["text", "sign", "word", "end"]
    text: str
    start: int


def parse_filter(text: str) -> Filter:
    """Parse a filter. Raises ConfigError that says what was expected, and where."""
    if len(text) > MAX_FILTER_CHARS:
        raise ConfigError(f"A filter may have {MAX_FILTER_CHARS:,} characters; this one has {len(text):,}.")
    return _Parser(text).whole()


def filter_text(tree: Filter) -> str:
    """Return the text of a filter, which `parse_filter` reads as the same filter."""
    match tree:
        case FilterCondition(name, operator, values):
            listed = ", ".join(map(_value_text, values))
            values_text = f"({listed})" if "in" in operator else listed
            return f"{name} {operator} {values_text}"
        case FilterNot(part):
            return f"not {_parenthesize(part)}"
        case FilterAll(parts):
            return " and ".join(map(_parenthesize, parts))
        case FilterAny(parts):
            return " or ".join(map(_parenthesize, parts))


def names_in(tree: Filter) -> set[str]:
    """Return the names of columns that a filter has."""
    match tree:
        case FilterCondition(name):
            return {name}
        case FilterNot(part):
            return names_in(part)
        case FilterAll(parts) | FilterAny(parts):
            return set().union(*map(names_in, parts))


def _parenthesize(part: Filter) -> str:
    text = filter_text(part)
    if isinstance(part, FilterAll | FilterAny):
        return f"({text})"
    return text


def _value_text(value: FilterValue) -> str:
    bare = not value.quoted and _PLAIN.fullmatch(value.text) and value.text.lower() not in _WORDS
    if bare:
        return value.text
    escaped = value.text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = _split_tokens(text)
        self.at = 0

    def whole(self) -> Filter:
        tree = self._any(0)
        if self._now.kind != "end":
            raise self._fault("'and', 'or' or the end")
        return tree

    @property
    def _now(self) -> _Token:
        return self.tokens[self.at]

    def _takes(self, *texts: str) -> bool:
        """Read the token where it is one of these words or signs, and return whether it was."""
        token = self._now
        if token.kind == "text" or token.text.lower() not in texts:
            return False
        self.at += 1
        return True

    def _any(self, depth: int) -> Filter:
        parts = [self._all(depth)]
        while self._takes("or"):
            parts.append(self._all(depth))
        if len(parts) == 1:
            return parts[0]
        return FilterAny(tuple(parts))

    def _all(self, depth: int) -> Filter:
        parts = [self._single(depth)]
        while self._takes("and"):
            parts.append(self._single(depth))
        if len(parts) == 1:
            return parts[0]
        return FilterAll(tuple(parts))

    def _single(self, depth: int) -> Filter:
        if depth > MAX_FILTER_DEPTH:
            raise ConfigError(
                f"A filter may have {MAX_FILTER_DEPTH} parentheses within each other, and this one has more."
            )
        if self._takes("not"):
            return FilterNot(self._single(depth + 1))
        if self._takes("("):
            tree = self._any(depth + 1)
            if not self._takes(")"):
                raise self._fault("')'")
            return tree
        return self._condition()

    def _condition(self) -> Filter:
        name = self._now
        if name.kind != "word" or name.text.lower() in _WORDS:
            raise self._fault("the name of a column")
        self.at += 1
        if self._takes("not"):
            if not self._takes("in"):
                raise self._fault("'in'")
            return FilterCondition(name.text, "not in", self._list())
        if self._takes("in"):
            return FilterCondition(name.text, "in", self._list())
        for operator in _OPERATORS:
            if self._takes(operator):
                return FilterCondition(name.text, operator, (self._value(),))
        raise self._fault(f"one of {' '.join(sorted(_OPERATORS))} or 'in' behind {name.text}")

    def _list(self) -> tuple[FilterValue, ...]:
        if not self._takes("("):
            raise self._fault("'('")
        values = [self._value()]
        while self._takes(","):
            values.append(self._value())
        if not self._takes(")"):
            raise self._fault("',' or ')'")
        return tuple(values)

    def _value(self) -> FilterValue:
        token = self._now
        if token.kind == "text":
            self.at += 1
            return FilterValue(re.sub(r"\\(.)", r"\1", token.text[1:-1], flags=re.DOTALL), quoted=True)
        if token.kind == "word" and token.text.lower() not in _WORDS:
            self.at += 1
            return FilterValue(token.text)
        raise self._fault("a value")

    def _fault(self, expected: str) -> ConfigError:
        token = self._now
        met = "its end" if token.kind == "end" else f"'{token.text}'"
        return ConfigError(
            f"The filter '{self.text}' cannot be read: expected {expected}, got {met} at character "
            f"{token.start + 1}.",
            hint="Example: outcome = wrong and tokens > 2000 and subset ~ algebra",
        )


def _split_tokens(text: str) -> Sequence[_Token]:
    tokens, at = [], 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None:
            place = at + len(text[at:]) - len(text[at:].lstrip())
            fault = "belongs to no sign"
            if text[place] in _QUOTES:
                fault = "opens a text that never ends"
            raise ConfigError(
                f"The filter '{text}' cannot be read: '{text[place]}' at character {place + 1} {fault}."
            )
        kind = match.lastgroup
        assert kind is not None
        tokens.append(_Token(kind, match[kind], match.start(kind)))  # type: ignore[arg-type] # names of its groups
        at = match.end()
    tokens.append(_Token("end", "", len(text)))
    return tokens


_QUOTES = "\"'"
