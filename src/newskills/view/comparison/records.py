# SPDX-License-Identifier: Apache-2.0
"""A folder of results → what every sample was worth, for comparisons. Nothing that is broken in it is fatal.

A line that cannot be read is counted, a benchmark that is not finished is left out, and both are said.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from newskills._version import __version__
from newskills.base.errors import ConfigError, DataError, UnknownNameError, UserError
from newskills.base.records import Cause, Outcome, Row
from newskills.base.registry import fold
from newskills.base.store import LONGEST_LINE, bounded_lines, open_for_reading
from newskills.base.terminal import counted
from newskills.benchmarks import get_benchmark, list_benchmarks
from newskills.metrics import METRICS, make_metric
from newskills.metrics.counting.base import ScoreMetric, is_lost
from newskills.run.grade import grade_rows
from newskills.run.judging.recorded import fields_of, grade_problems, text_verdict
from newskills.run.planning.until import METHOD_TEXT, load_until
from newskills.run.records.completeness import expected_rows, row_count
from newskills.run.records.paths import OutputPaths
from newskills.run.records.state import RunState, load_state
from newskills.run.reporting.predictions import Decoder, decode_record, decoder_of
from newskills.run.reporting.results import BenchmarkResults, file_parts, list_results, seed_of
from newskills.run.reporting.summarize import BENCHMARK_FILE, MetricFor, SummaryOptions, choose_metric
from newskills.sandbox.config import SandboxConfig
from newskills.view.files import is_newer
from newskills.view.stories import STORY_FIELDS, Story, story_of

QUESTION_FIELDS = ("question", "problem")
RECORD_FIELDS: Mapping[str, Any] = {
    "id": Any,
    "grader": Any,
    "expected_answer": Any,
    **STORY_FIELDS,
    **dict.fromkeys(QUESTION_FIELDS, Any),
}
"""What is read of a record besides the fields of its metric."""


_EVERYTHING: Decoder = msgspec.json.Decoder(Row)


class GraderChoice(NamedTuple):
    """A grader by its registered name, with its settings; `sandbox`: where one that runs code runs it."""

    name: str
    config: Row
    sandbox: SandboxConfig = SandboxConfig()


class SampleScore(NamedTuple):
    """One sample. `score` is None where it is unscored; `story`: why it is not right, None where it is."""

    outcome: Outcome
    cause: Cause | None
    score: float | None
    answer: str | None
    tokens: float | None
    story: Story | None


class RecordContent(NamedTuple):
    """Hashes of a problem's question and of its expected answer; empty where a record has none."""

    question: str
    gold: str


class BenchmarkRecords(Struct, kw_only=True):
    """The samples of one benchmark in one run.

    samples   identity of a problem → its samples, one for each of `files` (None: it has no line there)
    contents  identity of a problem → what it asks
    score     name of the score that is compared, as in metrics.json
    graders   versions that made the verdicts, where the records say so
    damaged   lines that could not be read
    too_long  lines longer than `LONGEST_LINE`, which are left out
    missing   rows that a finished file has lost
    place     of the record that was read last, among the lines of its file that are not blank, from 0
    facts     benchmark.json
    states    exit records of the files, with the settings they were made with
    """

    benchmark: str
    folder: Path
    files: tuple[Path, ...]
    samples: dict[str, list[SampleScore | None]] = {}
    contents: dict[str, RecordContent] = {}
    score: str = ""
    metric: str = ""
    graders: set[str] = msgspec.field(default_factory=set)
    damaged: int = 0
    too_long: int = 0
    missing: int = 0
    place: int = 0
    facts: Row = {}
    states: tuple[RunState | None, ...] = ()

    @property
    def seeds(self) -> tuple[int | None, ...]:
        """The seed of each file; None for the only one."""
        return tuple(map(seed_of, self.files))


