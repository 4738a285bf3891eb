# SPDX-License-Identifier: Apache-2.0
"""Run scanners by rule over results, in processes that can be ended, and keep what they say beside the records."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

from msgspec import Struct
from msgspec.structs import replace

from newskills._version import __version__
from newskills.base.pool.loop import PoolOptions
from newskills.base.pool.workers import WorkerPool
from newskills.base.records import Failure
from newskills.base.store import atomic_write, encode_line, write_json
from newskills.run.reporting.results import BenchmarkResults
from newskills.view.scans import SCANNERS
from newskills.view.scans.files import HEAD_FILE, ScanHead, check_name, labels_path, made_folder, scan_folder
from newskills.view.scans.finding import NO_FINDING, ScanLine, check_returned
from newskills.view.scans.reading import sample_rows
from newskills.view.scans.transcript import Transcript

EXAMPLE_COUNT = 3
MAX_TIMEOUTS = 3
"""Samples in a row at the time limit, after which a scanner of somebody else's is given up: each costs two workers."""
FOREIGN_WINDOW = 16
"""Samples that somebody else's scanner has before it at a time: so many still cost their time where it is given up."""
GIVEN_UP = f"given up: {MAX_TIMEOUTS} samples in a row reached the time limit"


class ScanExample(Struct, frozen=True, kw_only=True):
    """A sample that a scanner reported, with a quote where it gave one."""

    id: str
    seed: int | None
    label: str
    quote: str


