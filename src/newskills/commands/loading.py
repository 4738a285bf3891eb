# SPDX-License-Identifier: Apache-2.0
"""From the name of a command to the command: only then is anything of it imported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from newskills.base.libraries import application_module
from newskills.commands.table import canonical_name, module_of

if TYPE_CHECKING:
    from newskills.commands.command import Command

BENCHMARK_LISTS = (["list"], ["list", "benchmarks"])
ENTRY_POINTS = "newskills.commands"
"""Group of entry points by which other packages add commands; they are read only for a word that no command has."""


def load_command(name: str) -> Command[Any]:
    """Return the command called `name` (either spelling). Raises UnknownNameError, and ConfigError where it belongs to
    an application that is not installed."""
    from newskills.base.errors import UnknownNameError

    try:
        module = module_of(canonical_name(name))
    except UnknownNameError:
        if (added := _added_command(name)) is None:
            raise
        return added
    command: Command[Any] = application_module(module).COMMAND
    return command


def _added_command(name: str) -> Command[Any] | None:
    """Return the command of that name which an installed package adds."""
    from importlib.metadata import entry_points

    folded = name.replace("-", "_")
    for entry in entry_points(group=ENTRY_POINTS):
        if entry.name == folded:
            command: Command[Any] = entry.load()
            return command
    return None


def show_plain_list(words: list[str]) -> bool:
    """Show the plain list of benchmarks if `words` ask for it, which needs no options and hence nothing of `Command`;
    else return False."""
    if words not in BENCHMARK_LISTS:
        return False
    from newskills.pipelines.start.benchmark_list import show_benchmarks

    show_benchmarks()
    return True
