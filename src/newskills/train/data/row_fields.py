# SPDX-License-Identifier: Apache-2.0
"""Fields of rows that say what a model was told or thought, whatever else a row holds: none is lost in silence.

Standard library only: it also runs in the images of trainers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from newskills.base.errors import DataError

if TYPE_CHECKING:
    from newskills.base.records import Row

SYSTEM = ("system", "system_prompt")
REASONING = ("reasoning_content", "reasoning", "thinking")
TOLD = ("instruction", *SYSTEM, "history")
"""What stood before the question, as Alpaca's rows and those of LLaMA-Factory name it."""


def field_text(row: Mapping[str, Any], *names: str) -> str:
    """Return the first of these fields that is a text and not empty, else an empty text."""
    for name in names:
        value = row.get(name)
        if isinstance(value, str) and value.strip():
            return value
    return ""


def reasoning_of(row: Mapping[str, Any]) -> str:
    """Return the reasoning that a row or a message keeps apart; `reasoning: on` is a switch, and none."""
    text = field_text(row, REASONING[0])
    return text or next((value for name in REASONING if " " in (value := field_text(row, name).strip())), "")


def lost_field(row: Mapping[str, Any], names: Iterable[str], texts: str) -> str | None:
    """Return the first of the fields `names` that is not empty and does not stand in `texts`."""
    for name in names:
        value = row.get(name)
        if isinstance(value, str) and value.strip() and value.strip() not in texts:
            return name
        if isinstance(value, list | dict) and value:
            return name
    return None


def refuse_lost(row: Row, names: Iterable[str], texts: str, where: str, hint: str) -> None:
    """Raise DataError for what `lost_field` finds."""
    name = lost_field(row, names, texts)
    if name is not None:
        raise DataError(f"{where}: the field `{name}` would be lost.", hint=hint)
