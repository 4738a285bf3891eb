# SPDX-License-Identifier: Apache-2.0
"""What the commands of the core about jobs and results ask of invocations: `newskills.pipelines.invocations`."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from newskills.base.callbacks import PrintLine
from newskills.base.errors import DataError
from newskills.config.command_line import Parsed
from newskills.pipelines.invocations import InvocationKeeper, KeptInvocation
from newskills.pipelines.results.export_options import ExportOptions
from newskills_evaluator.invocations import InvocationJob
from newskills_evaluator.running.invocations import (
    cancel_jobs,
    find_invocation_jobs,
    invocation_jobs,
    show_logs,
    show_status,
)


class _Jobs(Struct, frozen=True):
    entries: list[InvocationJob]

    def show_status(self, *, json: bool) -> int:
        return show_status(self.entries, json=json)

    def show_logs(self, say: PrintLine, *, follow: bool) -> int:
        return show_logs(self.entries, say, follow=follow)

    def cancel(self, *, dry_run: bool) -> int:
        return cancel_jobs(self.entries, dry_run=dry_run)


class _StoreOfLauncher:
    def find(self, name: str) -> KeptInvocation | None:
        entries = find_invocation_jobs(name)
        if entries is None:
            return None
        return _Jobs(entries)

    def export(self, parsed: Parsed[ExportOptions]) -> tuple[list[Path], int]:
        from newskills_evaluator.running.export import export_invocations

        return export_invocations(parsed)

    def results(self, name: str) -> list[tuple[Path, str]]:
        from newskills_evaluator.running.export import model_of

        return [(entry.folder / "artifacts", model_of(entry.config)) for entry in invocation_jobs(name)]

    def scores(self, folder: Path) -> dict[str, float]:
        from newskills_evaluator.export_results import flat_scores
        from newskills_evaluator.results_yml import task_results

        try:
            return flat_scores(task_results(folder))
        except DataError:
            return {}


KEEPER: InvocationKeeper = _StoreOfLauncher()
