# SPDX-License-Identifier: Apache-2.0
"""How often Python looks for cycles of objects that nobody refers to, and where."""

from __future__ import annotations

import gc

NEW_OBJECTS = 10_000
"""Between two looks; by itself Python looks after 700. Imports and rows make many objects, and hardly any cycles."""


def collect_less_often() -> None:
    """Collect garbage less often, in a process of our own: a tenth of the CPU time of `ns generate`, and of
    importing torch, went into it."""
    new, *older = gc.get_threshold()
    if new:  # 0: somebody has switched it off
        gc.set_threshold(max(NEW_OBJECTS, new), *older)


class _Process:
    ours = False


def keep_imports() -> None:
    """Exempt imports from garbage collection, in a process of our own that has imported what it runs, also when
    Python ends: a tenth of the CPU time of a small `ns generate`."""
    _Process.ours = True
    gc.freeze()


def keep_later_imports() -> None:
    """Exempt from the search for garbage what a command has imported since `keep_imports`, before work whose end is the
    process's; do nothing where that was not called."""
    if _Process.ours:
        gc.freeze()
