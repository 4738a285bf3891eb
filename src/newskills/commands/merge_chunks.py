# SPDX-License-Identifier: Apache-2.0
"""`ns merge_chunks MERGED CHUNK…`: join chunk files by hand."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from msgspec import Struct

from newskills.base.errors import ConfigError
from newskills.commands._command import Command
from newskills.commands._options import doc
from newskills.config.command_line import Parsed
from newskills.run.chunks import merge_chunks


class Options(Struct, frozen=True, kw_only=True):
    merged: Annotated[str, doc("file to write", {"positional": True})]
    chunks: Annotated[
        list[str], doc("chunk files, in order; deleted once the merged file is whole", {"positional": True})
    ] = []
    expected: Annotated[int | None, doc("rows that there must be")] = None


def run(parsed: Parsed[Options]) -> int:
    options = parsed.options
    merged = Path(options.merged)
    if merged.exists():
        raise ConfigError(f"{merged} exists already.", hint="Move it away first.")
    rows = merge_chunks(merged, [Path(chunk) for chunk in options.chunks], expected=options.expected)
    sys.stdout.write(f"{merged}: {rows} rows\n")
    return 0


COMMAND = Command(
    name="merge_chunks",
    summary="Join chunk files by hand, in the order given. Runs merge their own chunks; this is for chunks that "
    "were computed in different places.",
    options=Options,
    run=run,
    examples=("ns merge_chunks output-rs0.jsonl output-rs0_chunk_0.jsonl output-rs0_chunk_1.jsonl",),
)
