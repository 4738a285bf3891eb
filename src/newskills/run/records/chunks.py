# SPDX-License-Identifier: Apache-2.0
"""Chunk files → one file, exactly once, whoever finishes last."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from newskills.base.errors import DataError
from newskills.base.store import atomic_write, open_for_reading, waiting_lock
from newskills.run.records.paths import OutputPaths, chunk_path, done_path
from newskills.run.records.state import load_state

MERGE_PATIENCE = 600.0
"""Seconds to wait for another process that merges the same file."""


def count_lines(path: Path) -> int:
    """Lines that hold something. Raises DataError for a last line without its newline."""
    lines = 0
    last = b"\n"
    with open_for_reading(path) as file:
        for last in file:
            lines += bool(last.strip())
    if not last.endswith(b"\n"):
        raise DataError(f"The last line of {path} is incomplete.")
    return lines


def count_chunks(merged: Path, chunks: Sequence[Path], *, expected: int | None = None) -> int:
    """The rows that `merge_chunks` would write. Raises DataError as it does."""
    if not chunks:
        raise DataError(f"There are no chunks to merge into {merged}.")
    rows = sum(count_lines(chunk) for chunk in chunks)
    if expected is not None and rows != expected:
        raise DataError(f"The chunks of {merged} have {rows} rows, expected {expected}.")
    return rows


def merge_chunks(merged: Path, chunks: Sequence[Path], *, expected: int | None = None) -> int:
    """Writes `chunks` one after the other to `merged`, checks the count, then deletes them; returns the rows.

    Raises DataError for a missing or torn chunk or a wrong total (nothing is deleted then), StorageError.
    """
    rows = count_chunks(merged, chunks, expected=expected)
    with atomic_write(merged) as target:
        for chunk in chunks:
            with open_for_reading(chunk) as source:
                shutil.copyfileobj(source, target, 1 << 20)
    if (written := count_lines(merged)) != rows:
        raise DataError(f"{merged} has {written} rows after merging {rows}; the chunks are kept.")
    done_path(merged).touch()
    for chunk in chunks:
        chunk.unlink(missing_ok=True)
    return rows


def _check_same_settings(merged: Path, chunks: Sequence[Path]) -> None:
    """Raises DataError where chunks were made in different ways; a setting that only some of them know is no matter."""
    first: dict[str, object] = {}
    for chunk in chunks:
        state = load_state(OutputPaths(chunk).state)
        for name, value in (state.settings if state is not None else {}).items():
            if name != "chunk_id" and first.setdefault(name, value) != value:
                raise DataError(
                    f"The chunks of {merged} were made with different settings: {chunk.name} has {name} {value}, "
                    f"others have {first[name]}. They are kept, and not joined.",
                    hint="Delete those of one run with their .done files, or start over with --rerun_done.",
                )


def merge_if_complete(merged: Path, num_chunks: int, expected: int | None) -> bool:
    """Merges if every chunk is done; True if `merged` is complete afterwards, by whomever."""
    chunks = [chunk_path(merged, k) for k in range(num_chunks)]
    with waiting_lock(OutputPaths(merged).lock, f"The merge of {merged}", MERGE_PATIENCE):
        if done_path(merged).exists() and merged.exists():
            for chunk in chunks:
                chunk.unlink(missing_ok=True)
            return True
        if not all(chunk.exists() and done_path(chunk).exists() for chunk in chunks):
            return False
        _check_same_settings(merged, chunks)
        merge_chunks(merged, chunks, expected=expected)
        return True
