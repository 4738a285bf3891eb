# SPDX-License-Identifier: Apache-2.0
"""What a matrix of runs shows of each benchmark, kept between two starts for as long as its files stay the same.

Hundreds of runs are tens of thousands of small files. Each is read once, by a thread; pages show what is there. One
file in the user's cache holds the summaries of the folders that are shown together.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from newskills.base.errors import NewskillsError
from newskills.base.store import write_json
from newskills.view.discovery import BenchmarkFiles, Catalog, Run

FORMAT_VERSION = 2
SAVE_EVERY = 5.0
"""Seconds between two times that summaries are brought to disk, while they are made."""


class CellSummary(Struct, array_like=True, frozen=True):
    """One benchmark of one run. Scores are in per cent; None where there is none. Times in seconds since 1970.

    settings   numbers of `name=value` texts in the table of the file
    """

    fingerprint: str
    metric: str
    value: float | None
    low: float | None
    high: float | None
    total: int
    unscored: int
    truncated: int
    began: float | None
    status: str
    settings: tuple[int, ...]


class _Kept(Struct):
    format: int = FORMAT_VERSION
    version: str = ""
    texts: list[str] = []
    summaries: dict[str, CellSummary] = {}


class Read(Struct, frozen=True, kw_only=True):
    """A summary before it is kept: settings as they are read."""

    summary: CellSummary
    settings: dict[str, str]


Reader = Callable[[Run, BenchmarkFiles], Read]


class Summaries:
    """Safe to be asked by several threads. `reader` reads one benchmark; `version`: of the program that reads, since
    another one may read otherwise."""

    def __init__(self, cache: Path, roots: tuple[Path, ...], version: str, reader: Reader) -> None:
        name = hashlib.blake2b("\0".join(map(str, roots)).encode(errors="replace"), digest_size=12).hexdigest()
        self._path = cache / f"summaries-{name}.json"
        self._version = version
        self._reader = reader
        self._kept = self._load()
        self._numbers = {text: number for number, text in enumerate(self._kept.texts)}
        self._waiting: dict[str, tuple[Run, BenchmarkFiles]] = {}
        self._changed = False
        self._closed = False
        self._work = threading.Condition()
        self._thread = threading.Thread(target=self._keep_up, name="newskills-view-summaries", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread, and keep what it has read."""
        with self._work:
            self._closed = True
            self._work.notify_all()
        self._thread.join()

    @property
    def pending(self) -> int:
        """Benchmarks that are waited for."""
        with self._work:
            return len(self._waiting)

    def ask(self, catalog: Catalog, patience: float) -> None:
        """Read everything that is new or has changed, in the thread, and wait at most `patience` seconds."""
        with self._work:
            shown = set()
            for run in catalog.runs.values():
                for results in run.benchmarks.values():
                    shown.add(str(results.folder))
                    if self.of(results) is None:
                        self._waiting[str(results.folder)] = (run, results)
            for gone in self._kept.summaries.keys() - shown:
                del self._kept.summaries[gone]
            self._work.notify_all()
            self._work.wait_for(lambda: not self._waiting, patience)

    def of(self, results: BenchmarkFiles) -> CellSummary | None:
        """Return the summary of a benchmark as its files are now; None where it is not read yet."""
        summary = self._kept.summaries.get(str(results.folder))
        if summary is not None and summary.fingerprint == results.fingerprint:
            return summary
        return None

    def latest(self, results: BenchmarkFiles) -> CellSummary | None:
        """Return the last summary that was read, though the files may have changed since."""
        return self._kept.summaries.get(str(results.folder))

    def common_settings(self, summaries: Sequence[CellSummary]) -> dict[str, str]:
        """Return the settings that all of these benchmarks were evaluated with, as texts by name."""
        if not summaries:
            return {}
        numbers = set(summaries[0].settings).intersection(*(summary.settings for summary in summaries[1:]))
        pairs = (self._kept.texts[number].partition("=") for number in sorted(numbers))
        return {name: value for name, _, value in pairs}

    def _load(self) -> _Kept:
        try:
            kept = msgspec.json.decode(self._path.read_bytes(), type=_Kept)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
            return _Kept(version=self._version)
        if (kept.format, kept.version) != (FORMAT_VERSION, self._version):
            return _Kept(version=self._version)
        return kept

    def _keep_up(self) -> None:
        saved = time.monotonic()
        while True:
            with self._work:
                if not self._waiting or self._closed or time.monotonic() - saved > SAVE_EVERY:
                    self._save()
                    saved = time.monotonic()
                while not self._waiting and not self._closed:
                    self._work.wait()
                if self._closed:
                    return
                key, (run, results) = next(iter(self._waiting.items()))
            try:
                summary = self._numbered(self._reader(run, results))
            except (NewskillsError, OSError):
                summary = _unreadable_summary(results)
            with self._work:
                self._kept.summaries[key] = summary
                self._changed = True
                if self._waiting[key][1] is results:
                    del self._waiting[key]
                if not self._waiting:
                    self._work.notify_all()

    def _numbered(self, read: Read) -> CellSummary:
        numbers = []
        for name, value in read.settings.items():
            text = f"{name}={value}"
            if text not in self._numbers:
                self._kept.texts.append(text)
                self._numbers[text] = len(self._kept.texts) - 1
            numbers.append(self._numbers[text])
        return msgspec.structs.replace(read.summary, settings=tuple(numbers))

    def _save(self) -> None:
        """Write what is known; a cache that cannot be written is done without."""
        if self._changed:
            self._changed = False
            try:
                write_json(self._path, self._kept)
            except (NewskillsError, OSError):
                return


def _unreadable_summary(results: BenchmarkFiles) -> CellSummary:
    return CellSummary(results.fingerprint, "", None, None, None, 0, 0, 0, None, "unreadable", ())
