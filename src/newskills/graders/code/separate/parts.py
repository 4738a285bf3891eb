# SPDX-License-Identifier: Apache-2.0
"""What the programs of all languages are made of: the answer, the tests, and the head that both know."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

from msgspec import Struct

COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
WORD = re.compile(r"[A-Za-z_]\w*")


class Answer(Struct, frozen=True, kw_only=True):
    """An answer, and what its row says of the tests.

    code     as the model wrote it
    whole    it is more than what goes on with the prompt
    body     the program that it makes with what is given around it
    prompt   what ends with the head of `entry`
    closing  what ends the prompt's function in the tests
    inside   the tests belong into the class that the function is in
    """

    code: str
    whole: bool
    body: str
    prompt: str
    tests: str
    entry: str
    closing: str
    inside: bool
    main: str

    @property
    def knows_nan(self) -> bool:
        """Whether the task speaks of what is no number, which elsewhere is no value: it is never too far off."""
        return re.search(r"nan\b|not[ -]a[ -]number", f"{self.prompt}{self.tests}", re.IGNORECASE) is not None


def split_parameters(text: str) -> list[str]:
    """Split parameters at the commas that no brackets enclose.

    >>> split_parameters("map<int, int> a, int b = 2")
    ['map<int, int> a', 'int b = 2']
    """
    pieces, depth = [""], 0
    for sign in text:
        depth += (sign in "<([{") - (sign in ">)]}")
        if sign == "," and depth == 0:
            pieces.append("")
        else:
            pieces[-1] += sign
    return [piece.strip() for piece in pieces if piece.strip()]


def last_names(parameters: list[str]) -> list[str] | None:
    """Return the name of each parameter, which ends it but for a default; None where one has no name."""
    names = [WORD.findall(parameter.partition("=")[0].partition("[")[0])[-1:] for parameter in parameters]
    if all(names):
        return [name[0] for name in names]
    return None


@cache
def wire_source(name: str) -> str:
    """Return the text of the file of `inside` that carries calls in a language."""
    return files("newskills.graders.code.inside").joinpath(name).read_text("utf-8")
