# SPDX-License-Identifier: Apache-2.0
"""Vectors as sums of unit vectors: `3\\hat{i} - \\mathbf{j}` is `\\langle 3, -1 \\rangle`."""

from __future__ import annotations

import re

_UNIT = re.compile(
    r"\\(?:mathbf|hat|vec|bm|boldsymbol|textbf|widehat|overrightarrow)\s?\{?\s?"
    r"(?:\\(?:mathbf|bm|boldsymbol|hat|vec)\s?\{?\s?)?\\?(?P<axis>[ijk])(?:math)?\s?\}{0,2}"
)
_TIMES = re.compile(r"(?:\\(?:cdot|times|[,;:! ])|\*|\s)+$")
_SIGN_WITHIN = re.compile(r"[+\-−±=,;]")


def as_tuple(text: str, size: int = 0) -> str | None:
    """Return the sum as a tuple in angle brackets, of at least `size` components; None for any other text."""
    components: dict[str, str] = {}
    at = 0
    for mark in _UNIT.finditer(text):
        factor = _read_factor(text[at : mark.start()], first=not components)
        if factor is None or mark["axis"] in components:
            return None
        components[mark["axis"]] = factor
        at = mark.end()
    if len(components) < 2 or text[at:].strip():
        return None
    axes = "ijk" if "k" in components or size > 2 else "ij"
    return f"\\langle {', '.join(components.get(axis, '0') for axis in axes)} \\rangle"


def _read_factor(text: str, *, first: bool) -> str | None:
    """Return what stands before a unit vector, with its sign; None where it is no factor, or where the sign is
    missing."""
    factor = _TIMES.sub("", text.strip().replace("−", "-"))
    sign, value = (factor[:1], factor[1:].strip()) if factor[:1] in ("+", "-") else ("", factor)
    if not sign and not first:
        return None
    if _SIGN_WITHIN.search(value) and not _are_signs_enclosed(value):
        return None
    minus = "-" if sign == "-" else ""
    return minus + (value or "1")


def _are_signs_enclosed(value: str) -> bool:
    """Return whether all signs stand in brackets or braces."""
    depth = 0
    for character in value:
        depth += (character in "({[") - (character in ")}]")
        if depth <= 0 and _SIGN_WITHIN.match(character):
            return False
    return depth == 0
