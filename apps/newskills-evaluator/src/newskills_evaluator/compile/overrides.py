# SPDX-License-Identifier: Apache-2.0
"""`key.sub=value` words of the command line."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from newskills.base.records import Row
from newskills.config.values import parse_value
from newskills_evaluator.compile.interpolate import MISSING
from newskills_evaluator.compile.tree import set_at_path, split_path


def apply_overrides(tree: Row, overrides: Mapping[str, str]) -> None:
    """Lay the overrides over `tree`, in their order. Raises ConfigError for a value in the way, or one that
    cannot be read."""
    for key, text in overrides.items():
        set_at_path(tree, split_path(key), value_of(text))


def value_of(text: str) -> Any:
    """Read null, true, 0.6, [a,b], {a: 1}, 'text'; a plain text with a reference, and `???`, stay as they are.

    Inside brackets, references stand in quotes. Raises ConfigError.
    """
    if text == MISSING or ("${" in text and text[:1] not in "[{'\""):
        return text
    return parse_value(text)


def group_choices(overrides: Mapping[str, str], groups: Collection[str]) -> dict[str, str | None]:
    """Return the overrides that choose another option of a group of the defaults list: `deployment=vllm`."""
    return {
        key: None if text == "null" else str(text)
        for key, text in overrides.items()
        if key in groups and text[:1] not in ("{", "[")
    }
