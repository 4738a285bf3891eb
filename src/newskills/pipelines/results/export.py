# SPDX-License-Identifier: Apache-2.0
"""What `ns export ID` does: results of an invocation to W&B, MLflow, or a file; `--format inspect`: logs of Inspect."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

from msgspec import Struct

from newskills.base.errors import ConfigError
from newskills.base.records import Row
from newskills.base.terminal import printable
from newskills.config.command_line import Parsed
from newskills.pipelines.dry_run import show_dry_run
from newskills.pipelines.nemo_evaluator.invocations import invocation
from newskills.pipelines.options import DryRun, doc

LOCAL, EXPORT, INSPECT = "local", "export", "inspect"
LOGS = "logs"
"""Where Inspect looks for logs."""


class ExportOptions(Struct, frozen=True, kw_only=True):
    id: Annotated[
        list[str],
        doc(
            "invocation of ns evaluate: its id, the beginning of an id, or ID.INDEX for one job; with "
            "--format inspect also results folders",
            {"positional": True},
        ),
    ]
    dest: Annotated[list[str], doc("destination: local (the default), wandb, mlflow, or one of your own")] = []
    format: Annotated[
        str | None, doc("json or csv (for local): one file with all scores; inspect: one log per benchmark")
    ] = None
    output_dir: Annotated[str | None, doc("for local and inspect: folder to write to")] = None
    output_filename: Annotated[str | None, doc("for local: name of the file")] = None
    copy_logs: Annotated[bool, doc("for local: also copy the logs")] = False
    log_metrics: Annotated[list[str], doc("only scores whose name contains one of these texts")] = []
    dry_run: DryRun = False


def run(parsed: Parsed[ExportOptions]) -> int:
    from newskills.interop.export_results import DESTINATIONS

    options = parsed.options
    if options.format == INSPECT:
        return _to_inspect(options)
    dests = options.dest or [LOCAL]
    for name in dests:
        DESTINATIONS.resolve(name)
    changes = _changes(parsed, dests)
    with tempfile.TemporaryDirectory(prefix="newskills-export-") as fetched:
        failed = sum(_export_invocation(name, options, dests, changes, Path(fetched)) for name in options.id)
    if failed:
        sys.stderr.write(f"{failed} exports failed\n")
    return 1 if failed else 0


def _export_invocation(
    name: str, options: ExportOptions, dests: Sequence[str], changes: Mapping[str, Row], fetched: Path
) -> int:
    """Export the invocation `name`, and return how many destinations failed."""
    from newskills.interop.export_results import ExportPlan, export_results
    from newskills.interop.oversight import collect_finished

    entries = invocation(name)
    settings = {dest: {**_kept(entries[0].config, dest), **changes.get(dest, {})} for dest in dests}
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
    return export_results(plan, os.environ, lambda text: print(printable(text), flush=True))


def _to_inspect(options: ExportOptions) -> int:
    """Write the results as logs of Inspect, and return the exit code. Raises ConfigError, DataError,
    UnknownNameError."""
    from newskills.exchange.inspect_export import export

    if options.dest not in ([], [LOCAL]):
        raise ConfigError(f"--format inspect writes files, so --dest {options.dest[0]} cannot be used with it.")
    places: list[tuple[Path, str]] = []
    for name in options.id:
        if Path(name).is_dir():
            places.append((Path(name), ""))
        else:
            places += [(entry.folder / "artifacts", _model(entry.config)) for entry in invocation(name)]
    if options.dry_run:
        show_dry_run([("exports", folder, f"to {options.output_dir or LOGS}") for folder, _ in places])
        return 0
    for folder, model in places:
        for path in export(folder, Path(options.output_dir or LOGS), model=model):
            sys.stdout.write(f"{path}\n")
    return 0


def _model(config: Row | None) -> str:
    target = ((config or {}).get("target") or {}).get("api_endpoint") or {}
    return str(target.get("model_id") or "")


def _kept(config: Row | None, dest: str) -> Row:
    """Return the settings of the destination in the invocation's own configuration."""
    settings = ((config or {}).get(EXPORT) or {}).get(dest)
    return dict(settings) if isinstance(settings, dict) else {}


def _changes(parsed: Parsed[ExportOptions], dests: Sequence[str]) -> dict[str, Row]:
    """Read changes of destinations from ExportOptions and words such as `export.wandb.project=name`. Raises
    ConfigError for other words."""
    from newskills.interop.compile.overrides import value_of

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
