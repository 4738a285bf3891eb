# SPDX-License-Identifier: Apache-2.0
"""Invocations of `ns evaluate`, which newskills-evaluator keeps: what a call of it returns, and what the commands about
jobs and results ask.

It is an application beside the core, so nothing of it is imported here: it is found by the name of its module.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Literal, Protocol, cast

from msgspec import Struct

from newskills.base.callbacks import PrintLine
from newskills.base.libraries import application_module
from newskills.base.records import Row
from newskills.config.command_line import Parsed
from newskills.pipelines.results.export_options import ExportOptions

KEEPER = "newskills_evaluator.running.keeper"
"""Module with `KEEPER`, an InvocationKeeper."""


State = Literal["pending", "running", "success", "failed", "killed"]


class InvocationTask(Struct, frozen=True, kw_only=True):
    """A task: `job_id` as `ns status` takes it, `state` when the call returned, `folder` of the run on its machine."""

    job_id: str
    name: str
    state: State
    exit_code: int | None = None
    folder: Path

    @property
    def scores(self) -> dict[str, float]:
        """Return name of a score → its value; empty where no results lie on this machine (yet)."""
        return invocation_keeper().scores(self.folder / "artifacts")


class Invocation(Struct, frozen=True, kw_only=True):
    """An evaluation that was submitted: `id` for `ns status`, its tasks, the first exit code that is not 0, the
    configuration without its secrets."""

    id: str
    tasks: list[InvocationTask]
    exit_code: int = 0
    config: Row = {}


class KeptInvocation(Protocol):
    """The jobs of an invocation, or one of them."""

    def show_status(self, *, json: bool) -> int:
        """Show how the jobs are doing, and return the exit code."""

    def show_logs(self, say: PrintLine, *, follow: bool) -> int:
        """Show what the jobs have printed; with `follow` until they have ended. Return the exit code."""

    def cancel(self, *, dry_run: bool) -> int:
        """Cancel the jobs that run or wait, and return the exit code."""


class InvocationKeeper(Protocol):
    """Who keeps the store of invocations."""

    def find(self, name: str) -> KeptInvocation | None:
        """Return what `name` means, an id or its beginning; None where it is an experiment, or nothing. Raises
        ConfigError where several begin so."""

    def export(self, parsed: Parsed[ExportOptions]) -> tuple[list[Path], int]:
        """Export invocations to their destinations; return what was written on this machine, and how many exports
        failed. Raises UnknownNameError, ConfigError, DataError, RemoteError."""

    def results(self, name: str) -> list[tuple[Path, str]]:
        """Return the folder of results of each job, with the name of its model. Raises UnknownNameError,
        ConfigError."""

    def scores(self, folder: Path) -> dict[str, float]:
        """Return the scores in a folder of results, by their names; none where there is no score (yet)."""


def find_invocation(name: str) -> KeptInvocation | None:
    """Return the invocation that `name` means; None where it means none, or nobody is installed who keeps them. Raises
    ConfigError where several begin so."""
    if find_spec(KEEPER.partition(".")[0]) is None:
        return None
    return invocation_keeper().find(name)


def invocation_keeper() -> InvocationKeeper:
    """Return who keeps invocations. Raises ConfigError where it is not installed."""
    return cast(InvocationKeeper, application_module(KEEPER, "Invocations of ns evaluate belong").KEEPER)
