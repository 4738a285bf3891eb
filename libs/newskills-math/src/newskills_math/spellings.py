# SPDX-License-Identifier: Apache-2.0
"""Other ways to write an answer of mathematics that mean the same."""

from __future__ import annotations

import re
from collections.abc import Iterator

_INTEGER = re.compile(r"-?\d+")
_PLAIN_FRACTION = re.compile(r"\\frac\{(\d+)\}\{(\d+)\}")
_MIXED = re.compile(r"\d\s*\\frac")


def answer_spellings(answer: str) -> Iterator[str]:
    """Yield `answer` in blanks, dollars, a box, other brackets and fractions; integers also with commas and units.

    >>> list(spellings("1234"))[-4:]
    ['1,234', 'x = 1234', '1234 \\\\text{ units}', '1234.0']
    """
    yield f"  {answer} "
    yield answer + "."
    if "$" in answer:  # formulas between words
        return
    yield f"${answer}$"
    if answer.count("{") == answer.count("}"):
        yield f"\\boxed{{{answer}}}"
    if "\\frac" in answer:
        yield answer.replace("\\frac", "\\dfrac")
        if not _MIXED.search(answer):
            yield _PLAIN_FRACTION.sub(r"{\1/\2}", answer)
    if "(" in answer and "\\left" not in answer and "\\(" not in answer:
        yield answer.replace("(", "\\left(").replace(")", "\\right)")
    if " " in answer and "\\text" not in answer and "\\ " not in answer:
        yield answer.replace(" ", "\\, ")
    if _INTEGER.fullmatch(answer):
        if len(answer.lstrip("-")) > 3 and not answer.lstrip("-").startswith("0"):
            yield f"{int(answer):,}"
        yield f"x = {answer}"
        yield f"{answer} \\text{{ units}}"
        yield f"{answer}.0"