class RunRecords(Struct, kw_only=True):
    """A run: `benchmarks` that can be compared, `left_out` → why, and `notes` on what was found broken."""

    name: str
    path: Path
    benchmarks: dict[str, BenchmarkRecords]
    left_out: dict[str, str]
    notes: list[str]


def refuse_benchmarks_among(runs: Sequence[Path], wanted: Sequence[str]) -> None:
    """Refuse names of benchmarks that stand among folders of results: what follows a blank behind `--benchmarks A`.

    Raises ConfigError with the option as it is meant; DataError where the first folder is none.
    """
    if not wanted:
        return
    names = {fold(item.benchmark) for item in list_results(runs[0])}
    for entry in list_benchmarks():
        names.update(map(fold, (entry.name, *entry.aliases)))
    strays = [str(path) for path in runs[1:] if fold(str(path)) in names and not _has_results(path)]
    if strays:
        raise ConfigError(
            f"{strays[0]} is the name of a benchmark, not a folder of results.",
            hint=f"Separate benchmarks with commas: --benchmarks={','.join([*wanted, *strays])}",
        )


def _has_results(path: Path) -> bool:
    return path.is_dir() and bool(list_results(path))


def read_run(path: Path, name: str, wanted: Sequence[str] = ()) -> RunRecords:
    """Read a run; `wanted`: only these benchmarks, empty for all. Raises DataError where there is no folder, or
    nothing in it."""
    run = RunRecords(name=name, path=path, benchmarks={}, left_out={}, notes=[])
    for item in list_results(path):
        if wanted and item.benchmark not in wanted:
            continue
        if not item.files:
            run.left_out[item.benchmark] = _unfinished_notice(item)
            continue
        try:
            records, notes = read_benchmark(item)
        except UserError as error:
            run.left_out[item.benchmark] = error.message
            continue
        run.notes += [f"{name}: {note}" for note in notes]
        if not records.samples:
            run.left_out[item.benchmark] = f"{item.folder} has no rows."
        elif not records.graders and not _has_score(records):
            run.left_out[item.benchmark] = f"no record in {item.folder} has a verdict: grade them with ns grade."
        else:
            run.benchmarks[item.benchmark] = records
    if not run.benchmarks and not run.left_out:
        of_wanted = ""
        if wanted:
            of_wanted = f" of {', '.join(wanted)}"
        raise DataError(
            f"{path} has no results{of_wanted}: neither output*.jsonl, nor eval-results/<benchmark>/output*.jsonl."
        )
    return run


def _has_score(records: BenchmarkRecords) -> bool:
    return any(
        sample is not None and sample.score is not None
        for samples in records.samples.values()
        for sample in samples
    )


def _unfinished_notice(item: BenchmarkResults) -> str:
    logs = sorted(item.folder.glob("output*.jsonl-async"))
    if not logs:
        return f"{item.folder} has no output files."
    rows = sum(map(row_count, logs))
    return f"{item.folder} is not finished: {counted(rows, 'row')} so far."


def read_benchmark(
    item: BenchmarkResults, grader: GraderChoice | None = None
) -> tuple[BenchmarkRecords, list[str]]:
    """Read all samples of a benchmark's files, and notes; with a `grader`, as that one judges them now.

    Raises UserError: no metric fits, the records are not graded, the grader does not know its settings.
    """
    facts = read_facts(item.folder)
    name, options, notes = choose_metric(item.benchmark, item.files, metric_finder(facts), SummaryOptions())
    metric = make_metric(name, **options)
    if not isinstance(metric, ScoreMetric):
        raise DataError(f"The metric '{name}' gives samples no score of their own, so they cannot be compared.")
    records = BenchmarkRecords(
        benchmark=item.benchmark,
        folder=item.folder,
        files=item.files,
        metric=name,
        facts=facts,
        states=tuple(load_state(OutputPaths(file).state) for file in item.files),
    )
    scores: Counter[str] = Counter()
    for number, file in enumerate(item.files):
        seen: Counter[str] = Counter()
        for row in _graded_rows(records, number, metric, grader):
            seen[str(row["id"])] += 1
            if seen[str(row["id"])] > 1:
                row["id"] = f"{row['id']} ({seen[str(row['id'])]})"
            _add_sample(records, number, row, metric, scores)
        if (expected := expected_rows(file)) is not None:
            records.missing += max(0, expected - sum(1 for row in records.samples.values() if row[number]))
    records.score = next((score for score in metric.headline if scores[score]), metric.headline[0])
    return records, [*notes, *_record_warnings(records)]


