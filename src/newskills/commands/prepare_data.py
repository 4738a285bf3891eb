# SPDX-License-Identifier: Apache-2.0
"""`ns prepare_data NAME…`: fetch and normalise benchmark data."""

from __future__ import annotations

import sys
import threading
from typing import Annotated

from msgspec import Meta, Struct

from newskills.base.benchmark import Benchmark
from newskills.base.errors import ConfigError, NewskillsError
from newskills.benchmarks import get_benchmark, list_benchmarks
from newskills.benchmarks.data import PreparedData, data_dir, prepare_many
from newskills.benchmarks.fetch import FetchOptions
from newskills.commands._command import Command
from newskills.commands._options import doc
from newskills.commands._work import check_cluster
from newskills.config.command_line import Parsed


class Options(Struct, frozen=True, kw_only=True):
    benchmarks: Annotated[
        list[str], doc("names; `all` = every benchmark of the catalog", {"positional": True})
    ] = []
    dataset: Annotated[str | None, doc("one name (older spelling)")] = None
    data_dir: Annotated[
        str | None, doc("where <name>/<split>.jsonl goes (default: NEMO_SKILLS_DATA_DIR, or the user's cache)")
    ] = None
    split: Annotated[list[str], doc("only these splits (default: all there are)")] = []
    mirror: Annotated[str | None, doc("folder of an offline mirror (default: NEWSKILLS_MIRROR)")] = None
    offline: Annotated[bool | None, doc("never use the network")] = None
    extra_benchmark_map: Annotated[str | None, doc("JSON file name → folder of further benchmarks")] = None
    parallelism: Annotated[int, Meta(ge=1, description="benchmarks prepared at the same time")] = 20
    cluster: Annotated[str | None, doc("where to prepare; none or local = this machine")] = None
    retries: Annotated[int, Meta(ge=0, description="further attempts after a failed download")] = 3


def run(parsed: Parsed[Options]) -> int:
    options = parsed.options
    check_cluster(options.cluster)
    names = [*options.benchmarks, *([options.dataset] if options.dataset else [])]
    if not names:
        raise ConfigError("Which benchmarks? Give their names, or all.", hint="See: ns list benchmarks")
    if names == ["all"]:
        names = [entry.name for entry in list_benchmarks()]
    benchmarks = [get_benchmark(name, extra=options.extra_benchmark_map) for name in names]
    progress = _Progress(quiet=not sys.stderr.isatty())
    fetch = FetchOptions(
        mirror=options.mirror or "",
        offline=options.offline,
        retries=options.retries,
        parallelism=options.parallelism,
        progress=progress,
    )
    results = prepare_many(
        benchmarks, data_dir=options.data_dir, splits=options.split, options=fetch, report=progress.finished
    )
    failed = [result for result in results if isinstance(result, NewskillsError)]
    sys.stdout.write(f"{len(results) - len(failed)} of {len(results)} prepared in {data_dir(options.data_dir)}\n")
    return 1 if failed else 0


class _Progress:
    """One line per benchmark as it ends; on a terminal also the bytes of the running downloads."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._lock = threading.Lock()

    def __call__(self, what: str, done: int, total: int | None) -> None:
        if self._quiet:
            return
        size = f"{done / 2**20:.1f}" + (f" of {total / 2**20:.1f} MB" if total else " MB")
        with self._lock:
            sys.stderr.write(f"\r\x1b[K{what[-70:]} {size}")
            sys.stderr.flush()

    def finished(self, benchmark: Benchmark, result: PreparedData | NewskillsError) -> None:
        with self._lock:
            if not self._quiet:
                sys.stderr.write("\r\x1b[K")
            if isinstance(result, NewskillsError):
                sys.stderr.write(f"error: {result}\n")
                return
            for split in result.splits:
                note = "" if split.fresh else " (already there)"
                sys.stdout.write(f"{benchmark.name:<24} {split.split:<8} {split.provenance.rows:>7} rows{note}\n")
                for notice in split.notices:
                    sys.stderr.write(f"note: {benchmark.name}: {notice}\n")
            for name, reason in result.missing.items():
                sys.stderr.write(f"note: {benchmark.name}: split {name} is left out: {reason}\n")


COMMAND = Command(
    name="prepare_data",
    summary="Fetch benchmark data, check it, and lay it out as <data_dir>/<name>/<split>.jsonl with a record of "
    "where it came from. Needs no other set-up.",
    options=Options,
    run=run,
    examples=("ns prepare_data gsm8k math aime24", "ns prepare_data gsm8k --mirror /data/mirror --offline"),
)
