# SPDX-License-Identifier: Apache-2.0
"""Replies that name several options side by side, which is no answer; naming another one on second thoughts is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from newskills.graders.reading.grammar import words_of
from newskills.graders.reading.languages import TOUCHING, pattern_of_words

_LONGEST = 200
_WORDS = (
    "the|a|an|final|correct|right|best|answer|answers|option|options|choice|choices|statement|letter|is|are|and|or|also|"
    "so|then|therefore|thus|another|other|possible|maybe|perhaps|possibly|alternatively|as|well|too|both|either|i|choose|"
    "say|it|could|be|might"
)
_REVISED = re.compile(
    r"\b(?:final|finally|corrected|revised|actual|actually|instead|updated|new)\b", re.IGNORECASE
)
_LETTERS_ONLY = re.compile(rf"[\W\d_]*(?:(?<![{TOUCHING}])[A-Z](?![{TOUCHING}'’])[\W\d_]*)+\Z")
_BOXED_LETTER = re.compile(
    r"\\f?box(?:ed)?\s{0,3}\{\s{0,3}(?:\\[a-z]{2,8}\s?\{)?[\s(]{0,3}([A-Z])(?![A-Za-z0-9])[^{}\n]{0,80}\}{1,2}"
)


@cache
def _repetition_pattern(codes: tuple[str, ...]) -> re.Pattern[str]:
    words = words_of(codes, "answer", "is_", "fill", "option", "or_", "so", "right")
    return re.compile(
        rf"[\W\d_]*(?:(?:(?:{_WORDS})(?![^\W\d_])|{pattern_of_words(words)})[\W\d_]*){{0,16}}\Z", re.IGNORECASE
    )


def side_by_side(between: str, codes: tuple[str, ...] = ()) -> bool:
    """Return whether nothing but punctuation, and words that name an answer again, stands between two named letters.

    "A. The answer is B" names both; "A. No, wait: the answer is B" and "A. Final answer: B" change the answer.
    """
    if len(between) > _LONGEST or _REVISED.search(between):
        return False
    return _repetition_pattern(codes).match(between) is not None


def only_letters(text: str) -> bool:
    """Return whether the text consists of letters that stand alone: ". B. C. D."."""
    return len(text) <= _LONGEST and _LETTERS_ONLY.match(text) is not None


def several_boxes(text: str) -> bool:
    r"""Return whether the last two boxes hold different letters side by side: `\boxed{A} is correct. \boxed{B} …`."""
    boxes = list(_BOXED_LETTER.finditer(text))[-2:]
    if len(boxes) < 2 or boxes[0][1] == boxes[1][1]:
        return False
    return side_by_side(text[boxes[0].end() : boxes[1].start()])


def other_options(line: str, letter: str, meant: Mapping[str, str]) -> bool:
    """Return whether the line goes on with other letters, each before its own option (`meant`: text of it → letter)."""
    folded = line.casefold()
    for name, option in meant.items():
        marks = rf"(?<!\w)\(?{option.lower()}[).:]\s{{0,3}}{re.escape(name)}(?!\w)"
        if option != letter and name in folded and re.search(marks, folded):
            return True
    return False
