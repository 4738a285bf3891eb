# SPDX-License-Identifier: Apache-2.0
"""What `ns export ID` does with invocations: results to W&B, MLflow, or a file."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from newskills.base.errors import ConfigError
from newskills.base.records import Row
from newskills.base.terminal import printable
from newskills.config.command_line import Parsed
from newskills.pipelines.dry_run import show_dry_run
from newskills.pipelines.results.export_options import LOCAL, ExportOptions
from newskills_evaluator.compile.overrides import value_of
from newskills_evaluator.export_results import DESTINATIONS, ExportPlan, export_results
from newskills_evaluator.oversight import collect_finished
from newskills_evaluator.running.invocations import invocation_jobs

EXPORT = "export"


def export_invocations(parsed: Parsed[ExportOptions]) -> tuple[list[Path], int]:
    """Export the invocations; return what was written on this machine, and how many exports failed. Raises
    UnknownNameError, ConfigError, DataError, RemoteError."""
    options = parsed.options
    dests = options.dest or [LOCAL]
    for name in dests:
        DESTINATIONS.resolve(name)
    changes = _read_changes(parsed, dests)
    written: list[Path] = []
    with tempfile.TemporaryDirectory(prefix="newskills-export-") as fetched:
        failed = sum(
            _export_invocation(name, options, dests, changes, Path(fetched), written) for name in options.id
        )
    if failed:
        sys.stderr.write(f"{failed} exports failed\n")
    return written, failed


def _export_invocation(
    name: str,
    options: ExportOptions,
    dests: Sequence[str],
    changes: Mapping[str, Row],
    fetched: Path,
    written: list[Path],
) -> int:
    """Export the invocation `name`; add what was written to `written`, and return how many destinations failed."""
    entries = invocation_jobs(name)
    settings = {dest: {**_configured_settings(entries[0].config, dest), **changes.get(dest, {})} for dest in dests}
    if options.dry_run:
        show_dry_run(
            [("exports", invocation.job_id, f"{invocation.task} to {', '.join(dests)}") for invocation in entries]
        )
        return 0
    plan = ExportPlan(
        invocation=entries[0].invocation_id,
        executor=entries[0].executor,
        destinations=tuple(dests),
        settings=settings,
        jobs=tuple(collect_finished(entry, os.environ, fetched) for entry in entries),
    )
    return export_results(plan, os.environ, lambda text: print(printable(text), flush=True), written)


def model_of(config: Row | None) -> str:
    """Return the name of the model that a configuration evaluates; empty where it names none."""
    target = ((config or {}).get("target") or {}).get("api_endpoint") or {}
    return str(target.get("model_id") or "")


def _configured_settings(config: Row | None, dest: str) -> Row:
    """Return the settings of the destination in the invocation's own configuration."""
    settings = ((config or {}).get(EXPORT) or {}).get(dest)
    if isinstance(settings, dict):
        return dict(settings)
    return {}


def _read_changes(parsed: Parsed[ExportOptions], dests: Sequence[str]) -> dict[str, Row]:
    """Read changes of destinations from ExportOptions and words such as `export.wandb.project=name`. Raises
    ConfigError for other words."""
    options = parsed.options
    local = {
        "format": options.format,
        "output_dir": options.output_dir,
        "output_filename": options.output_filename,
        "copy_logs": options.copy_logs or None,
    }
    changes: dict[str, Row] = {LOCAL: {key: value for key, value in local.items() if value is not None}}
    for dest in dests:
        if options.log_metrics:
            changes.setdefault(dest, {})["log_metrics"] = list(options.log_metrics)
    for key, text in parsed.overrides.items():
        parts = key.split(".")
        if len(parts) != 3 or parts[0] != EXPORT:
            raise ConfigError(f"{key}=… is not a key of this command.", hint="Write export.DESTINATION.key=value.")
        changes.setdefault(parts[1], {})[parts[2]] = value_of(text)
    return changes
