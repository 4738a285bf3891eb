# SPDX-License-Identifier: Apache-2.0
"""The one formula that an answer in prose is about."""

from __future__ import annotations

import re

from newskills_math.phrases import changes_value
from newskills_math.syntax.tables import HEDGES, NUMBER_WORDS, VALUE_WORDS
from newskills_math.words import is_prose, plain_words

_MATH_PART = re.compile(r"\$([^$]+)\$|\\\((.+?)\\\)")
_DENIAL = re.compile(
    r"\b(?:not?|cannot|\w+n't|never|without|unless|instead|rather|false|wrong|incorrect|impossible|or|either|neither"
    r"|except|between|(?:more|less|fewer|greater|smaller|larger|other) than|at (?:least|most)|up to)\b|≠|\\neq?\b",
    re.IGNORECASE,
)
_PROSE_WORD = re.compile(
    r"(?<![\\a-zA-Z{_^])(?!d[a-z]\b)(?:[A-Za-z]{2,}(?:'[a-z]+)?|(?<=\s)[aAI](?=\s))(?![a-zA-Z({^_])"
)
_CONTENT = re.compile(r"\d|\\[a-zA-Z]")


def formula_in_prose(text: str) -> str:
    """Cut a text from the first formula to the last, where the words around them neither deny nor count anything; else
    ''."""
    parts = list(_MATH_PART.finditer(text))
    if not parts:
        return _bare_formula(text)
    around = text[: parts[0].start()] + " " + text[parts[-1].end() :]
    if not around.strip(" .,*") or _DENIAL.search(around) or any(c.isdigit() for c in around):
        return ""
    if len({part.group() for part in parts}) == 1:
        return parts[0][1] or parts[0][2]
    return text[parts[0].start() : parts[-1].end()]


def _bare_formula(text: str) -> str:
    """Return the one formula without dollars between plain words that neither deny, hedge nor change it; else ''."""
    prose_words = _PROSE_WORD.findall(text)
    if not prose_words or "\\begin" in text or not is_prose(text) or _DENIAL.search(text):
        return ""
    if set(plain_words(" ".join(prose_words)).split()) & (HEDGES | VALUE_WORDS | NUMBER_WORDS.keys()):
        return ""
    parts = [part.strip(" \t\n.,:;!?*") for part in _PROSE_WORD.split(text)]
    formulas = [part for part in parts if part]
    if len(formulas) != 1 or not _CONTENT.search(formulas[0]):
        return ""
    before, _, behind = text.partition(formulas[0])
    if changes_value(before, behind):
        return ""
    return formulas[0]
