# SPDX-License-Identifier: Apache-2.0
"""The verdict in a judge's text; None where there is none to be found. Linear in the length of the text."""

from __future__ import annotations

import re

_VERDICT = re.compile(r"judge?ment\W{0,8}:\W{0,8}(yes|no)\b", re.IGNORECASE)
_BOXED = re.compile(r"\\boxed\s?\{\s?(?:\\text\s?\{\s?)?(correct|incorrect)\b", re.IGNORECASE)
_POINTS = re.compile(r"<points>\s?(\d{1,3})(?:\.\d)?\s?(?:out of|/)\s?7\s?</points>", re.IGNORECASE)
PASSING_POINTS = 6


def parse_judgement(text: object) -> bool | None:
    """The last `Judgement: yes|no`, else the last `\\boxed{Correct|Incorrect}`, else the points out of 7.

    >>> parse_judgement("The answers agree. **Judgement:** Yes")
    True
    """
    if not isinstance(text, str):
        return None
    if found := _VERDICT.findall(text):
        return bool(found[-1].lower() == "yes")
    if found := _BOXED.findall(text):
        return bool(found[-1].lower() == "correct")
    if found := _POINTS.findall(text):
        return int(found[-1]) >= PASSING_POINTS
    return None
