# SPDX-License-Identifier: Apache-2.0
"""Text for terminals and logs."""

from __future__ import annotations

from collections.abc import Sequence


def counted(number: int, noun: str) -> str:
    """Format a number with its noun: `1 row`, `2 rows`."""
    if number == 1:
        return f"{number} {noun}"
    return f"{number} {noun}s"


def format_first(names: Sequence[str], most: int) -> str:
    """Format the first `most` names as a list: `a, b, …` where there are more."""
    shown = ", ".join(names[:most])
    if len(names) > most:
        return f"{shown}, …"
    return shown


def print_now(text: str) -> None:
    """Print a line that whoever reads along sees at once."""
    print(text, flush=True)


def listed(names: Sequence[str], most: int = 12) -> str:
    """Return `a, b, c`, and how many more there are where not all are named."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def printable(text: str) -> str:
    """Return `text` without anything that a terminal would obey: control and format characters are shown as
    escapes."""
    return "".join(ch if ch in "\n\t" or ch.isprintable() else ch.encode("unicode_escape").decode() for ch in text)
