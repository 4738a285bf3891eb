# SPDX-License-Identifier: Apache-2.0
"""`ns merge_chunks MERGED CHUNK…`: join chunk files by hand."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills.pipelines.data.merge_chunks import MergeChunksOptions, merge_chunk_files

COMMAND = Command(
    name="merge_chunks",
    summary="Join chunk files by hand, in the order given. Runs merge their own chunks; use this for chunks "
    "that were computed in different places.",
    options=MergeChunksOptions,
    result=merge_chunk_files,
    examples=(
        "ns merge_chunks output-rs0.jsonl",
        "ns merge_chunks output-rs0.jsonl output-rs0_chunk_0.jsonl output-rs0_chunk_1.jsonl",
    ),
)
