# SPDX-License-Identifier: Apache-2.0
"""Which functions there are: a line of `functions.jsonl` for each, with its command, and what a call returns."""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import Struct


class Function(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A line of the file: `name` in Python, and `command` as `commands.table` has it.

    returns   type of the result where the work was done; empty: None
    meaning   what that holds
    always    each call returns it: there is no dry run and no cluster
    submits   on a cluster the result is the experiment that was submitted
    awaited   a coroutine function
    note      a further sentence of the docstring
    """

    name: str
    command: str
    returns: str = ""
    meaning: str = ""
    always: bool = False
    submits: bool = False
    awaited: bool = False
    note: str = ""

    @property
    def annotation(self) -> str:
        """Return the type of the result where the work is done here, which is what a checker should hold a script to.

        A cluster gives an experiment instead, and a dry run None. Overloads would say so, but for one wrong argument of
        seventy they report no more than that no overload fits (decisions/0037).
        """
        if self.returns:
            return self.returns
        if self.submits:
            return "Experiment | None"
        return "None"


FILE = Path(__file__).with_name("functions.jsonl")
FUNCTIONS = {line.name: line for line in msgspec.json.Decoder(Function).decode_lines(FILE.read_bytes())}

SPELLINGS = {"eval": "evaluate", "evaluate_async": "aevaluate"}
"""Another name → the name of the same function."""


def results_table() -> str:
    """Return the table of docs/python.md: what each function returns; those that return the same share a row."""
    names: dict[tuple[str, str], list[str]] = {}
    for name, function in FUNCTIONS.items():
        meaning = function.meaning or "What was submitted to the cluster."
        names.setdefault((function.annotation.replace(" | ", "` or `"), meaning), []).append(f"`{name}`")
    rows = [f"| {', '.join(each)} | `{kind}` | {meaning} |" for (kind, meaning), each in names.items()]
    return "\n".join(["| function | returns | which holds |", "|---|---|---|", *rows]) + "\n"
