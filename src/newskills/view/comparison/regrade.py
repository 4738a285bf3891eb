# SPDX-License-Identifier: Apache-2.0
"""New verdicts for finished records, without new generation: what changes, and how much of a score is the grader's.

Nothing is rewritten in place: the new records go into another folder, or nowhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from newskills.base.errors import ConfigError, DataError, UserError
from newskills.base.records import Number, Outcome, Row
from newskills.base.store import atomic_write, encode_line, write_json
from newskills.config.settings import read_config
from newskills.graders import GRADERS, is_executing, make_grader
from newskills.metrics.counting.base import percent_number
from newskills.run.grade import grade_rows
from newskills.run.records.paths import done_path
from newskills.run.reporting.results import BenchmarkResults, list_results
from newskills.run.reporting.summarize import BENCHMARK_FILE
from newskills.sandbox.config import SandboxConfig
from newskills.view.comparison.records import (
    BenchmarkRecords,
    GraderChoice,
    SampleScore,
    read_benchmark,
    read_facts,
    read_whole_rows,
)
from newskills.view.comparison.why import label_of, recorded_grader

Reading = Literal["strict", "lenient"]
_SANDBOX = "sandbox."


class RegradeOptions(Struct, frozen=True, kw_only=True):
    """How to grade anew.

    grader      name, or name@version (refused where this installation has another version); None: that of the records
    config      settings of the grader, over those of the records; `sandbox.` keys for one that runs code
    reading     stricter or more lenient extraction, for graders that know both
    spread      grade by every reading, too
    output_dir  where the records with their new verdicts go; None: they are not kept
    """

    benchmarks: tuple[str, ...] = ()
    grader: str | None = None
    config: Row = {}
    reading: Reading | None = None
    spread: bool = True
    output_dir: Path | None = None


class VerdictFlip(Struct, frozen=True, kw_only=True):
    """A sample with another verdict than before; `extracted`: what each grading took for the answer."""

    id: str
    seed: int | None
    before: Outcome
    after: Outcome
    extracted_before: str | None
    extracted_after: str | None


class Regraded(Struct, frozen=True, kw_only=True):
    """One benchmark. `before`, `after`: the score in percent over all problems that have one.

    spread  reading (strict, usual, lenient) → score; empty where the grader knows only one
    files   what was written
    """

    benchmark: str
    grader_before: str
    grader_after: str
    before: Number
    after: Number
    samples: int
    changes: dict[str, int]
    flips: tuple[VerdictFlip, ...]
    spread: dict[str, Number] = {}
    files: tuple[str, ...] = ()


def regrade_run(folder: Path, options: RegradeOptions, notes: list[str]) -> list[Regraded]:
    """Grade every benchmark of `folder` again; what cannot be graded goes into `notes`.

    Raises DataError (nothing there, nothing gradable), UnknownNameError, ConfigError (grader or its settings).
    """
    items = [
        item for item in list_results(folder) if not options.benchmarks or item.benchmark in options.benchmarks
    ]
    if not items:
        raise DataError(f"{folder} has no results to grade.")
    if options.output_dir is not None and options.output_dir.resolve() == folder.resolve():
        raise ConfigError("--output_dir is the folder of the records themselves, which are never rewritten.")
    done = []
    for item in items:
        if not item.files:
            notes.append(f"{item.benchmark} has no finished output files in {item.folder}.")
            continue
        try:
            before, remarks = read_benchmark(item)
        except UserError as error:
            notes.append(f"{item.benchmark}: {error.message}")
            continue
        notes += remarks
        choice = _grader_choice(before, options)
        if choice is None:
            notes.append(f"{item.benchmark}: its records name no grader of this installation; give --grader.")
            continue
        done.append(_regraded_benchmark(item, before, choice, folder, options))
    if not done:
        raise DataError(f"Nothing could be graded. {' '.join(notes)}")
    return done


def _grader_choice(records: BenchmarkRecords, options: RegradeOptions) -> GraderChoice | None:
    """Return the grader to use with its settings; None where none is given or recorded. Raises UnknownNameError,
    ConfigError."""
    recorded = recorded_grader(records)
    name, _, version = (options.grader or "").partition("@")
    if not name and recorded is None:
        return None
    own: Row = {}
    if recorded is not None:
        name = name or recorded.name
        if name == recorded.name:
            own = recorded.config
    grader_keys = {key: value for key, value in options.config.items() if not key.startswith(_SANDBOX)}
    elsewhere = {
        key.removeprefix(_SANDBOX): value for key, value in options.config.items() if key not in grader_keys
    }
    config = {**own, **grader_keys, **_grader_settings(name, options.reading)}
    choice = GraderChoice(name, config, read_config(SandboxConfig, elsewhere, "++sandbox"))
    grader = make_grader(choice.name, choice.config)
    if version and version != grader.version:
        raise ConfigError(
            f"This newskills grades with {label_of(grader)}; verdicts of {name}@{version} need the version of "
            "newskills that had it.",
            hint=f"Leave the version out: --grader {name}",
        )
    return choice


def _grader_settings(name: str, reading: Reading | None) -> Row:
    """Return the grader's settings for a reading. Raises ConfigError where the grader has none."""
    if reading is None:
        return {}
    readings = readings_of(name)
    if reading not in readings:
        raise ConfigError(f"The grader '{name}' has no {reading} extraction.", hint="Leave the option out.")
    return readings[reading]


