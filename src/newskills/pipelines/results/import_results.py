# SPDX-License-Identifier: Apache-2.0
"""What `ns import PATH` does: results of other evaluation systems, for tables with intervals beside our own."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Struct

from newskills.base.terminal import printable
from newskills.config.command_line import Parsed
from newskills.pipelines.dry_run import show_dry_run
from newskills.pipelines.notices import print_note
from newskills.pipelines.options import DryRun, doc


class ImportOptions(Struct, frozen=True, kw_only=True):
    path: Annotated[str, doc("file or folder with the results", {"positional": True})]
    output_dir: Annotated[
        str, doc("folder to write the records to; then run: ns summarize_results OUTPUT_DIR")
    ] = "imported"
    format: Annotated[
        Literal["atif", "evalscope", "inspect", "lm-eval", "nemo-evaluator", "nemo-gym", "nemo-skills"] | None,
        doc("system that wrote the results (default: detected)"),
    ] = None
    score: Annotated[
        str | None,
        doc(
            "score to read as the verdict: metric of lm-eval, score of EvalScope, scorer of nemo-evaluator, "
            "SCORER or SCORER.KEY of Inspect (default: the first)"
        ),
    ] = None
    benchmark: Annotated[
        str | None, doc("benchmark name to write, if there is only one (default: its name in the results)")
    ] = None
    dry_run: DryRun = False


def run(parsed: Parsed[ImportOptions]) -> int:
    import_results(parsed)
    return 0


def import_results(parsed: Parsed[ImportOptions]) -> list[Path] | None:
    """Import, and return the folders that were written, one for each benchmark; None for a dry run. Raises DataError,
    UnknownNameError, StorageError."""
    from newskills.exchange.importers import ImportSource, read, rename_benchmark, write_import

    options = parsed.options
    imported = read(ImportSource(path=Path(options.path), score=options.score or ""), options.format or "")
    if options.benchmark:
        imported = rename_benchmark(imported, options.benchmark)
    for item in imported:
        for note in item.notes:
            print_note(printable(note))
    counts = [sum(map(len, item.seeds.values())) for item in imported]
    if options.dry_run:
        steps = zip(imported, counts, strict=True)
        show_dry_run([("imports", item.benchmark, f"{count} records") for item, count in steps])
        return None
    output_dir = Path(options.output_dir)
    folders = []
    for item, count in zip(imported, counts, strict=True):
        folder = write_import(item, output_dir)
        folders.append(folder)
        sys.stdout.write(f"{printable(item.benchmark)}: {count} records in {folder}\n")
    for results in dict.fromkeys(item.results_dir(output_dir) for item in imported):
        sys.stdout.write(f"next: ns summarize_results {results}\n")
    return folders
