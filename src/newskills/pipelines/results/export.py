# SPDX-License-Identifier: Apache-2.0
"""What `ns export ID` does: results of an invocation to W&B, MLflow, or a file; `--format inspect`: logs of Inspect;
`--format atif`: trajectories; `--to`: tables."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

from newskills.base.errors import ConfigError, NewskillsError
from newskills.base.terminal import counted
from newskills.config.command_line import Parsed
from newskills.pipelines.dry_run import show_dry_run
from newskills.pipelines.invocations import invocation_keeper
from newskills.pipelines.notices import print_note
from newskills.pipelines.results.export_options import LOCAL, ExportOptions, TableFormat

EXPORTERS = {
    "inspect": ("newskills.exchange.inspect_export", "logs"),
    "atif": ("newskills.exchange.atif_export", "trajectories"),
}
"""Format → module whose `export` writes it, and the folder that it writes to (Inspect looks for logs in `logs`)."""

TABLES = "tables"
"""Where tables go, if nothing else is named."""


def run(parsed: Parsed[ExportOptions]) -> int:
    """Export the results; return the exit code, 1 where an export failed. Raises as `export_results`."""
    _, failed = _run_export(parsed)
    if failed:
        return 1
    return 0


def export_results(parsed: Parsed[ExportOptions]) -> list[Path] | None:
    """Export the results; return what was written on this machine, None for a dry run. Raises ConfigError, DataError,
    UnknownNameError, RemoteError, StorageError, NewskillsError where an export failed."""
    written, failed = _run_export(parsed)
    if failed:
        raise NewskillsError(f"{counted(failed, 'export')} failed.", hint="The lines above say why.")
    if parsed.options.dry_run:
        return None
    return written


def _run_export(parsed: Parsed[ExportOptions]) -> tuple[list[Path], int]:
    """Export the results; return what was written on this machine, and how many exports failed."""
    if parsed.options.to is not None:
        return _to_tables(parsed.options, parsed.options.to), 0
    if parsed.options.format in EXPORTERS:
        return _to_files(parsed.options, *EXPORTERS[parsed.options.format]), 0
    return invocation_keeper().export(parsed)


def _to_files(options: ExportOptions, module: str, usual_folder: str) -> list[Path]:
    """Write the results in the files of another system, and return these. Raises ConfigError, DataError,
    UnknownNameError."""
    export = import_module(module).export
    if options.dest not in ([], [LOCAL]):
        raise ConfigError(
            f"--format {options.format} writes files, so --dest {options.dest[0]} cannot be used with it."
        )
    places = _results_folders(options)
    if options.dry_run:
        show_dry_run([("exports", folder, f"to {options.output_dir or usual_folder}") for folder, _ in places])
        return []
    written: list[Path] = []
    for folder, model in places:
        for path in export(folder, Path(options.output_dir or usual_folder), model=model):
            sys.stdout.write(f"{path}\n")
            written.append(path)
    return written


def _to_tables(options: ExportOptions, form: TableFormat) -> list[Path]:
    """Write tables of the results as files, and return these. Raises ConfigError, DataError, StorageError."""
    from newskills.view.analysis.files import file_names, write_tables

    if options.format is not None or options.dest:
        raise ConfigError(f"--to {form} writes files, so --format and --dest cannot be used with it.")
    folders = [folder for folder, _ in _results_folders(options)]
    target = Path(options.output_dir or TABLES)
    if options.dry_run:
        show_dry_run([("writes", target / name, "") for name in file_names(form)])
        return []
    notes: list[str] = []
    written = write_tables(folders, form, target, notes)
    for note in notes:
        print_note(note)
    for path in written:
        sys.stdout.write(f"{path}\n")
    return written


def _results_folders(options: ExportOptions) -> list[tuple[Path, str]]:
    """Return the folders that are named, or that belong to an invocation, each with its model."""
    places: list[tuple[Path, str]] = []
    for name in options.id:
        if Path(name).is_dir():
            places.append((Path(name), ""))
        else:
            places += invocation_keeper().results(name)
    return places
