# SPDX-License-Identifier: Apache-2.0
"""Makes a mirror folder for machines without a network, and checks one.

Building goes on where it stopped: files that are there and intact are not fetched again, whole downloads are kept
until they are in place, and the manifest is written after each benchmark.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
from msgspec import Struct

from newskills.base.benchmark import Benchmark
from newskills.base.errors import DataError, NewskillsError, storage_error
from newskills.base.store import hold_lock, write_json
from newskills.benchmarks.downloads.fetch import Fetcher, FetchOptions
from newskills.benchmarks.downloads.mirror import (
    MANIFEST,
    ChangedFileError,
    Manifest,
    ManifestEntry,
    Mirror,
    file_sha256,
    mirror_path,
    read_manifest,
)
from newskills.benchmarks.downloads.official import Alternatives, first_published, prompts_of
from newskills.benchmarks.downloads.sources import PublishedFile, open_source
from newskills.prompts.official.table import OfficialPrompt

_DOWNLOADS = ".downloads"
_LOCK = ".lock"
_AT_ONCE = 8


class MirroredBenchmark(Struct, frozen=True, kw_only=True):
    """What the mirror has of one benchmark; `fresh`: files that were not there before; `missing`: splits left out.

    `missing_prompts`: published prompts that could not be had, and why.
    """

    benchmark: str
    files: int = 0
    size: int = 0
    fresh: int = 0
    missing: dict[str, str] = {}
    missing_prompts: dict[str, str] = {}


class MirrorCheck(Struct, frozen=True, kw_only=True):
    """What `check_mirror` found: sentences in `problems`; `unlisted`: files that the manifest does not name."""

    files: int
    size: int
    problems: list[str]
    unlisted: list[str]


Report = Callable[[Benchmark, MirroredBenchmark | NewskillsError], None]


def build_mirror(
    benchmarks: Sequence[Benchmark],
    folder: Path,
    *,
    options: FetchOptions | None = None,
    report: Report | None = None,
) -> list[MirroredBenchmark | NewskillsError]:
    """Fetch the files of all splits into `folder`; a benchmark that fails gives its error in its place.

    `options.mirror` may be another mirror, from which is copied. `report` is called as each is done. Raises
    LockedError where another process builds the same folder, DataError for a manifest that cannot be read.
    """
    options = options or FetchOptions()
    folder.mkdir(parents=True, exist_ok=True)
    with hold_lock(folder / _LOCK, f"The mirror {folder}"):
        for left in folder.rglob(".*.tmp"):  # of a killed process
            left.unlink(missing_ok=True)
        builder = _Builder(folder, options)

        def mirror_or_error(benchmark: Benchmark) -> MirroredBenchmark | NewskillsError:
            try:
                result: MirroredBenchmark | NewskillsError = builder.add(benchmark)
            except NewskillsError as error:
                result = error
            if report:
                report(benchmark, result)
            return result

        with ThreadPoolExecutor(max(1, min(options.parallelism, len(benchmarks)))) as pool:
            results = list(pool.map(mirror_or_error, benchmarks))
        if not any(isinstance(result, NewskillsError) for result in results):
            shutil.rmtree(folder / _DOWNLOADS, ignore_errors=True)
        return results


class _Builder:
    def __init__(self, folder: Path, options: FetchOptions) -> None:
        self.folder = folder
        self.listed = {file.path: file for file in read_manifest(folder).files}
        self.lock = threading.Lock()
        self.here = msgspec.structs.replace(options, mirror=str(folder), offline=True)
        self.options = options

    def add(self, benchmark: Benchmark) -> MirroredBenchmark:
        originals_by_url: dict[str, PublishedFile] = {}
        missing: dict[str, str] = {}
        fresh = 0
        for split in dict.fromkeys(source.split for source in benchmark.sources if not source.path):
            try:
                with self._originals(benchmark, split) as originals:
                    user = benchmark.data or benchmark.name
                    fresh += sum([self._place(original, user, benchmark.licence) for original in originals])
                    originals_by_url.update({original.url: original for original in originals})
            except DataError as error:
                if split == benchmark.split:
                    raise
                missing[split] = str(error)
        prompts, missing_prompts, fresh_prompts = self._add_prompts(benchmark)
        originals_by_url |= prompts
        with self.lock:
            write_json(self.folder / MANIFEST, Manifest(files=[self.listed[path] for path in sorted(self.listed)]))
            size = sum(self.listed[mirror_path(url)].bytes for url in originals_by_url)
        return MirroredBenchmark(
            benchmark=benchmark.name,
            files=len(originals_by_url),
            size=size,
            fresh=fresh + fresh_prompts,
            missing=missing,
            missing_prompts=missing_prompts,
        )

    def _add_prompts(self, benchmark: Benchmark) -> tuple[dict[str, PublishedFile], dict[str, str], int]:
        """Bring the published prompts of `benchmark`: (files by address, what cannot be had, number of new files)."""
        placed: dict[str, PublishedFile] = {}
        missing: dict[str, str] = {}
        fresh = 0
        for alternatives in prompts_of(benchmark):
            try:
                entry, files = self._find_published(alternatives)
            except ChangedFileError:
                raise
            except DataError as error:
                missing[alternatives[0].prompt] = error.message
                continue
            fresh += sum([self._place(file, benchmark.name, entry.licence) for file in files])
            placed |= {file.url: file for file in files}
        return placed, missing, fresh

    def _find_published(self, alternatives: Alternatives) -> tuple[OfficialPrompt, list[PublishedFile]]:
        """Return a published prompt with its files; of each alternative those in the folder go first. Raises
        DataError."""
        here, source = (Fetcher(self.folder / _DOWNLOADS, options) for options in (self.here, self.options))
        try:
            return first_published(alternatives[:1], here)
        except DataError:
            return first_published(alternatives, source)

    @contextlib.contextmanager
    def _originals(self, benchmark: Benchmark, split: str) -> Iterator[Sequence[PublishedFile]]:
        """Yield the files of the first source that can be had; those that are in the folder already go first, if they
        are whole."""
        cache = self.folder / _DOWNLOADS
        sources = [source for source in benchmark.sources if source.split == split and not source.path]
        tries = [(source, options) for options in (self.here, self.options) for source in sources]
        problems: list[DataError] = []
        with contextlib.ExitStack() as stack:
            for source, options in tries:
                try:
                    files = stack.enter_context(open_source(source, Fetcher(cache, options)))
                except DataError as error:
                    if options is self.options:
                        problems.append(error)
                    continue
                yield files.originals
                return
        hints = dict.fromkeys(problem.hint for problem in problems)
        raise DataError(" ".join(problem.message for problem in problems), hint=" ".join(hints))

    def _place(self, original: PublishedFile, user: str, licence: str) -> bool:
        """Put one file into the mirror, and return whether it was not there."""
        place = mirror_path(original.url)
        target = self.folder / place
        with self.lock:
            listed_file = self.listed.get(place)
        fresh = original.path.resolve() != target.resolve()
        if fresh:
            _copy_file(original.path, target, link=self.folder / _DOWNLOADS in original.path.parents)
        users, commit = {user}, original.commit
        if listed_file:
            users.update(listed_file.benchmarks)
            commit = commit or listed_file.commit
        entry = ManifestEntry(
            path=place,
            sha256=original.sha256,
            commit=commit,
            url=original.url,
            bytes=target.stat().st_size,
            benchmarks=sorted(users),
            licence=licence,
        )
        with self.lock:
            self.listed[place] = entry
        return fresh


def _copy_file(path: Path, target: Path, *, link: bool) -> None:
    """Copy a file without forcing it to the disk: the manifest tells what was cut by a power failure."""
    fresh = target.with_name(f".{target.name}.{os.getpid()}.{threading.get_ident()}.tmp")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if link:
            os.link(path, fresh)
        else:
            shutil.copyfile(path, fresh)
        fresh.replace(target)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        raise storage_error(error, target) from error


def check_mirror(folder: Path, *, progress: Callable[[str, int, int | None], None] | None = None) -> MirrorCheck:
    """Read every file that the manifest names. `progress` gets (path, bytes done, bytes of all).

    Raises ConfigError where there is no such folder, DataError where it has no manifest.
    """
    files = read_manifest(Mirror(folder).folder).files
    if not files:
        raise DataError(f"{folder} has no {MANIFEST} that lists files: nothing says what they should be.")
    total = sum(max(file.bytes, 0) for file in files)
    done = 0

    def problem(file: ManifestEntry) -> str:
        nonlocal done
        problem_text = _file_problem(folder / file.path, file)
        done += max(file.bytes, 0)
        if progress:
            progress(file.path, done, total or None)
        return problem_text

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        problems = [problem_text for problem_text in pool.map(problem, files) if problem_text]
    listed_paths = {(folder / file.path).resolve() for file in files}
    there = (path for path in folder.rglob("*") if path.is_file() and path.name not in (MANIFEST, _LOCK))
    unlisted = [str(path.relative_to(folder)) for path in there if path.resolve() not in listed_paths]
    return MirrorCheck(files=len(files), size=total, problems=problems, unlisted=sorted(unlisted))


def _file_problem(path: Path, file: ManifestEntry) -> str:
    if not path.is_file():
        return f"{file.path} is missing."
    size = path.stat().st_size
    if 0 <= file.bytes != size:
        return f"{file.path} has {size} bytes, {file.bytes} are listed: it is damaged or only partly copied."
    if file.sha256 and (sha256 := file_sha256(path)) != file.sha256:
        return f"{file.path} is damaged: its sha256 is {sha256}, {file.sha256} is listed."
    return ""
