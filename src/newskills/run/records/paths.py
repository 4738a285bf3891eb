# SPDX-License-Identifier: Apache-2.0
"""Names of the files of a run (the public contract with users' scripts)."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

from msgspec import Struct

PATIENCE_SECONDS = 120.0
"""Seconds: network file systems remember names for one minute at most, where nobody has set more."""


def output_name(seed: int | None = None, chunk: int | None = None) -> str:
    """Return the file name `output[-rs{seed}][_chunk_{k}].jsonl`."""
    name = "output" if seed is None else f"output-rs{seed}"
    if chunk is None:
        return f"{name}.jsonl"
    return f"{name}_chunk_{chunk}.jsonl"


def chunk_path(merged: Path, chunk: int) -> Path:
    """Return the file of one chunk of `merged`."""
    return merged.with_name(f"{merged.stem}_chunk_{chunk}{merged.suffix}")


def done_path(output: Path) -> Path:
    """Return the path of the marker that generation and grading of `output` succeeded."""
    return output.with_name(f"{output.name}.done")


class OutputPaths(Struct, frozen=True):
    """Everything that belongs to one output file.

    log      records in completion order, until finished
    index    of many records, where each begins in the log; can be made anew from it
    grades   verdicts in completion order, until finished
    grades_index  the same for verdicts
    failed   samples that got no usable reply in the last process
    replies  single replies by request hash (only with the reply cache), until finished
    damaged  lines of logs, and states, that could not be read
    state    what was asked for, and how the last process ended
    lock     held by the process that works on this file
    """

    output: Path

    @property
    def done(self) -> Path:
        return done_path(self.output)

    @property
    def log(self) -> Path:
        return self._beside("-async")

    @property
    def index(self) -> Path:
        return self._beside("-index")

    @property
    def grades(self) -> Path:
        return self._beside("-grades")

    @property
    def grades_index(self) -> Path:
        return self._beside("-grades-index")

    @property
    def failed(self) -> Path:
        return self._beside("-failed")

    @property
    def replies(self) -> Path:
        return self._beside("-replies")

    @property
    def damaged(self) -> Path:
        return self._beside("-damaged")

    @property
    def state(self) -> Path:
        return self._beside(".run.json")

    @property
    def lock(self) -> Path:
        return self.output.with_name(f".{self.output.name}.lock")

    @property
    def replaced(self) -> tuple[Path, ...]:
        """What is not appended to, but written beside its place first."""
        return (self.output, self.log, self.state)

    def see_anew(self) -> None:
        """Return when this machine knows which of these files there are; after `PATIENCE_SECONDS` in any case.

        Another machine may have made or removed them, and clients of network file systems remember names. NFS forgets
        what it knows of a folder that is changed from here, too; elsewhere the names that are listed are waited for.
        """
        folder, until = self.output.parent, time.monotonic() + PATIENCE_SECONDS
        probe = folder / f".look_{os.uname().nodename}_{os.getpid()}"
        with contextlib.suppress(OSError):
            probe.touch()
            probe.unlink()
        working = (self.index, self.grades, self.grades_index, self.failed, self.replies)
        files = (self.done, *self.replaced, *working)
        while time.monotonic() < until:
            names = set(os.listdir(folder))
            if all(os.path.lexists(file) == (file.name in names) for file in files):
                return
            time.sleep(0.5)

    def remove_logs(self) -> None:
        """Delete what only unfinished work needs."""
        for path in (self.failed, self.replies, self.index, self.log):
            path.unlink(missing_ok=True)
        self.remove_grades()

    def remove_grades(self) -> None:
        """Delete the verdicts, which are made anew."""
        for path in (self.grades_index, self.grades):
            path.unlink(missing_ok=True)

    def _beside(self, suffix: str) -> Path:
        return self.output.with_name(f"{self.output.name}{suffix}")
