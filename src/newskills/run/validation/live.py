# SPDX-License-Identifier: Apache-2.0
"""What came from a live source, checked on the machine that prepared it first, against what the benchmark's page says.

Its rows are counted, each gets a prompt, and replies with known scores to a drawn sample are graded, as `ns validate`
does. The outcome stands beside the rows: `<split>.jsonl.check.json`, which lists of benchmarks read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from newskills._version import __version__
from newskills.base.benchmark import Benchmark
from newskills.base.store import write_json
from newskills.benchmarks.data import PreparedData, PreparedSplit
from newskills.benchmarks.downloads.fetch import FetchOptions
from newskills.benchmarks.folders import check_file
from newskills.run.validation.checks import Validation, ValidationSampling, check_benchmarks

GRADED, EXECUTED = 50, 8
"""Rows of the default split that get replies, and of one whose grader runs code."""
_NETWORK = ("network", "cache")


class SourceDifference(Struct):
    """What is not as the page says, and what to do about it."""

    what: str
    advice: str


class SourceCheck(Struct, kw_only=True):
    """The outcome for one split of a benchmark.

    rows, expected  prepared rows, and those that the page names (None: it names none)
    tried           rows that got replies; 0: only counted, as other splits than the default one are
    correct         kind of reply → "correct of graded"
    left_out        package without which nothing could be graded
    sha256          of the prepared file that was checked
    checked         when, ISO 8601
    """

    benchmark: str
    split: str
    rows: int
    expected: int | None
    tried: int = 0
    correct: dict[str, str] = {}
    differences: list[SourceDifference] = []
    notes: list[str] = []
    left_out: str = ""
    sources: list[str] = []
    sha256: str
    newskills: str = __version__
    checked: str


def check_live_sources(
    prepared: Iterable[tuple[Benchmark, PreparedData]], data_dir: Path | None
) -> Iterator[SourceCheck]:
    """Check each split that came over the network and was not checked since, and write the outcome beside it."""
    waiting = [
        (benchmark, split)
        for benchmark, data in prepared
        for split in data.splits
        if needs_check(benchmark, split)
    ]
    default = [benchmark for benchmark, split in waiting if split.split == benchmark.split]
    graded = check_benchmarks(
        default,
        ValidationSampling(
            data_dir=data_dir,
            fetch=FetchOptions(offline=True),
            graded=GRADED,
            executed=EXECUTED,
            default_only=True,
            hedged=False,
        ),
    )
    for benchmark, split in waiting:
        check = _count_source(benchmark, split)
        if split.split == benchmark.split:
            check = _with_grades(check, next(graded))
        write_json(_split_file(benchmark, split), check)
        yield check


def needs_check(benchmark: Benchmark, split: PreparedSplit) -> bool:
    """Return whether the rows came over the network, and no check of these rows stands beside them."""
    if not any(origin.get("from") in _NETWORK for origin in split.provenance.sources):
        return False
    try:
        check = msgspec.json.decode(_split_file(benchmark, split).read_bytes(), type=SourceCheck)
    except (OSError, msgspec.DecodeError):
        return True
    return check.sha256 != split.provenance.sha256


def _split_file(benchmark: Benchmark, split: PreparedSplit) -> Path:
    return check_file(split.path, benchmark.name, shared=bool(benchmark.data))


def _count_source(benchmark: Benchmark, split: PreparedSplit) -> SourceCheck:
    made = split.provenance
    expected = None if made.options else benchmark.items.get(split.split)
    differences = []
    if expected is not None and expected != made.rows:
        advice = (
            "The source has changed, or was read only in part: compare scores only with runs on these rows, "
            f"and look for a newer newskills (this is {__version__})."
        )
        differences.append(SourceDifference(f"{made.rows} rows, the page says {expected}", advice))
    return SourceCheck(
        benchmark=benchmark.name,
        split=split.split,
        rows=made.rows,
        expected=expected,
        differences=differences,
        sources=[str(origin.get("url", "")) for origin in made.sources],
        sha256=made.sha256,
        checked=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _with_grades(check: SourceCheck, validation: Validation) -> SourceCheck:
    counted = f"{check.split}: {check.rows} rows, expected {check.expected}"
    advice = (
        f"Run: ns validate {check.benchmark} --json report.json. It names the rows; scores may be too low or too high "
        "until this is fixed, so look for a newer newskills, or report it with that file."
    )
    problems = [SourceDifference(problem, advice) for problem in validation.problems if problem != counted]
    return replace(
        check,
        tried=validation.sampled,
        correct={kind: f"{share.right} of {share.of}" for kind, share in validation.shares.items()},
        differences=[*check.differences, *problems],
        notes=validation.notes,
        left_out=validation.left_out,
    )


def outcome_lines(check: SourceCheck) -> Sequence[str]:
    """Return what to tell: one line, or one with what to do for each difference."""
    where = f"{check.benchmark} {check.split}"
    if check.differences:
        return [f"{where} differs from its page: {item.what}. {item.advice}" for item in check.differences]
    if check.left_out:
        return [f"{where} is checked here but for the grades, which need {check.left_out}"]
    answers = ""
    if "gold" in check.correct:
        answers = f", {check.correct['gold']} own answers correct"
    return [f"{where} is checked here: {check.rows} rows{answers}"]
