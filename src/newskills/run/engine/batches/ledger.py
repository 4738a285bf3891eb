# SPDX-License-Identifier: Apache-2.0
"""Files of batches: what is to be submitted, written before that, and what came of it.

Of each batch `NAME.jsonl` (its requests), `NAME.json` (a BatchRecord) and, once it has ended, `NAME-results.jsonl`.
"""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import msgspec
from msgspec import Struct

from newskills.base.errors import storage_error
from newskills.base.store import atomic_write, hold_lock, write_json
from newskills.models.batch_apis.service import RowResult
from newskills.models.config import ServerConfig

BATCHES_FOLDER = "batches"


class BatchRecord(Struct, kw_only=True):
    """What is known of a batch. `handle`: the provider's name of it, empty until it has confirmed that it has it.

    server          settings by which the provider can be asked; never a key
    guessed         it was found at the provider, not submitted by the process that wrote the handle
    strangers       handles of batches that were taken for this one, until their results were read
    written, submitted, looked, ended  times; `ended` once its results are here, or it is known to have none
    state, done     what the provider said when it was last asked
    answered        requests with a reply
    refused         requests with an error that asking again does not change
    unanswered      requests with another error, or without a result: they are asked again
    unknown, twice, damaged  lines of results that belong to no request, to one that had a result already, or to nothing
    """

    name: str
    server: dict[str, str]
    address: str
    endpoint: str
    rows: int
    written: float
    handle: str = ""
    guessed: bool = False
    strangers: list[str] = []
    submitted: float = 0.0
    looked: float = 0.0
    ended: float = 0.0
    state: str = ""
    done: int = 0
    answered: int = 0
    refused: int = 0
    unanswered: int = 0
    unknown: int = 0
    twice: int = 0
    damaged: int = 0

    @property
    def model(self) -> str:
        return self.server.get("model", "")


class _Key(Struct):
    custom_id: str = ""
    key: str = ""


_keys = msgspec.json.Decoder(_Key)


class ResultPlace(Struct, frozen=True):
    """Where a result stands."""

    batch: str
    offset: int


class BatchLedger:
    """The batches in `folder` of the model of `server` at `address`.

    `batch_of`: key of a request → the newest batch that has it; `results`: key → where its result is.
    """

    def __init__(self, folder: Path, server: ServerConfig, address: str) -> None:
        self.folder = folder
        named = {name: getattr(server, name) for name in ("server_type", "model", "base_url", "api_key_env_var")}
        self._server = {name: value for name, value in named.items() if value}
        self._address = address
        self.records: dict[str, BatchRecord] = {}
        self.batch_of: dict[str, str] = {}
        self.results: dict[str, ResultPlace] = {}

    def load(self, read: Callable[[bytes], RowResult]) -> None:
        """Read what earlier processes have left."""
        for record in sorted(read_records(self.folder), key=lambda record: record.written):
            if (record.model, record.address) != (self._server.get("model", ""), self._address):
                continue
            self.records[record.name] = record
            for key in self.keys(record):
                self.batch_of[key] = record.name
                self.results.pop(key, None)
            if record.ended:
                for key, place, _ in self.scan(record, read):
                    if self.batch_of.get(key) == record.name:
                        self.results.setdefault(key, place)

    def begin(self, endpoint: str, lines: Sequence[tuple[str, bytes]]) -> BatchRecord:
        """Write down a batch of (key, line) that is about to be submitted. Raises StorageError."""
        now = time.time()
        digest = hashlib.blake2b(f"{now} {[key for key, _ in lines]}".encode(), digest_size=4).hexdigest()
        record = BatchRecord(
            name=f"ns-{time.strftime('%Y%m%d-%H%M%S', time.gmtime(now))}-{digest}",
            server=self._server,
            address=self._address,
            endpoint=endpoint,
            rows=len(lines),
            written=now,
        )
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise storage_error(error, self.folder) from error
        with atomic_write(self.rows_file(record)) as file:
            file.writelines(line + b"\n" for _, line in lines)
        self.save(record)
        for key, _ in lines:
            self.batch_of[key] = record.name
            self.results.pop(key, None)
        return record

    def save(self, record: BatchRecord) -> None:
        """Write the record. Raises StorageError."""
        self.records[record.name] = record
        write_json(self.folder / f"{record.name}.json", record)

    def drop(self, record: BatchRecord) -> None:
        """Forget a batch that was never submitted."""
        for key in self.keys(record):
            if self.batch_of.get(key) == record.name:
                del self.batch_of[key]
        del self.records[record.name]
        for path in (self.folder / f"{record.name}.json", self.rows_file(record), self.lock_file(record)):
            path.unlink(missing_ok=True)

    def read_again(self, record: BatchRecord) -> BatchRecord:
        """Return the record as another process may have written it meanwhile."""
        fresh = _read_batch_record(self.folder / f"{record.name}.json") or record
        self.records[record.name] = fresh
        return fresh

    def lock(self, record: BatchRecord) -> AbstractContextManager[str]:
        """Hold what only one process may do with a batch: to submit it. Raises LockedError, StorageError."""
        return hold_lock(self.lock_file(record), f"The batch {record.name}")

    def lock_file(self, record: BatchRecord) -> Path:
        return self.folder / f".{record.name}.lock"

    def rows_file(self, record: BatchRecord) -> Path:
        return self.folder / f"{record.name}.jsonl"

    def results_file(self, batch: str) -> Path:
        return self.folder / f"{batch}-results.jsonl"

    def keys(self, record: BatchRecord) -> Iterator[str]:
        """Yield the keys of a batch, in the order of its file."""
        with contextlib.suppress(FileNotFoundError), self.rows_file(record).open("rb") as file:
            for line in file:
                row = _keys.decode(line)
                yield row.custom_id or row.key

    async def keep(self, record: BatchRecord, files: Sequence[AsyncIterator[bytes]]) -> None:
        """Write the results of a batch. Raises StorageError, and what the download raises."""
        with atomic_write(self.results_file(record.name)) as out:
            for file in files:
                last = b"\n"
                async for piece in file:
                    out.write(piece)
                    last = piece or last
                if not last.endswith(b"\n"):
                    out.write(b"\n")

    def scan(
        self, record: BatchRecord, read: Callable[[bytes], RowResult]
    ) -> Iterator[tuple[str, ResultPlace, RowResult | None]]:
        """Yield (key, place, result) of each line of results; key "" and no result for a damaged one."""
        with contextlib.suppress(FileNotFoundError), self.results_file(record.name).open("rb") as file:
            offset = 0
            for line in file:
                place, offset = ResultPlace(record.name, offset), offset + len(line)
                if not line.strip():
                    continue
                try:
                    result = read(line)
                except (msgspec.MsgspecError, UnicodeDecodeError):
                    yield "", place, None
                else:
                    yield result.key, place, result

    def result_at(self, place: ResultPlace, read: Callable[[bytes], RowResult]) -> RowResult:
        """Return the result at a place."""
        with self.results_file(place.batch).open("rb") as file:
            file.seek(place.offset)
            return read(file.readline())


def read_records(folder: Path) -> list[BatchRecord]:
    """Return the batches in `folder`; those whose record cannot be read are left out."""
    return [record for path in folder.glob("ns-*.json") if (record := _read_batch_record(path)) is not None]


def _read_batch_record(path: Path) -> BatchRecord | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=BatchRecord)
    except (FileNotFoundError, msgspec.MsgspecError, UnicodeDecodeError):
        return None
