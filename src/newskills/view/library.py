# SPDX-License-Identifier: Apache-2.0
"""What pages are made from: the catalog of the given folders, and indexes that a thread keeps up to date."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from newskills._version import __version__
from newskills.base.cache import cache_folder
from newskills.base.errors import DataError, NewskillsError, UnknownNameError
from newskills.view.discovery import BenchmarkFiles, Catalog, OutputFile, Run, Training, discover_all
from newskills.view.folders import Folders
from newskills.view.index import FileIndex
from newskills.view.summaries import Reader, Summaries

LOOK_EVERY = 2.0
"""Seconds between two looks at the folders, while somebody asks."""
LOOK_SHARE = 10
"""Times that a look took must pass before the next one: large folders, and those behind a network, are looked at less
often."""
PATIENCE_SECONDS = 0.3
"""Seconds that a page waits for records to be indexed; then it shows what there is."""
QUICK_LOOK = 0.3
"""Seconds of a look at the folders that a page waits for."""
EXPORT_PATIENCE_SECONDS = 86_400.0
"""Seconds that an export waits."""
MOST_INDEXES = 256
"""Of files that were asked for last; others are loaded again when they are asked for."""


class IndexedBenchmark(NamedTuple):
    """A benchmark of a run, and the indexes of its files in their order."""

    run: Run
    results: BenchmarkFiles
    indexes: list[FileIndex]

    @property
    def progress(self) -> float:
        """Share of all bytes that are indexed, 0–1."""
        total = sum(index.target for index in self.indexes)
        if not total:
            return 1.0
        return sum(index.progress * index.target for index in self.indexes) / total


class Library:
    """Safe to be asked by several threads at once."""

    def __init__(self, places: Sequence[Path], *, wait: bool = False) -> None:
        """Open the folders; `wait`: pages are made when all records are indexed, not while they are. Raises
        DataError."""
        self.folders = Folders(places)
        self._wait = wait
        self._cache = cache_folder() / "view"
        self._lock = threading.Lock()
        self._catalog: Catalog | None = None
        self._look_again = 0.0
        self._look_seconds = 0.0
        self._look_wanted = True
        self._summaries: Summaries | None = None
        self._indexes: OrderedDict[Path, FileIndex] = OrderedDict()
        self._waiting: dict[Path, FileIndex] = {}
        self._work = threading.Condition(self._lock)
        self._errors: dict[Path, str] = {}
        self._closed = False
        self._thread = threading.Thread(target=self._keep_up, name="newskills-view-index", daemon=True)
        self._thread.start()

    def close(self) -> None:
        with self._work:
            self._closed = True
            self._work.notify_all()
        if self._summaries is not None:
            self._summaries.close()

    def catalog(self) -> Catalog:
        """Return the catalog, at most LOOK_EVERY seconds old; of large folders the last one, while a thread looks
        again."""
        with self._work:
            self._work.wait_for(lambda: self._catalog is not None or self._closed)
            if time.monotonic() > self._look_again:
                if self._catalog is None or self._look_seconds < QUICK_LOOK:
                    return self._look()
                self._look_wanted = True
                self._work.notify_all()
            return self._catalog or self._look()

    def summaries(self, reader: Reader) -> Summaries:
        """Return the summaries of all benchmarks, which `reader` reads; the same ones every time."""
        with self._lock:
            if self._summaries is None:
                self._summaries = Summaries(self._cache, self.folders.roots, __version__, reader)
            return self._summaries

    @property
    def patience(self) -> float:
        """Seconds that a page waits for what is being read."""
        if self._wait:
            return EXPORT_PATIENCE_SECONDS
        return PATIENCE_SECONDS

    def run(self, name: str) -> Run:
        """Return the run of this name. Raises UnknownNameError."""
        runs = self.catalog().runs
        if name not in runs:
            raise UnknownNameError("run", name, runs)
        return runs[name]

    def training(self, name: str) -> Training:
        """Return the training of this name. Raises UnknownNameError."""
        trainings = self.catalog().trainings
        if name not in trainings:
            raise UnknownNameError("training", name, trainings)
        return trainings[name]

    def indexed(self, run: str, benchmark: str, *, patience: float = PATIENCE_SECONDS) -> IndexedBenchmark:
        """Return what is indexed of the benchmark so far; the rest is being indexed from now on, and waited for at most
        `patience` seconds.

        Raises UnknownNameError, DataError.
        """
        opened = self.run(run)
        if benchmark not in opened.benchmarks:
            raise UnknownNameError("benchmark in this run", benchmark, opened.benchmarks)
        results = opened.benchmarks[benchmark]
        indexes = [self._index(file) for file in results.files]
        if self._wait:
            for index in indexes:
                index.update()
        with self._work:
            paths = {file.path for file in results.files}
            self._work.wait_for(lambda: not paths & self._waiting.keys(), patience)
        for index in indexes:
            if error := self._errors.get(index.file.path):
                raise DataError(error)
        return IndexedBenchmark(opened, results, indexes)

    @property
    def indexing(self) -> bool:
        """Whether some file waits to be indexed, or some result to be summarized."""
        with self._lock:
            return bool(self._waiting or (self._summaries is not None and self._summaries.pending))

    def _look(self) -> Catalog:
        began = time.monotonic()
        catalog = discover_all(self.folders)
        ended = time.monotonic()
        self._look_seconds = ended - began
        self._look_again = ended + max(LOOK_EVERY, LOOK_SHARE * self._look_seconds)
        self._look_wanted = False
        self._catalog = catalog
        return catalog

    def _index(self, file: OutputFile) -> FileIndex:
        with self._work:
            index = self._indexes.pop(file.path, None)
            if index is None or index.file.unfinished != file.unfinished:
                index = FileIndex(file, self.folders, self._cache)
            self._indexes[file.path] = index
            while len(self._indexes) > MOST_INDEXES:
                self._indexes.popitem(last=False)
            index.target = max(index.target, file.size)
            if (index.head.size, index.head.changed) != (file.size, file.changed) or file.unfinished:
                self._waiting[file.path] = index
                self._work.notify_all()
        return index

    def _keep_up(self) -> None:
        while True:
            with self._work:
                while not self._waiting and not self._closed and not self._look_wanted:
                    self._work.wait()
                if self._closed:
                    return
                wanted = self._look_wanted
            if wanted:
                self._look()
                with self._work:
                    self._work.notify_all()
                continue
            with self._work:
                path, index = next(iter(self._waiting.items()))
            try:
                index.update()
                self._errors.pop(path, None)
            except (NewskillsError, OSError) as error:
                self._errors[path] = str(error)
            finally:
                with self._work:
                    self._waiting.pop(path, None)
                    self._work.notify_all()
