# SPDX-License-Identifier: Apache-2.0
"""What runs in the worker processes of a build."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Struct

from newskills.base.errors import NewskillsError
from newskills.base.records import Row
from newskills.train.data.chunks import ChunkCounts, ChunkWorker
from newskills.train.data.job import BuildJob
from newskills.train.data.partitions import PartitionCounts, PartitionWorker
from newskills.train.data.reading import Chunk


class WorkerTask(Struct, frozen=True, kw_only=True):
    """One of both."""

    chunk: Chunk | None = None
    partition: int | None = None


class WorkerReply(Struct, kw_only=True):
    """The answer to it."""

    chunk: ChunkCounts | None = None
    partition: PartitionCounts | None = None


class Worker:
    """Does tasks; each half is made when first needed."""

    def __init__(self, job: BuildJob, chunks: int) -> None:
        self._job, self._chunks = job, chunks
        self._reader: ChunkWorker | None = None
        self._sorter: PartitionWorker | None = None

    def __call__(self, task: WorkerTask) -> WorkerReply:
        """Do a task: write the file of a chunk or of a partition. Raises DataError, ConfigError, StorageError."""
        if task.chunk is not None:
            self._reader = self._reader or ChunkWorker(self._job)
            return WorkerReply(chunk=self._reader(task.chunk))
        assert task.partition is not None, "a task is one of both"
        self._sorter = self._sorter or PartitionWorker(self._job, self._chunks)
        return WorkerReply(partition=self._sorter(task.partition))


class RayWorker(Struct, frozen=True):
    """What a task of Ray does: a WorkerTask as JSON in `task` → `reply` as JSON, or `kind` and text of an `error`."""

    job: bytes
    chunks: int

    def __call__(self, item: Row) -> Row:
        reply, kind, error = b"", "", ""
        try:
            done = _worker_of(self.job, self.chunks)(msgspec.json.decode(item["task"], type=WorkerTask))
            reply = msgspec.json.encode(done)
        except NewskillsError as problem:
            kind, error = type(problem).__name__, str(problem)
        return {"reply": reply, "kind": kind, "error": error}


@lru_cache(maxsize=1)
def _worker_of(job: bytes, chunks: int) -> Worker:
    """Return the worker of a job, cached for the next task, since processes of Ray do many."""
    return Worker(msgspec.json.decode(job, type=BuildJob), chunks)


def make(config: Row) -> Any:
    """Make the function of a `WorkerPool`, which calls this factory: it takes rows with tasks and returns the
    replies."""
    worker = Worker(msgspec.convert(config["job"], BuildJob), config["chunks"])
    return lambda row: worker(msgspec.convert(row, WorkerTask))