class JudgedRow(NamedTuple):
    """A record, all of it, and how it ended. `place`: its line in its file, from 0, blank ones apart."""

    row: Row
    seed: int | None
    sample: SampleScore
    place: int


def read_rows_with_verdicts(item: BenchmarkResults, notes: list[str]) -> Iterator[JudgedRow]:
    """Yield all records of a benchmark, file by file, in constant memory; `notes` gets how many lines cannot be
    read.

    Raises UserError where no metric fits.
    """
    facts = read_facts(item.folder)
    name, options, _ = choose_metric(item.benchmark, item.files, metric_finder(facts), SummaryOptions())
    metric = make_metric(name, **options)
    if not isinstance(metric, ScoreMetric):
        raise DataError(f"The metric '{name}' does not tell right samples from wrong ones.")
    records = BenchmarkRecords(benchmark=item.benchmark, folder=item.folder, files=item.files, metric=name)
    for number, seed in enumerate(records.seeds):
        for row in _graded_rows(records, number, metric, None, whole=True):
            yield JudgedRow(row, seed, _sample_score(row, score_values(row, metric), metric), records.place)
    notes += _record_warnings(records)


def read_whole_rows(item: BenchmarkResults, file: Path, records: BenchmarkRecords | None = None) -> Iterator[Row]:
    """Return the records of one file with all their fields; lines that cannot be read are left out, and counted in
    `records`."""
    own = BenchmarkRecords(benchmark=item.benchmark, folder=item.folder, files=item.files)
    return readable_rows(file, _EVERYTHING, records or own)


def read_facts(folder: Path) -> Row:
    """Read `benchmark.json` of a benchmark's folder; empty where there is none that can be read."""
    try:
        return msgspec.json.decode((folder / BENCHMARK_FILE).read_bytes(), type=Row)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return {}


def metric_finder(facts: Row) -> MetricFor:
    """Return the function that names the metric of a benchmark: its own, or the one in its facts."""

    def metric_for(benchmark: str) -> tuple[str, dict[str, Any]]:
        try:
            entry = get_benchmark(benchmark)
        except UnknownNameError:
            if (own := str(facts.get("metric"))) in METRICS:
                return own, {}
            raise
        return entry.metric, entry.metric_config

    return metric_for


def _record_warnings(records: BenchmarkRecords) -> Iterator[str]:
    benchmark = records.benchmark
    if records.damaged:
        yield f"{benchmark}: {counted(records.damaged, 'line')} cannot be read and are left out."
    if records.too_long:
        size = f"{LONGEST_LINE >> 20} MB"
        yield f"{benchmark}: {counted(records.too_long, 'line')} longer than {size} are left out."
    if records.missing > records.damaged + records.too_long:
        yield f"{benchmark}: {counted(records.missing, 'row')} of finished files are missing."
    until = load_until(records.folder)
    if until is not None and until.partial and until.method == METHOD_TEXT:
        yield (
            f"{benchmark} was stopped early (--until '{until.rule}', {until.rows:,} of {until.of:,} problems). "
            "p-values and intervals of a comparison assume a number of problems that was fixed before."
        )
    made_by = str(records.facts.get("newskills") or "")
    if is_newer(made_by):
        yield f"{benchmark} was written by newskills {made_by}, which is newer than this one ({__version__})."


