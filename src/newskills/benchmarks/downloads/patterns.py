# SPDX-License-Identifier: Apache-2.0
"""Patterns in sources: brace lists (`a/{x,y}.json`) and globs over the paths of an archive or repository."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable

_LIST = re.compile(r"\{([^{}]+)\}")
_COMMA = re.compile(r"(?<!\\),")


def expand_braces(text: str) -> list[str]:
    """Expand `text` with each brace list replaced by its items in turn: `{a,b}{1,2}` → a1, a2, b1, b2. No nesting.

    `\\,` is a comma within an item.
    """
    match = _LIST.search(text)
    if not match:
        return [text]
    before, after = text[: match.start()], text[match.end() :]
    items = [item.replace("\\,", ",") for item in _COMMA.split(match[1])]
    return [f"{before}{item}{rest}" for item in items for rest in expand_braces(after)]


def select_names(names: Iterable[str], pattern: str) -> list[str]:
    """Return the names that match, each once: in the order of the brace lists, then sorted. `*` matches `/` too.

    Files that archivers of one vendor add (`._x`) are left out.
    """
    visible = sorted(name for name in names if not name.rpartition("/")[2].startswith("._"))
    selected: dict[str, None] = {}
    for glob in expand_braces(pattern):
        matches = re.compile(fnmatch.translate(glob)).match
        selected.update(dict.fromkeys(name for name in visible if matches(name)))
    return list(selected)