def readings_of(name: str) -> Mapping[str, Row]:
    """Return a grader's settings by reading; empty where it reads replies in one way only. Raises UnknownNameError."""
    readings: Mapping[str, Row] = getattr(getattr(GRADERS.get(name), "Config", None), "READINGS", {})
    return readings


def _regraded_benchmark(
    item: BenchmarkResults, before: BenchmarkRecords, choice: GraderChoice, folder: Path, options: RegradeOptions
) -> Regraded:
    files: tuple[str, ...] = ()
    if options.output_dir is None:
        after, _ = read_benchmark(item, choice)
    else:
        written = _write_regraded(
            item, choice, options.output_dir / item.folder.resolve().relative_to(folder.resolve())
        )
        after, _ = read_benchmark(written)
        files = tuple(map(str, written.files))
    flips = tuple(_verdict_flips(before, after))
    spread = {}
    if options.spread:
        spread = grader_spread(item, choice)
    return Regraded(
        benchmark=item.benchmark,
        grader_before=", ".join(sorted(before.graders)) or "not known",
        grader_after=", ".join(sorted(after.graders)),
        before=score_of(before),
        after=score_of(after),
        samples=sum(1 for samples in after.samples.values() for sample in samples if sample is not None),
        changes=dict(Counter(f"{flip.before} → {flip.after}" for flip in flips).most_common()),
        flips=flips,
        spread=spread,
        files=files,
    )


def _write_regraded(item: BenchmarkResults, choice: GraderChoice, target: Path) -> BenchmarkResults:
    """Write the records with their new verdicts below `target`. Raises DataError where it has results already."""
    files = tuple(target / file.name for file in item.files)
    if existing := next((file for file in files if file.exists()), None):
        raise DataError(f"{existing} is there already.", hint="Give another --output_dir.")
    target.mkdir(parents=True, exist_ok=True)
    for source, output in zip(item.files, files, strict=True):
        with atomic_write(output) as out:
            rows = read_whole_rows(item, source)
            for row in grade_rows(rows, choice.name, choice.config, choice.sandbox):
                out.write(encode_line(row))
        done_path(output).touch()
    grader = make_grader(choice.name, choice.config)
    settings = msgspec.json.encode(choice.config, order="deterministic").decode()
    described = {**read_facts(item.folder), "grader": f"{label_of(grader)} {settings}"}
    write_json(target / BENCHMARK_FILE, described | {"regraded_from": str(item.folder.resolve())})
    return BenchmarkResults(item.benchmark, target, files)


def grader_spread(item: BenchmarkResults, choice: GraderChoice) -> dict[str, Number]:
    """Return the score by reading. Empty for graders that read replies in one way, that run code, or that ask a
    judge."""
    readings = readings_of(choice.name)
    if not readings or is_executing(make_grader(choice.name, choice.config)):
        return {}
    settings = {
        "strict": {**choice.config, **readings["strict"]},
        "usual": choice.config,
        "lenient": {**choice.config, **readings["lenient"]},
    }
    return {
        reading: score_of(read_benchmark(item, choice._replace(config=config))[0])
        for reading, config in settings.items()
    }


def score_of(records: BenchmarkRecords) -> Number:
    """Return the mean over problems of their scored samples, in percent, with its 95 % interval."""
    values: Counter[float] = Counter()
    unscored = 0
    for samples in records.samples.values():
        scores = [sample.score for sample in samples if sample is not None and sample.score is not None]
        unscored += sum(1 for sample in samples if sample is not None and sample.score is None)
        if scores:
            values[sum(scores) / len(scores)] += 1
    if not values:
        return Number(value=0.0, low=0.0, high=100.0, n=0, unscored=unscored)
    return percent_number(values, unscored)


def _verdict_flips(before: BenchmarkRecords, after: BenchmarkRecords) -> list[VerdictFlip]:
    flips = []
    for identity, samples in after.samples.items():
        old: Sequence[SampleScore | None] = before.samples.get(identity, [])
        for seed, a, b in zip(before.seeds, old, samples, strict=False):
            if a is not None and b is not None and a.outcome != b.outcome:
                flips.append(
                    VerdictFlip(
                        id=identity,
                        seed=seed,
                        before=a.outcome,
                        after=b.outcome,
                        extracted_before=a.answer,
                        extracted_after=b.answer,
                    )
                )
    return flips
