# SPDX-License-Identifier: Apache-2.0
"""Formulas out of the way: one private character stands for each, so that sentences can be told apart."""

from __future__ import annotations

import re
from typing import NamedTuple

FORMULA = "[\ue000-\uf7ff]"
_FIRST_MASK = 0xE000
_MOST_MASKS = 6000
_MATH = re.compile(
    r"\$\$(?P<a>.+?)\$\$|\\\[(?P<b>.+?)\\\]|\\\((?P<c>.+?)\\\)"
    r"|(?P<d>\\begin\{(?P<name>[a-zA-Z]+\*?)\}.+?\\end\{(?P=name)\})"
    r"|(?<![\\\d])\$(?P<e>[^$\n]{1,400}?)(?<!\\)\$(?!\d)",
    re.DOTALL,
)
_PLAIN_WORDS = re.compile(r"(?<![\\{a-zA-Z])[A-Za-z]{3,}(?![}a-zA-Z])")
_TEXT_GROUP = re.compile(r"\\(?:text|mbox|mathrm|operatorname)\s*\{[^{}]*\}")
_END_OF_PROOF = re.compile(r"\\(?:blacksquare|square|Box|qed|checkmark)")
_LAYERS = 3


class MaskedText(NamedTuple):
    """`text` with a character for each of `formulas`."""

    text: str
    formulas: list[str]


def mask(text: str) -> MaskedText:
    """Replace formulas by marks; dollars that only mean money stay; so does what is not closed."""
    text = re.sub(FORMULA, " ", text)
    formulas: list[str] = []

    def masking(match: re.Match[str]) -> str:
        inside = next(match[name] for name in "abcde" if match[name] is not None)
        prose = _PLAIN_WORDS.findall(_TEXT_GROUP.sub("", inside)) if match["e"] is not None else ()
        if _END_OF_PROOF.fullmatch(inside.strip()):
            return " "
        if len(prose) > 1 or len(formulas) >= _MOST_MASKS or not inside.strip():
            return match.group().replace("$", "＄", 1)
        end = len(inside.rstrip(" \n.,;:"))
        formulas.append(inside[:end].strip())
        return f" {chr(_FIRST_MASK + len(formulas) - 1)}{inside[end:].strip()} "

    for _ in range(_LAYERS):
        before, text = text, _MATH.sub(masking, text)
        if before == text:
            break
    return MaskedText(text.replace("＄", "$"), formulas)


def unmask(text: str, formulas: list[str]) -> str:
    return re.sub(FORMULA, lambda m: formulas[ord(m.group()) - _FIRST_MASK], text)
