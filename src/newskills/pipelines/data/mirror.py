# SPDX-License-Identifier: Apache-2.0
"""What `ns mirror build|check` does: benchmark data for machines without a network."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct

from newskills.base.benchmark import Benchmark
from newskills.base.errors import ConfigError, NewskillsError
from newskills.base.terminal import format_first
from newskills.benchmarks import expand_benchmarks, list_benchmarks
from newskills.benchmarks.downloads.fetch import FetchOptions
from newskills.benchmarks.downloads.mirror_build import MirroredBenchmark, build_mirror, check_mirror
from newskills.config.command_line import Parsed
from newskills.pipelines.data.downloads import DownloadProgress, ProgressBar
from newskills.pipelines.dry_run import show_dry_run
from newskills.pipelines.options import DryRun, doc

ALL = "all"


class MirrorOptions(Struct, frozen=True, kw_only=True):
    action: Annotated[
        Literal["build", "check"],
        doc(
            "build NAME… DIR: download the files of benchmarks (or groups, or `all`) into DIR; check [DIR]: "
            "compare every file with the manifest (default: NEWSKILLS_MIRROR)",
            {"positional": True},
        ),
    ]
    words: Annotated[list[str], doc("names of benchmarks, then the folder", {"positional": True})] = []
    mirror: Annotated[str | None, doc("build: another mirror to copy from (default: NEWSKILLS_MIRROR)")] = None
    offline: Annotated[bool | None, doc("build: never use the network")] = None
    extra_benchmark_map: Annotated[
        str | None, doc("JSON file that maps names to folders with more benchmarks")
    ] = None
    parallelism: Annotated[int, Meta(ge=1, description="benchmarks fetched at the same time")] = 20
    retries: Annotated[int, Meta(ge=0, description="retries after a failed download")] = 3
    dry_run: DryRun = False


class MirrorFolder(Struct, frozen=True, kw_only=True):
    """A folder of benchmark data, its number of files and their bytes; `problems`: what is wrong with it, in
    sentences."""

    folder: Path
    files: int
    size: int
    problems: list[str]


def run(parsed: Parsed[MirrorOptions]) -> int:
    """Build or check a mirror; return the exit code, 1 where something is wrong with it. Raises ConfigError."""
    mirror = build_or_check_mirror(parsed)
    if mirror is not None and mirror.problems:
        return 1
    return 0


def build_or_check_mirror(parsed: Parsed[MirrorOptions]) -> MirrorFolder | None:
    """Build or check a mirror and return it; None for a dry run. Raises ConfigError."""
    if parsed.options.action == "build":
        return _build_mirror(parsed.options)
    return _check_mirror(parsed.options)


def _build_mirror(options: MirrorOptions) -> MirrorFolder | None:
    if len(options.words) < 2:
        raise ConfigError(
            "Which benchmarks, and into which folder?", hint="ns mirror build gsm8k mmlu /data/mirror"
        )
    *names, place = options.words
    folder = Path(place).expanduser()
    if names == [ALL]:
        names = [entry.name for entry in list_benchmarks()]
    named = {
        benchmark.name: benchmark
        for name in names
        for benchmark in expand_benchmarks(name, options.extra_benchmark_map)
    }
    benchmarks = [benchmark for benchmark in named.values() if benchmark.sources]
    if options.dry_run:
        show_dry_run([("fetches", benchmark.name, benchmark.title) for benchmark in benchmarks])
        return None
    progress = _MirrorProgress(len(benchmarks))
    for mirrored in named.values():
        if not mirrored.sources:
            progress.line(f"note: {mirrored.name} {_NOTHING[mirrored.generate_rows is not None]}", sys.stderr)
    fetch = FetchOptions(
        mirror=options.mirror or "",
        offline=options.offline,
        retries=options.retries,
        parallelism=options.parallelism,
        progress=progress,
    )
    results = build_mirror(benchmarks, folder, options=fetch, report=progress.report)
    ready = [each for each in results if not isinstance(each, NewskillsError)]
    sys.stdout.write(f"{len(ready)} of {len(results)} are in {folder}\n")
    return MirrorFolder(
        folder=folder,
        files=sum(each.files for each in ready),
        size=sum(each.size for each in ready),
        problems=[
            f"{benchmark.name}: {each}"
            for benchmark, each in zip(benchmarks, results, strict=True)
            if isinstance(each, NewskillsError)
        ],
    )


_NOTHING = {True: "is generated: it needs no mirror", False: "ships with its data: it needs no mirror"}


class _MirrorProgress(DownloadProgress):
    def report(self, benchmark: Benchmark, result: MirroredBenchmark | NewskillsError) -> None:
        self.count_one()
        if isinstance(result, NewskillsError):
            self.line(f"error: {benchmark.name}: {result}", sys.stderr)
            return
        there = f" ({result.files - result.fresh} already there)" if result.fresh < result.files else ""
        self.line(f"{benchmark.name:<24} {result.files:>6} files {result.size / 2**20:>9.1f} MB{there}")
        for name, reason in result.missing.items():
            self.line(f"note: {benchmark.name}: split {name} is left out: {reason}", sys.stderr)
        for name, reason in result.missing_prompts.items():
            self.line(f"note: {benchmark.name}: official prompt {name} is left out: {reason}", sys.stderr)


def _check_mirror(options: MirrorOptions) -> MirrorFolder:
    if len(options.words) > 1:
        raise ConfigError("ns mirror check takes one folder.")
    place = "".join(options.words) or options.mirror or os.environ.get("NEWSKILLS_MIRROR", "")
    if not place:
        raise ConfigError("Which folder?", hint="ns mirror check /data/mirror, or set NEWSKILLS_MIRROR.")
    folder = Path(place).expanduser()
    bar = ProgressBar()
    check = check_mirror(folder, progress=lambda path, done, total: bar.draw(done / (total or 1), path))
    for problem in check.problems:
        bar.line(f"error: {problem}", sys.stderr)
    if check.unlisted:
        shown = format_first(check.unlisted, 3)
        bar.line(f"note: {len(check.unlisted)} files are not listed: {shown}", sys.stderr)
    state = "all are intact"
    if check.problems:
        state = f"{len(check.problems)} differ from the manifest"
    bar.line(f"{check.files} files, {check.size / 2**20:.1f} MB in {folder}: {state}")
    return MirrorFolder(folder=folder, files=check.files, size=check.size, problems=check.problems)