class ScanResult(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one scanner said of one benchmark.

    run       where the benchmark's run lies below the folder that was scanned; empty for that folder itself
    labels    label → samples with it
    invalid   reason → samples without a valid result
    examples  the first samples with a label other than no
    folder    where the lines are kept
    """

    scanner: str
    benchmark: str
    samples: int
    labels: dict[str, int]
    invalid: dict[str, int]
    examples: tuple[ScanExample, ...]
    folder: str
    run: str = ""

    @property
    def place(self) -> str:
        """The benchmark, behind its run where that lies below the folder that was scanned."""
        return f"{self.run} · {self.benchmark}" if self.run else self.benchmark

    @property
    def reported(self) -> int:
        """Samples with a label other than no."""
        return sum(self.labels.values()) - self.labels.get(NO_FINDING, 0)


class TimeoutCount:
    """Counts the samples in a row at which the scanner of a pass reached its time limit. Ours are never given up: their
    time grows with the transcript alone."""

    def __init__(self, own: bool) -> None:
        self.own = own
        self.in_a_row = 0
        self.given_up = False

    def add(self, outcome: list[ScanLine] | Failure) -> bool:
        """Count an outcome, and return whether the scanner is given up."""
        if isinstance(outcome, Failure) and outcome.cause == "timeout":
            self.in_a_row += 1
        else:
            self.in_a_row = 0
        self.given_up = not self.own and self.in_a_row >= MAX_TIMEOUTS
        return self.given_up


class ScanTally:
    """Counts the lines of one scanner in one benchmark."""

    def __init__(self, scanner: str, item: BenchmarkResults) -> None:
        self.scanner, self.item = scanner, item
        self.labels: Counter[str] = Counter()
        self.invalid: Counter[str] = Counter()
        self.examples: list[ScanExample] = []

    def add(self, line: ScanLine, seed: int | None) -> None:
        if line.label is None:
            self.invalid[line.invalid.partition(":")[0]] += 1
            return
        self.labels[line.label] += 1
        if line.label != NO_FINDING and len(self.examples) < EXAMPLE_COUNT:
            quote = line.quotes[0] if line.quotes else ""
            self.examples.append(ScanExample(id=line.id, seed=seed, label=line.label, quote=quote))

    def result(self) -> ScanResult:
        return ScanResult(
            scanner=self.scanner,
            benchmark=self.item.benchmark,
            samples=self.labels.total() + self.invalid.total(),
            labels=dict(self.labels.most_common()),
            invalid=dict(self.invalid.most_common()),
            examples=tuple(self.examples),
            folder=str(scan_folder(self.item.files[0], self.scanner)),
            run=self.item.run,
        )


def scanner_name(spec: str) -> str:
    """Return what a scanner by rule is called: of `file.py::name`, the name. Raises UnknownNameError, ConfigError."""
    resolved = SCANNERS.resolve(spec)
    if "::" in resolved:
        return check_name(resolved.rpartition("::")[2])
    return resolved


def scan_by_rules(
    items: Sequence[BenchmarkResults], specs: Sequence[str], time_limit: float, notes: list[str]
) -> list[ScanResult]:
    """Run the scanners on all samples of the benchmarks, and write their lines.

    `time_limit`: seconds of CPU for one sample. Our own scanners share a pass; each of somebody else's has one of its
    own, so that it costs only its own results where it hangs or dies. Raises UnknownNameError, ConfigError,
    StorageError.
    """
    names = {spec: scanner_name(spec) for spec in specs}
    for spec in specs:
        SCANNERS.get(spec)
    own = [spec for spec in specs if spec in SCANNERS.built_in()]
    groups = [[spec] for spec in specs if spec not in own]
    if own:
        groups.insert(0, own)
    results: list[ScanResult] = []
    for group in groups:
        options = PoolOptions(cpu_seconds=time_limit, max_batch=8)
        config = {"scanners": group}
        with WorkerPool(
            "newskills.view.scans.worker:make", config, result_type=list[ScanLine], options=options
        ) as pool:
            timeouts = TimeoutCount(group is own)
            for item in items:
                results += _scan_benchmark(pool, item, {spec: names[spec] for spec in group}, timeouts, notes)
        if timeouts.given_up:
            notes.append(
                f"{names[group[0]]} was given up: it reached its time limit ({time_limit:g} s of CPU) for "
                f"{MAX_TIMEOUTS} samples in a row. The samples after them have no valid result."
            )
    return sorted(
        results, key=lambda result: (result.run, result.benchmark, list(names.values()).index(result.scanner))
    )


def _scan_benchmark(
    pool: WorkerPool[list[ScanLine]],
    item: BenchmarkResults,
    names: dict[str, str],
    timeouts: TimeoutCount,
    notes: list[str],
) -> Iterator[ScanResult]:
    tallies = [ScanTally(name, item) for name in names.values()]
    samples: deque[tuple[Path, int | None, int, str]] = deque()

    def records() -> Iterator[dict[str, Any]]:
        for sample in sample_rows(item, notes):
            samples.append((sample.output, sample.seed, sample.place, str(sample.row.get("id"))))
            yield sample.for_worker

    def outcomes() -> Iterator[list[ScanLine] | Failure | None]:
        """Yield one for each sample, None for those after the scanner was given up."""
        rows = records()
        if not timeouts.given_up:
            for outcome in pool.map(rows, window=0 if timeouts.own else FOREIGN_WINDOW):
                ended = timeouts.add(outcome)
                yield outcome
                if ended:
                    break
        while samples:
            yield None
        for _ in rows:
            yield None

    with LabelFiles() as files:
        for outcome in outcomes():
            output, seed, place, identity = samples.popleft()
            if outcome is None:
                lines = [ScanLine(id=identity, label=None, invalid=GIVEN_UP) for _ in tallies]
            elif isinstance(outcome, Failure):
                lines = [check_returned(identity, outcome, Transcript({})) for _ in tallies]
            else:
                lines = outcome
            for tally, line in zip(tallies, lines, strict=True):
                tally.add(line, seed)
                files.write(output, tally.scanner, replace(line, place=place))
    for spec, tally in zip(names, tallies, strict=True):
        looks_for = SCANNERS.properties(spec).looks_for
        labels = tuple(tally.labels)
        write_head(item, ScanHead(scanner=tally.scanner, kind="rule", looks_for=looks_for, labels=labels))
        yield tally.result()


class LabelFiles(ExitStack):
    """The files of labels that a scan writes; they take their places together, when all is written."""

    def __init__(self) -> None:
        super().__init__()
        self._files: dict[tuple[Path, str], IO[bytes]] = {}

    def write(self, output: Path, scanner: str, line: ScanLine) -> None:
        """Append a line to the labels of an output file. Raises StorageError."""
        if (output, scanner) not in self._files:
            path = labels_path(output, scanner)
            made_folder(path.parent)
            self._files[output, scanner] = self.enter_context(atomic_write(path))
        self._files[output, scanner].write(encode_line(line))


def write_head(item: BenchmarkResults, head: ScanHead) -> None:
    """Write what the results of a scanner are about. Raises StorageError."""
    sizes = {file.name: file.stat().st_size for file in item.files if file.exists()}
    whole = replace(head, newskills=__version__, records=sizes)
    write_json(scan_folder(item.files[0], head.scanner) / HEAD_FILE, whole)
