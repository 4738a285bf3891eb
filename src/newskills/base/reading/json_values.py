# SPDX-License-Identifier: Apache-2.0
"""Values of JSON that others have written, each in the type that is expected, or empty."""

from __future__ import annotations

from typing import Any

from newskills.base.records import Row


def object_or_empty(value: object) -> Row:
    """Return `value` where it is an object, else an empty one."""
    if isinstance(value, dict):
        return value
    return {}


def list_or_empty(value: object) -> list[Any]:
    """Return `value` where it is a list, else an empty one."""
    if isinstance(value, list):
        return value
    return []


def text_or_empty(value: object) -> str:
    """Return `value` where it is a text, else an empty one."""
    if isinstance(value, str):
        return value
    return ""
