# SPDX-License-Identifier: Apache-2.0
"""JSON as other programs write it: with NaN and Infinity, halves of surrogate pairs, and integers of any size."""

from __future__ import annotations

import json
from typing import Any

_MAX_INTEGER_DIGITS = 18
"""Digits of the integers that our own files hold."""


def load_json(text: bytes | str) -> Any:
    """Read JSON; NaN and infinities stay floats, integers that are too long become texts. Raises ValueError,
    RecursionError."""
    return json.loads(text, parse_int=_integer_or_text)


def finite_json(value: Any) -> Any:
    """Return the value with None in place of every number that strict JSON does not have, however deep. Raises
    RecursionError."""
    if isinstance(value, float):
        if value - value == 0:
            return value
        return None
    if isinstance(value, list):
        return [finite_json(item) for item in value]
    if isinstance(value, dict):
        return {key: finite_json(item) for key, item in value.items()}
    return value


def _integer_or_text(digits: str) -> int | str:
    if len(digits) <= _MAX_INTEGER_DIGITS:
        return int(digits)
    return digits
