# SPDX-License-Identifier: Apache-2.0
"""A text with `{field}` places, compiled once and filled from a record in about a microsecond.

The language is the part of `str.format` that only inserts: names, and doubled braces for literal ones. A value is
inserted once and never read again, so braces in data stay as they are; nothing reaches into a value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from newskills.base.errors import ConfigError

_TOKEN = re.compile(r"\{\{|\}\}|\{|\}")
_NAME = re.compile(r"[^\W\d](?:[\w -]*[\w-])?")
_LATEX_COMMAND = re.compile(r"\\[A-Za-z]+\Z")


class TextPosition(Struct, frozen=True):
    """Where a text stands: its name, and the line (1-based) and indent of its first line in a file."""

    what: str
    line: int = 1
    indent: int = 0


class MissingField(Exception):
    """A record lacks the field `name`."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class NullField(MissingField):
    """The field `name` of a record is null, and nothing says what a prompt shows then."""


def value_of(row: Mapping[str, Any], name: str) -> Any:
    """Return the field `name` of `row`. Raises MissingField, and NullField where it is null."""
    try:
        value = row[name]
    except KeyError:
        raise MissingField(name) from None
    if value is None:
        raise NullField(name)
    return value


class Template:
    """`fields` are the names it needs, in order of appearance; `empty` is shown for those that are null.

    Raises ConfigError with line and column.
    """

    __slots__ = ("_empty", "_parts", "_slots", "fields", "source")

    def __init__(self, source: str, place: TextPosition, empty: str | None = None) -> None:
        self.source = source
        self._empty = empty
        self._parts: list[str] = []
        self._slots: list[tuple[int, str]] = []
        _TemplateParser(source, place).parse_places(self._parts, self._slots)
        self.fields = tuple(dict.fromkeys(name for _, name in self._slots))

    def fill(self, row: Mapping[str, Any]) -> str:
        """Return the text with the fields of `row` filled in. Raises MissingField, and NullField where nothing says
        what is shown for null."""
        parts = self._parts.copy()
        for at, name in self._slots:
            if self._empty is not None and row.get(name, "") is None:
                parts[at] = self._empty
                continue
            value = value_of(row, name)
            parts[at] = value if type(value) is str else str(value)
        return "".join(parts)

    def bind(self, name: str, value: str) -> Template:
        """Return the template with `value` in all places of `name`."""
        bound = Template.__new__(Template)
        bound.source = self.source
        bound._empty = self._empty
        bound._parts = [""]
        bound._slots = []
        names = dict(self._slots)
        for at, part in enumerate(self._parts):
            field = names.get(at)
            if field is not None and field != name:
                bound._slots.append((len(bound._parts), field))
                bound._parts += ["", ""]
            else:
                bound._parts[-1] += value if field == name else part
        bound.fields = tuple(field for field in self.fields if field != name)
        return bound


def rename_fields(source: str, place: TextPosition, names: Mapping[str, str]) -> str:
    """Return the text of a template with its fields renamed by `names`. Raises ConfigError as `Template`."""
    template = Template(source, place)
    slots = dict(template._slots)
    texts = []
    for at, part in enumerate(template._parts):
        field = slots.get(at)
        if field is None:
            texts.append(escape_template(part))
        else:
            texts.append(f"{{{names.get(field, field)}}}")
    return "".join(texts)


def escape_template(text: str) -> str:
    """Return the template that gives `text` for every record."""
    return text.replace("{", "{{").replace("}", "}}")


class _TemplateParser:
    def __init__(self, source: str, place: TextPosition) -> None:
        self.source, self.place = source, place

    def parse_places(self, parts: list[str], slots: list[tuple[int, str]]) -> None:
        literal: list[str] = []
        at = 0
        while (token := _TOKEN.search(self.source, at)) is not None:
            literal.append(self.source[at : token.start()])
            at = token.end()
            if len(token.group()) == 2:
                literal.append(token.group()[0])
            elif token.group() == "}":
                raise self._place_error(token.start(), "a single '}'")
            else:
                name, at = self._read_field(token.start())
                parts.append("".join(literal))
                slots.append((len(parts), name))
                parts.append("")
                literal = []
        parts.append("".join([*literal, self.source[at:]]))

    def _read_field(self, start: int) -> tuple[str, int]:
        end = self.source.find("}", start)
        name = self.source[start + 1 : end]
        if end < 0 or "{" in name:
            raise self._place_error(start, "a single '{'")
        if (command := _LATEX_COMMAND.search(self.source, 0, start)) is not None:
            # "\boxed{answer}" is LaTeX with forgotten braces; filled in, it would give the answer away.
            literal = f"{command.group()}{{{{{name}}}}}"
            raise self._place_error(start, f"single braces after {command.group()}; write {literal}")
        if _NAME.fullmatch(name) is None:
            raise self._place_error(
                start, f"'{{{name}}}' is not a field name (no index, attribute, format or conversion)"
            )
        return name, end + 1

    def _place_error(self, at: int, problem: str) -> ConfigError:
        row = self.source.count("\n", 0, at)
        column = at - (self.source.rfind("\n", 0, at) + 1) + 1 + self.place.indent
        return ConfigError(
            f"{self.place.what}, line {self.place.line + row}, column {column}: {problem}.",
            hint="Literal braces are doubled: {{ }}.",
        )
