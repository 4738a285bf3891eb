# SPDX-License-Identifier: Apache-2.0
"""What `ns export ID` does: results of an invocation to W&B, MLflow, or a file; `--format inspect`: logs of Inspect."""

from __future__ import annotations

import sys
from pathlib import Path

from newskills.base.errors import ConfigError
from newskills.config.command_line import Parsed
from newskills.pipelines.dry_run import show_dry_run
from newskills.pipelines.invocations import invocation_keeper
from newskills.pipelines.results.export_options import LOCAL, ExportOptions

INSPECT = "inspect"
LOGS = "logs"
"""Where Inspect looks for logs."""


def run(parsed: Parsed[ExportOptions]) -> int:
    if parsed.options.format == INSPECT:
        return _to_inspect(parsed.options)
    return invocation_keeper().export(parsed)


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
            places += invocation_keeper().results(name)
    if options.dry_run:
        show_dry_run([("exports", folder, f"to {options.output_dir or LOGS}") for folder, _ in places])
        return 0
    for folder, model in places:
        for path in export(folder, Path(options.output_dir or LOGS), model=model):
            sys.stdout.write(f"{path}\n")
    return 0
