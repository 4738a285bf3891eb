# SPDX-License-Identifier: Apache-2.0
"""What `ns merge_chunks MERGED CHUNK…` does: join chunk files by hand."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from msgspec import Struct

from newskills.base.errors import ConfigError
from newskills.base.terminal import counted
from newskills.config.command_line import Parsed
from newskills.pipelines.dry_run import Step, show_dry_run
from newskills.pipelines.options import DryRun, doc
from newskills.run.records.chunks import count_chunks, count_lines, merge_chunks
from newskills.run.records.paths import done_path
from newskills.run.reporting.results import chunk_files


class MergeChunksOptions(Struct, frozen=True, kw_only=True):
    merged: Annotated[str, doc("file to write", {"positional": True})]
    chunks: Annotated[
        list[str],
        doc(
            "chunk files, in order; deleted once the merged file is complete (default: the files beside "
            "MERGED, _chunk_0, _chunk_1, … or -chunk0, -chunk1, …)",
            {"positional": True},
        ),
    ] = []
    expected: Annotated[int | None, doc("number of rows that the merged file must have")] = None
    dry_run: DryRun = False


class MergedChunks(Struct, frozen=True):
    """The file that was written of chunks, and its number of rows."""

    output: Path
    rows: int


def merge_chunk_files(parsed: Parsed[MergeChunksOptions]) -> MergedChunks | None:
    """Merge for Python, and return what was written, None for a dry run.

    Raises ConfigError where the merged file exists, DataError for chunks that do not fit.
    """
    options = parsed.options
    merged = Path(options.merged)
    chunks = [Path(chunk) for chunk in options.chunks] or chunk_files(merged)
    if merged.exists():
        raise ConfigError(f"{merged} already exists.", hint="Move that file away first.")
    if options.dry_run:
        rows = count_chunks(merged, chunks, expected=options.expected)
        rows_by_chunk = {chunk: counted(count_lines(chunk), "row") for chunk in chunks}
        steps: list[Step] = [("reads", chunk, f"{held}; then deletes it") for chunk, held in rows_by_chunk.items()]
        show_dry_run([*steps, ("writes", merged, counted(rows, "row")), ("writes", done_path(merged), "empty")])
        return None
    rows = merge_chunks(merged, chunks, expected=options.expected)
    sys.stdout.write(f"{merged}: {counted(rows, 'row')}\n")
    return MergedChunks(merged, rows)
