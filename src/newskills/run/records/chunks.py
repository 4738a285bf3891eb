# SPDX-License-Identifier: Apache-2.0
"""Chunk files → one file, exactly once, whoever finishes last."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import IO

from newskills.base.errors import DataError
from newskills.base.store import atomic_write, count_rows, open_for_reading, waiting_lock
from newskills.run.records.paths import OutputPaths, chunk_path, done_path
from newskills.run.records.state import load_state

MERGE_PATIENCE = 600.0
"""Seconds to wait for another process that merges the same file."""
_BLOCK_BYTES = 1 << 20
_GOLDEN = (math.sqrt(5) - 1) / 2


def count_lines(path: Path) -> int:
    """Count the lines that are not blank. Raises DataError for a last line without its newline."""
    with open_for_reading(path) as file:
        if file.seek(0, os.SEEK_END):
            file.seek(-1, os.SEEK_END)
            _check_whole(path, file.read(1))
    return count_rows(path)


def count_chunks(merged: Path, chunks: Sequence[Path], *, expected: int | None = None) -> int:
    """Return the number of rows that `merge_chunks` would write. Raises DataError as it does."""
    if not chunks:
        raise _nothing_to_merge(merged)
    rows = sum(count_lines(chunk) for chunk in chunks)
    _check_total(merged, rows, expected)
    return rows


def merge_chunks(merged: Path, chunks: Sequence[Path], *, expected: int | None = None) -> int:
    """Write `chunks` one after the other to `merged`, check the count, then delete them; return the rows.

    They are read once. Raises DataError for a missing or torn chunk or a wrong total (nothing is deleted then),
    StorageError.
    """
    if not chunks:
        raise _nothing_to_merge(merged)
    with atomic_write(merged) as target:
        rows = sum(_append_chunk(chunk, target) for chunk in chunks)
        _check_total(merged, rows, expected)
        size = target.tell()
    if (written := merged.stat().st_size) != size:
        raise DataError(f"{merged} has {written} bytes after merging {size}; the chunks are kept.")
    done_path(merged).touch()
    for chunk in chunks:
        chunk.unlink(missing_ok=True)
    return rows


def _append_chunk(chunk: Path, target: IO[bytes]) -> int:
    """Append a chunk to `target`; return its number of rows, as `count_lines` does. Raises DataError."""
    rows, last = 0, b"\n"
    with open_for_reading(chunk) as source:
        while lines := source.readlines(_BLOCK_BYTES):
            target.writelines(lines)
            rows += len(lines) - sum(map(bytes.isspace, lines))
            last = lines[-1]
    _check_whole(chunk, last)
    return rows


def _check_whole(path: Path, last: bytes) -> None:
    if not last.endswith(b"\n"):
        raise DataError(f"The last line of {path} is incomplete.")


def _check_total(merged: Path, rows: int, expected: int | None) -> None:
    if expected is not None and rows != expected:
        raise DataError(f"The chunks of {merged} have {rows} rows, expected {expected}.")


def _nothing_to_merge(merged: Path) -> DataError:
    return DataError(f"There are no chunks to merge into {merged}.")


def _check_same_settings(merged: Path, chunks: Sequence[Path]) -> None:
    """Raise DataError where chunks were made in different ways; a setting that only some of them know is no matter."""
    first: dict[str, object] = {}
    for chunk in chunks:
        state = load_state(OutputPaths(chunk).state)
        settings = state.settings if state is not None else {}
        for name, value in settings.items():
            if name != "chunk_id" and first.setdefault(name, value) != value:
                raise DataError(
                    f"The chunks of {merged} were made with different settings: {chunk.name} has {name} {value}, "
                    f"others have {first[name]}. They are kept, and not joined.",
                    hint="Delete those of one run with their .done files, or start over with --rerun_done.",
                )


def merge_if_complete(merged: Path, num_chunks: int, expected: int | None, *, first: int = 0) -> bool:
    """Merge if every chunk is done; return True if `merged` is complete afterwards, by whomever.

    `first`: chunk to look at first; the caller's own, so that callers look in different orders.
    """
    with waiting_lock(OutputPaths(merged).lock, f"The merge of {merged}", MERGE_PATIENCE):
        if done_path(merged).exists() and merged.exists():
            # They are deleted in order: where the last one is left, a kill came before it.
            if chunk_path(merged, num_chunks - 1).exists():
                for k in range(num_chunks):
                    chunk_path(merged, k).unlink(missing_ok=True)
            return True
        if not all(_is_done(chunk_path(merged, k)) for k in _scatter_chunks(num_chunks, first)):
            return False
        chunks = [chunk_path(merged, k) for k in range(num_chunks)]
        _check_same_settings(merged, chunks)
        merge_chunks(merged, chunks, expected=expected)
        return True


def _is_done(chunk: Path) -> bool:
    return done_path(chunk).exists() and chunk.exists()


def _scatter_chunks(chunks: int, first: int) -> Iterator[int]:
    """Yield all chunks, some of them twice, in scattered order. Neighbours mostly finish at about the same time:
    steps of the golden ratio find an open one after a few steps, whatever the order in which chunks finish."""
    steps = (int((first / chunks + turn * _GOLDEN) % 1 * chunks) for turn in range(chunks))
    return chain(steps, range(chunks))
