# SPDX-License-Identifier: Apache-2.0
"""From the name of a command to the command: only then is anything of it imported."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from newskills.commands.table import canonical, module_of

if TYPE_CHECKING:
    from newskills.commands.command import Command

BENCHMARK_LISTS = (["list"], ["list", "benchmarks"])


def load(name: str) -> Command[Any]:
    """Return the command called `name` (either spelling). Raises UnknownNameError."""
    command: Command[Any] = import_module(module_of(canonical(name))).COMMAND
    return command


def light(words: list[str]) -> bool:
    """Show the plain list of benchmarks if `words` ask for it, which needs no options and hence nothing of `Command`;
    else return False."""
    if words not in BENCHMARK_LISTS:
        return False
    from newskills.pipelines.start.benchmark_list import show_benchmarks

    show_benchmarks()
    return True
