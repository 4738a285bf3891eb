# SPDX-License-Identifier: Apache-2.0
"""What `ns export ID` does: results of an invocation to W&B, MLflow, or a file; `--format inspect`: logs of Inspect;
`--format atif`: trajectories."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

from newskills.base.errors import ConfigError
from newskills.config.command_line import Parsed
from newskills.pipelines.dry_run import show_dry_run
from newskills.pipelines.invocations import invocation_keeper
from newskills.pipelines.results.export_options import LOCAL, ExportOptions

EXPORTERS = {
    "inspect": ("newskills.exchange.inspect_export", "logs"),
    "atif": ("newskills.exchange.atif_export", "trajectories"),
}
"""Format → module whose `export` writes it, and the folder that it writes to (Inspect looks for logs in `logs`)."""


def run(parsed: Parsed[ExportOptions]) -> int:
    if parsed.options.format in EXPORTERS:
        return _to_files(parsed.options, *EXPORTERS[parsed.options.format])
    return invocation_keeper().export(parsed)


def _to_files(options: ExportOptions, module: str, usual_folder: str) -> int:
    """Write the results in the files of another system, and return the exit code. Raises ConfigError, DataError,
    UnknownNameError."""
    export = import_module(module).export
    if options.dest not in ([], [LOCAL]):
        raise ConfigError(
            f"--format {options.format} writes files, so --dest {options.dest[0]} cannot be used with it."
        )
    places: list[tuple[Path, str]] = []
    for name in options.id:
        if Path(name).is_dir():
            places.append((Path(name), ""))
        else:
            places += invocation_keeper().results(name)
    if options.dry_run:
        show_dry_run([("exports", folder, f"to {options.output_dir or usual_folder}") for folder, _ in places])
        return 0
    for folder, model in places:
        for path in export(folder, Path(options.output_dir or usual_folder), model=model):
            sys.stdout.write(f"{path}\n")
    return 0
