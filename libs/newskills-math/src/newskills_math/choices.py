# SPDX-License-Identifier: Apache-2.0
"""An option's letter with its value behind it: `C. 25`, `\\text{(B) } 6`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from newskills_math.words import behind_letter, is_prose, option_letter

_OPENING = r"(?:\\(?:text|textbf|textrm|mathrm|mathbf|mbox)\s*\{\s*)?"
_LETTER = re.compile(
    rf"{_OPENING}(?:\(\s*{_OPENING}([A-J])\s*\}}?\s*\)|([A-J])\s*[.):])"
    r"(?:[\s~}]|\\[,;:! ])+(?P<value>[^\s+*/^_=<>].*)",
    re.DOTALL,
)
_FORMULA = re.compile(r"\d|[-+*/^=<>]|\\[a-zA-Z]|^(?:true|false|yes|no)\.?$", re.IGNORECASE)
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_LONGEST = 300


class _Choice(NamedTuple):
    """A letter and the formula behind it."""

    letter: str
    value: str


def same_choice(pred: str, gold: str, same: Callable[[str, str], bool | None]) -> bool | None:
    """Return whether two values behind letters are the same, or one and what stands without a letter; None for other
    texts.

    Beside an option of gold's own, letters must be the same too: `C. 25` is neither `C. 26` nor `D. 25`.
    """
    chosen, wanted = _read_choice(pred), _read_choice(gold)
    if (chosen is None or wanted is None) and _has_other_numbers(pred, gold, same):
        return False
    if chosen is not None and wanted is not None:
        return chosen.letter == wanted.letter and same(chosen.value, wanted.value)
    if chosen is not None:
        if option_letter(gold):
            return None
        return same(chosen.value, gold)
    if wanted is not None:
        if option_letter(pred):
            return None
        return same(pred, wanted.value)
    return None


def _has_other_numbers(pred: str, gold: str, same: Callable[[str, str], bool | None]) -> bool:
    """Return whether other numbers stand in the words behind two letters: `A. 5 apples` is no `A. 6 apples`."""
    if max(len(pred), len(gold)) > _LONGEST or not (option_letter(pred) and option_letter(gold)):
        return False
    answer, right = behind_letter(pred), behind_letter(gold)
    numbers = [sorted(_NUMBER.findall(text)) for text in (answer, right)]
    return all(numbers) and numbers[0] != numbers[1] and not same(answer, right)


def _read_choice(text: str) -> _Choice | None:
    """Read an option letter and what stands behind it; None also where another option is named behind the first, or
    words stand there."""
    if len(text) > _LONGEST or (match := _LETTER.fullmatch(text)) is None or not option_letter(text):
        return None
    value = match["value"].strip()
    if value.count("}") == value.count("{") + 1 and value.endswith("}"):
        value = value[:-1].strip()
    if _FORMULA.search(value) and not is_prose(value):
        return _Choice(match[1] or match[2], value)
    return None