def _graded_rows(
    records: BenchmarkRecords,
    number: int,
    metric: ScoreMetric,
    grader: GraderChoice | None,
    *,
    whole: bool = False,
) -> Iterator[Row]:
    """Yield the rows of the file with this number, with their verdicts; all of their fields if `whole` or regraded by
    `grader`, else what is counted."""
    file = records.files[number]
    if grader is not None:
        rows = readable_rows(file, decoder_of({**RECORD_FIELDS, **metric.fields}), records, whole=True)
        yield from grade_rows(rows, grader.name, grader.config, grader.sandbox)
        return
    how = text_verdict(records.metric, file)
    fields = {**RECORD_FIELDS, **metric.fields}
    if how is not None:
        fields |= fields_of(how)
    rows = readable_rows(file, decoder_of(fields), records, whole=whole)
    if how is None:
        yield from rows
    else:
        yield from (row for (row,) in grade_problems(([row] for row in rows), how))


def _add_sample(
    records: BenchmarkRecords, number: int, row: Row, metric: ScoreMetric, scores: Counter[str]
) -> None:
    """Add a sample of the file with this number; count in `scores` which of the headline's it has."""
    identity = str(row["id"])
    if isinstance(row.get("grader"), str):
        records.graders.add(row["grader"])
    values = score_values(row, metric)
    if values and not any(name in values for name in metric.headline):
        return  # a problem of another kind, which the headline is not about
    scores.update(name for name in metric.headline if values.get(name) is not None)
    samples = records.samples.setdefault(identity, [None] * len(records.files))
    samples[number] = _sample_score(row, values, metric)
    records.contents.setdefault(identity, _record_content(row))


def readable_rows(
    file: Path, decoder: Decoder, records: BenchmarkRecords, *, whole: bool = False
) -> Iterator[Row]:
    """Yield the rows that can be read, with all their fields if `whole`; records without an identity are known by their
    line."""
    place = 0
    for path in file_parts(file):
        with open_for_reading(path) as lines:
            for number, line in enumerate(bounded_lines(lines), 1):
                if line is None:
                    place += 1
                    records.too_long += 1
                    continue
                if line.isspace():
                    continue
                place += 1
                try:
                    row = decode_record(line, decoder, path, number)
                    if whole:
                        row = decode_record(line, _EVERYTHING, path, number)
                except DataError:
                    records.damaged += 1
                    continue
                if row.get("id") in (None, ""):
                    row["id"] = f"line {place}"
                records.place = place - 1
                yield row


def _sample_score(row: Row, values: Mapping[str, float | None], metric: ScoreMetric) -> SampleScore:
    answer = metric.answer(row)
    outcome, cause = metric.ending(row, values, answer)
    score = headline_score(values, metric)
    tokens = row.get("num_generated_tokens")
    if score is None:
        outcome = "unscored"
    story = None
    if score != 1:
        story = story_of(row, outcome, cause)
    return SampleScore(outcome, cause, score, answer, tokens, story)


def score_values(row: Row, metric: ScoreMetric) -> Mapping[str, float | None]:
    """Return the scores that the metric gives a sample; none where its generation failed."""
    if is_lost(row):
        return {}
    return metric.scores(row)


def headline_score(values: Mapping[str, float | None], metric: ScoreMetric) -> float | None:
    """Return the first score of the metric's headline that is known."""
    for name in metric.headline:
        score = values.get(name)
        if score is not None:
            return float(score)
    return None


def _record_content(row: Row) -> RecordContent:
    question = next((row[name] for name in QUESTION_FIELDS if row.get(name) is not None), None)
    return RecordContent(content_hash(question), content_hash(row.get("expected_answer")))


def content_hash(value: object) -> str:
    """Return 16 hex digits of a hash; empty for None. Blanks around it do not count."""
    if value is None:
        return ""
    return hashlib.blake2b(str(value).strip().encode("utf-8", "replace"), digest_size=8).hexdigest()
