# SPDX-License-Identifier: Apache-2.0
"""Lean 4 files as problems: where the header ends, what is said in words, what is to be proved."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

_HEADER = re.compile(r"(?:[ \t]*(?:(?:import|open|set_option)\b[^\n]*)?\n)*")
_DOCSTRING = re.compile(r"/--(.*?)-/[ \t]*\n?", re.DOTALL)
_NOTE = re.compile(r"/-[!-]?(.*?)-/[ \t]*\n?", re.DOTALL)
_OPEN_END = re.compile(r":=\s*(by)?\s*(?:sorry)?\s*\Z")
_UNKNOWN = r"abbrev (?:{name})\b[^\n]*:= *\n? *(sorry)\b"


class LeanProblem(Struct, frozen=True):
    """`header`: imports, options, opened names; `words`: what the docstring of the theorem says; `statement` ends
    with `:= by` or `:=`."""

    header: str
    words: str
    statement: str

    @property
    def prefix(self) -> str:
        """The words as a docstring."""
        if self.words:
            return f"/-- {self.words} -/\n"
        return ""


def lean_problem(text: str) -> LeanProblem:
    """Parse a file that ends with the theorem to be proved. Raises ValueError for another."""
    text = text.replace("\r\n", "\n").strip("\n") + "\n"
    match = _HEADER.match(text)
    start = match.end() if match else 0
    rest = text[start:]
    notes = list(_DOCSTRING.finditer(rest)) or list(_NOTE.finditer(rest))
    words = ""
    if notes:
        words = notes[-1][1].strip()
        rest = rest[: notes[-1].start()] + rest[notes[-1].end() :]
    return LeanProblem(text[:start].strip() + "\n\n", words, to_prove(rest.strip()))


def to_prove(statement: str) -> str:
    """Return the statement with its end in one form: `:= by` or `:=`, no `sorry`. Raises ValueError where it does
    not end so."""
    end = _OPEN_END.search(statement)
    if end is None:
        raise ValueError("the statement does not end with `:=`, `:= by` or `sorry`")
    return f"{statement[: end.start()].rstrip()} :={' by' if end[1] else ''}\n"


def with_answers(text: str, answers: Mapping[str, str]) -> str:
    """Replace the `sorry` of abbreviations in `text` by the answers (name → term). Raises KeyError for one without
    an answer."""
    for name in re.findall(r"^(?:noncomputable )?abbrev (\w+)[^\n]*:= *\n? *sorry\b", text, re.MULTILINE):
        match = re.search(_UNKNOWN.format(name=name), text)
        if match:
            text = text[: match.start(1)] + answers[name] + text[match.end(1) :]
    return text
