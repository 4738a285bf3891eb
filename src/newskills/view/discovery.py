# SPDX-License-Identifier: Apache-2.0
"""What there is to see in the given folders: runs with their benchmarks, trainings, load tests, what was passed over.

A run is a folder that holds benchmarks: in its `eval-results`, or directly in it. Files are only looked at by name and
size, so that hundreds of runs are found in a moment.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from newskills.run.load_testing.result import SUMMARY as LOAD_TEST
from newskills.run.reporting.results import (
    NOT_BENCHMARKS,
    RESULTS_FOLDER,
    SEEDED_NAME,
    SEEDLESS_NAMES,
    benchmark_name,
)
from newskills.view.folders import Folders

ASYNC_SUFFIX = "-async"
MAX_DEPTH = 9
MOST_FOLDERS = 50_000
"""Folders that are walked through; what lies beyond is left out, and said."""
METRICS_LINES = "metrics.jsonl"
RUN_STATE = ".run.json"
FACT_FILES = ("metrics.json", "metrics_extended.json", "benchmark.json")
SKIPPED_PREFIXES = ("checkpoint-", "global_step", "wandb", "tensorboard", "__pycache__", "node_modules")


class OutputFile(Struct, frozen=True, kw_only=True):
    """Records of one seed. `path`: the file that holds them now; `unfinished`: it is the log of a run at work."""

    path: Path
    name: str
    seed: int | None
    unfinished: bool
    size: int
    changed: int

    @property
    def output(self) -> Path:
        """The file that the run makes in the end."""
        return self.path.with_name(self.path.name.removesuffix(ASYNC_SUFFIX))


class BenchmarkFiles(Struct, frozen=True, kw_only=True):
    """The output files of one benchmark in one run, in the order of their seeds.

    `fingerprint` changes when one of them does, or one of the small files that tell of them.
    """

    name: str
    folder: Path
    files: tuple[OutputFile, ...]
    fingerprint: str = ""


class Run(Struct, frozen=True, kw_only=True):
    """`id` is what an address names it by."""

    id: str
    folder: Path
    benchmarks: dict[str, BenchmarkFiles]


class Training(Struct, frozen=True, kw_only=True):
    id: str
    folder: Path


class Catalog(Struct, frozen=True, kw_only=True):
    """`state` changes when any file that is shown changes; `load_tests` are folders; `notes`: what was passed over, in
    sentences."""

    runs: dict[str, Run]
    trainings: dict[str, Training]
    load_tests: dict[str, Path]
    notes: list[str]
    state: str


class _Walk:
    def __init__(self, folders: Folders) -> None:
        self.folders = folders
        self.seen = 0
        self.notes: list[str] = []
        self.digest = hashlib.blake2b(digest_size=8)
        self.results: dict[Path, list[BenchmarkFiles]] = {}
        self.trainings: list[Path] = []
        self.load_tests: list[Path] = []

    def folder(self, folder: Path, depth: int) -> None:
        self.seen += 1
        if self.seen > MOST_FOLDERS:
            return
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError as error:
            self.notes.append(f"{self.folders.name(folder)} cannot be read: {error.strerror}.")
            return
        self._files(folder, entries)
        for entry in entries:
            if depth and _is_worth(entry) and self._inside(entry) and entry.is_dir():
                self.folder(Path(entry.path), depth - 1)

    def _inside(self, entry: os.DirEntry[str]) -> bool:
        if not entry.is_symlink():
            return True
        if self.folders.holds(Path(entry.path)):
            return not entry.is_dir()  # its target is walked through where it lies
        self.notes.append(f"{self.folders.name(Path(entry.path))} is left out: the link leads out of the folder.")
        return False

    def _files(self, folder: Path, entries: list[os.DirEntry[str]]) -> None:
        files = {}
        own = hashlib.blake2b(digest_size=8)
        for entry in entries:
            if _is_output(entry.name) or _is_about_outputs(entry.name):
                if not self._inside(entry) or not entry.is_file():
                    continue
                status = entry.stat()
                files[entry.name] = status
                own.update(f"{entry.path}\0{status.st_size}\0{status.st_mtime_ns}\0".encode(errors="replace"))
        if not files:
            return
        self.digest.update(own.digest())
        if METRICS_LINES in files:
            self.trainings.append(folder)
        if LOAD_TEST in files:
            self.load_tests.append(folder)
        outputs = tuple(_output_files(folder, files))
        if not outputs:
            return
        parts = folder.parts
        if RESULTS_FOLDER in parts[:-1]:
            run = Path(*parts[: len(parts) - 1 - parts[::-1].index(RESULTS_FOLDER)])
        elif folder in self.folders.roots:
            run = folder
        else:
            run = folder.parent
        if not any(run.is_relative_to(root) for root in self.folders.roots):
            run = next(root for root in self.folders.roots if folder.is_relative_to(root))
        self.results.setdefault(run, []).append(
            BenchmarkFiles(name=benchmark_name(folder), folder=folder, files=outputs, fingerprint=own.hexdigest())
        )


def discover_all(folders: Folders) -> Catalog:
    """Discover everything in the given folders, by name. Never raises for what lies in them."""
    walk = _Walk(folders)
    for root in folders.roots:
        walk.folder(root, MAX_DEPTH)
    if walk.seen > MOST_FOLDERS:
        walk.notes.append(f"Only the first {MOST_FOLDERS:,} folders were looked at: name a folder further down.")
    runs = {}
    for folder, results in walk.results.items():
        run = Run(
            id=folders.name(folder), folder=folder, benchmarks={benchmark.name: benchmark for benchmark in results}
        )
        runs[run.id] = run
    trainings = {
        folders.name(folder): Training(id=folders.name(folder), folder=folder) for folder in walk.trainings
    }
    load_tests = {folders.name(folder): folder for folder in walk.load_tests}
    return Catalog(
        runs=runs, trainings=trainings, load_tests=load_tests, notes=walk.notes, state=walk.digest.hexdigest()
    )


def _is_worth(entry: os.DirEntry[str]) -> bool:
    name = entry.name
    return not (name.startswith((".", *SKIPPED_PREFIXES)) or "-logs" in name or name in NOT_BENCHMARKS)


def _is_output(name: str) -> bool:
    if not name.startswith("output"):
        return False
    stem = name.removesuffix(ASYNC_SUFFIX)
    return stem.endswith(".jsonl") and (stem in SEEDLESS_NAMES or "-rs" in stem or "chunk" in stem)


def _is_about_outputs(name: str) -> bool:
    return name in (METRICS_LINES, LOAD_TEST, "samples.jsonl", *FACT_FILES) or name.endswith(RUN_STATE)


def _output_files(folder: Path, files: dict[str, os.stat_result]) -> Iterator[OutputFile]:
    """Yield the outputs: of a finished file and its log, the file; chunks only where the merged file does not
    exist."""
    outputs = []
    for name, status in files.items():
        stem = name.removesuffix(ASYNC_SUFFIX)
        if not _is_output(name) or (name != stem and stem in files):
            continue
        merged = stem.partition("_chunk_")[0].partition("-chunk")[0].removesuffix(".jsonl") + ".jsonl"
        if merged != stem and merged in files:
            continue
        seed = None
        if seeded := SEEDED_NAME.fullmatch(merged):
            seed = int(seeded[1])
        outputs.append(
            OutputFile(
                path=folder / name,
                name=stem,
                seed=seed,
                unfinished=name != stem,
                size=status.st_size,
                changed=status.st_mtime_ns,
            )
        )
    yield from sorted(
        outputs, key=lambda file: (-1 if file.seed is None else file.seed, len(file.name), file.name)
    )
