# SPDX-License-Identifier: Apache-2.0
"""The report of an evaluation, or of several and the trainings between them: everything a reader needs to trust it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from newskills._version import __version__
from newskills.base.errors import DataError, NewskillsError
from newskills.base.reading.json_values import object_or_empty
from newskills.base.records import Number, Row
from newskills.base.store import no_folder, read_rows
from newskills.base.terminal import counted
from newskills.run.records.paths import OutputPaths
from newskills.run.records.state import load_state
from newskills.run.reporting.results import BenchmarkResults
from newskills.run.reporting.summarize import METRICS_FILE
from newskills.view.comparison import shown
from newskills.view.comparison.origin import run_file
from newskills.view.comparison.paired_runs import CompareOptions, compare_run_folders, run_names
from newskills.view.comparison.records import BenchmarkRecords, RunRecords, SampleScore, content_hash, read_run
from newskills.view.comparison.regrade import grader_spread, score_of
from newskills.view.comparison.why import prompt_text, recorded_grader
from newskills.view.documents.charts import (
    SMALL_SIZE,
    Estimate,
    Series,
    distribution_chart,
    interval_pictures,
    line_chart,
)
from newskills.view.documents.document import Block, Figure, Fold, Grid, Heading, Paragraph, Preformatted, Table
from newskills.view.documents.trainings import training_blocks

_MAX_DEPTH = 3
"""Folders below the given one in which runs are looked for."""


class ReportOptions(Struct, frozen=True, kw_only=True):
    """contamination_file: what ns generate --generation_type=check_contamination wrote about the test problems.

    spread: grade the records by strict and lenient extraction, too.
    """

    contamination_file: Path | None = None
    spread: bool = True


def report_blocks(folders: Sequence[Path], options: ReportOptions = ReportOptions()) -> list[Block]:  # noqa: B008 - frozen
    """Return the blocks of the report. Raises DataError where there are no results, or the contamination file cannot be
    read."""
    places = [place for folder in folders for place in run_folders(folder)]
    if not places:
        raise DataError(f"There are no results in {', '.join(map(str, folders))}.")
    runs = [read_run(path, name) for path, name in zip(places, run_names(places), strict=True)]
    if not any(run.benchmarks for run in runs):
        reasons = " ".join(why for run in runs for why in run.left_out.values())
        raise DataError(f"Nothing is finished yet. {reasons}")
    if options.contamination_file:
        contaminated = contaminated_questions(options.contamination_file)
    else:
        contaminated = None
    blocks: list[Block] = []
    if len(runs) > 1:
        blocks += _comparison_blocks(places)
    blocks += [*_score_blocks(runs, options, contaminated), *_setting_curve_blocks(runs)]
    blocks += [*_curve_blocks(runs), *_length_blocks(runs)]
    for folder in folders:
        blocks += training_blocks(folder)
    return [*blocks, *_remark_blocks(runs), *_setting_blocks(runs), *_origin_blocks(runs)]


def run_folders(folder: Path) -> list[Path]:
    """Return `folder` itself where it holds results, else those below it that do, in the order of their making.

    Raises DataError where there is no such folder.
    """
    if not folder.is_dir():
        raise no_folder(folder)
    if _holds_results(folder):
        return [folder]
    below = [
        path.parent
        for depth in range(1, _MAX_DEPTH + 1)
        for path in folder.glob("/".join(["*"] * depth + ["eval-results"]))
        if path.is_dir()
    ]
    return sorted(below, key=lambda path: (min(_run_times(path), default=0.0), path))


def _holds_results(folder: Path) -> bool:
    patterns = ("output*.jsonl", "eval-results", "*/output*.jsonl")
    return any(next(folder.glob(pattern), None) is not None for pattern in patterns)


def _run_times(folder: Path) -> Iterator[float]:
    """Yield when its files were begun; without an exit record, when they were last written."""
    for path in folder.rglob("output*.jsonl"):
        state = load_state(OutputPaths(path).state)
        if state is not None and state.started:
            yield state.started
        else:
            yield path.stat().st_mtime


def contaminated_questions(path: Path) -> dict[str, bool]:
    """Hash of a question → whether it counts as clean: only where the check says so. Raises DataError."""
    clean: dict[str, bool] = {}
    for row in read_rows(path):
        question = row.get("problem", row.get("question"))
        if question is None or "contaminated" not in row:
            raise DataError(
                f"{path} has rows without `problem` or `contaminated`.",
                hint="Make it with: ns generate --generation_type=check_contamination",
            )
        clean[content_hash(question)] = row["contaminated"] is False
    return clean


def _score_blocks(
    runs: Sequence[RunRecords], options: ReportOptions, contaminated: Mapping[str, bool] | None
) -> Iterator[Block]:
    yield Heading("Scores")
    yield Paragraph(
        "Means over problems in percent, with 95 % intervals over problems. Unscored samples, which could not be "
        "graded, count as neither correct nor wrong."
    )
    head = [
        "run",
        "benchmark",
        "score",
        "95 % interval",
        "problems",
        "samples per problem",
        "no answer",
        "truncated",
        "unscored",
    ]
    rows: list[list[str]] = []
    items: list[Estimate | None] = []
    for group, run in enumerate(runs):
        for name, records in run.benchmarks.items():
            number = score_of(records)
            if number.n:
                score = [f"{number.value:.2f}", _interval_text(number)]
            else:
                score = ["—", "—"]
            rows.append([run.name, name, *score, *_share_cells(records, number)])
            label = f"{name} {run.name}"
            estimate = None
            if number.n:
                estimate = Estimate(label, number.value, number.low, number.high, group)
            items.append(estimate)
    yield Table([head, *rows], interval_pictures(items))
    if contaminated is not None:
        yield from _clean_score_blocks(runs, contaminated)
    if options.spread:
        yield from _spread_blocks(runs)


def _share_cells(records: BenchmarkRecords, number: Number) -> list[str]:
    samples = [sample for own in records.samples.values() for sample in own if sample is not None]
    return [
        f"{number.n:,}",
        f"{len(records.files)}",
        _percent_text(samples, [sample.outcome == "no_answer" for sample in samples]),
        _percent_text(samples, [sample.cause == "truncation" for sample in samples]),
        _percent_text(samples, [sample.outcome == "unscored" for sample in samples]),
    ]


def _percent_text(samples: Sequence[SampleScore], which: Sequence[bool]) -> str:
    if samples:
        return f"{100 * sum(which) / len(samples):.1f} %"
    return "—"


def _interval_text(number: Number) -> str:
    return f"[{number.low:.2f}, {number.high:.2f}]"


def _clean_score_blocks(runs: Sequence[RunRecords], contaminated: Mapping[str, bool]) -> Iterator[Block]:
    """Yield a table with the score over the problems that the check calls clean, beside that over all."""
    rows = [
        ["run", "benchmark", "all problems", "clean problems", "95 % interval", "clean", "not clean or not known"]
    ]
    for run in runs:
        for name, records in run.benchmarks.items():
            kept = {
                identity: samples
                for identity, samples in records.samples.items()
                if contaminated.get(records.contents[identity].question)
            }
            checked = sum(content.question in contaminated for content in records.contents.values())
            if not checked:
                continue
            clean = score_of(msgspec.structs.replace(records, samples=kept))
            score_text = interval_text = "—"
            if clean.n:
                score_text, interval_text = f"{clean.value:.2f}", _interval_text(clean)
            rows.append(
                [
                    run.name,
                    name,
                    f"{score_of(records).value:.2f}",
                    score_text,
                    interval_text,
                    f"{len(kept):,}",
                    f"{len(records.samples) - len(kept):,}",
                ]
            )
    yield Heading("Without contaminated problems", 3)
    if len(rows) == 1:
        yield Paragraph("The contamination file is about none of these problems.")
    else:
        yield Table(rows)


def _spread_blocks(runs: Sequence[RunRecords]) -> Iterator[Block]:
    rows = [["run", "benchmark", "strict", "usual", "lenient", "spread"]]
    agreeing = 0
    for run in runs:
        for name, records in run.benchmarks.items():
            choice = recorded_grader(records)
            if choice is None:
                continue
            try:
                spread = grader_spread(BenchmarkResults(name, records.folder, records.files), choice)
            except NewskillsError:  # its settings are no longer known here; the other tables say what it was
                continue
            if spread:
                values = [number.value for number in spread.values()]
                if max(values) == min(values):
                    agreeing += 1
                    continue
                rows.append(
                    [run.name, name, *(f"{value:.2f}" for value in values), f"{max(values) - min(values):.2f}"]
                )
    if agreeing or len(rows) > 1:
        yield Heading("Grader sensitivity", 3)
        yield Paragraph(
            "The same replies, with answers extracted strictly (only in the form that was asked for), as usual, and "
            f"leniently (in any form). {counted(agreeing, 'score')} of {agreeing + len(rows) - 1} did not change."
        )
    if len(rows) > 1:
        yield Table(rows)


def _curve_blocks(runs: Sequence[RunRecords]) -> Iterator[Block]:
    """Yield the curves of pass@k and majority@k of benchmarks with several samples."""
    figures = []
    for name in dict.fromkeys(name for run in runs for name in run.benchmarks):
        series: list[Series] = []
        for run in runs:
            if name in run.benchmarks and len(run.benchmarks[name].files) > 1:
                records = run.benchmarks[name]
                for family in ("pass", "majority"):
                    points = _curve_points(records, family)
                    if len(points) > 1:
                        series.append(Series(f"{run.name} {family}@k", points))
        if series:
            ends = ", ".join(f"{item.label} {item.points[-1][1]:.1f}" for item in series)
            figures.append(
                Figure(line_chart(series, "k", "percent", SMALL_SIZE), f"{name}, at the largest k: {ends}.")
            )
    if figures:
        yield Heading("Scores over the number of samples", 3)
        yield Grid(figures)


def _setting_curve_blocks(runs: Sequence[RunRecords]) -> Iterator[Block]:
    """Yield the scores of three runs or more over the number by which their settings differ."""
    figures = []
    for name in dict.fromkeys(name for run in runs for name in run.benchmarks):
        measured = [run.benchmarks[name] for run in runs if name in run.benchmarks]
        setting, values = _varied_setting([_settings_of(records) for records in measured])
        points = sorted(zip(values, [score_of(records).value for records in measured], strict=False))
        if len(points) > 2:
            scores = ", ".join(f"{value:g}: {score:.1f}" for value, score in points)
            figures.append(
                Figure(line_chart([Series(name, points)], setting, "percent", SMALL_SIZE), f"{name}, {scores}.")
            )
    if figures:
        yield Heading("Scores over a setting", 3)
        yield Grid(figures)


def _varied_setting(runs: Sequence[Row]) -> tuple[str, list[float]]:
    """Return the setting with the most values, and these; nothing where runs differ in what is not a number."""
    varied: dict[str, list[float]] = {}
    for key in dict.fromkeys(key for row in runs for key in row):
        values = [row.get(key) for row in runs]
        if any(value != values[0] for value in values):
            numbers = [_as_number(value) for value in values]
            if None in numbers:
                return "", []
            varied[key] = [number for number in numbers if number is not None]
    if not varied:
        return "", []
    return max(varied.items(), key=lambda item: len(set(item[1])))


def _as_number(value: object) -> float | None:
    """Return a setting as a number, where no thinking is 0 tokens of it; None for what is not a number."""
    if value in (None, "none"):
        return 0.0
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    return None


def _settings_of(records: BenchmarkRecords) -> Row:
    return next((state.settings for state in records.states if state is not None), {})


def _curve_points(records: BenchmarkRecords, family: str) -> list[tuple[float, float]]:
    modes = _read_metrics(records).get(records.benchmark)
    points = []
    for mode, row in (modes or {}).items():
        start, at, k = mode.partition("@")
        if start == family and at and k.isdigit() and isinstance(row.get(records.score), float):
            points.append((float(k), row[records.score]))
    return sorted(points)


def _read_metrics(records: BenchmarkRecords) -> Row:
    try:
        return msgspec.json.decode((records.folder / METRICS_FILE).read_bytes(), type=Row)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return {}


def _length_blocks(runs: Sequence[RunRecords]) -> Iterator[Block]:
    """Yield, for each benchmark, how long the replies of all runs are."""
    figures = []
    for name in dict.fromkeys(name for run in runs for name in run.benchmarks):
        lengths = [(run.name, _token_counts(run.benchmarks[name])) for run in runs if name in run.benchmarks]
        replies = [(run_name, tokens) for run_name, tokens in lengths if tokens]
        if len({tokens for _, own in replies for tokens in own}) > 1:
            means = ", ".join(f"{run_name} {sum(own) / len(own):,.0f}" for run_name, own in replies)
            figures.append(
                Figure(distribution_chart(replies, "tokens", SMALL_SIZE), f"{name}, tokens on average: {means}.")
            )
    if figures:
        yield Heading("Length of replies", 3)
        yield Paragraph("Percent of replies by their length.")
        yield Grid(figures)


def _token_counts(records: BenchmarkRecords) -> list[float]:
    return [
        float(sample.tokens)
        for samples in records.samples.values()
        for sample in samples
        if sample is not None and sample.tokens is not None
    ]


def _comparison_blocks(places: Sequence[Path]) -> Iterator[Block]:
    """Compare every run with the first, whatever differs: that is named."""
    try:
        comparison = compare_run_folders(places, CompareOptions(allow=("data", "prompt", "grader")))
    except DataError as error:
        yield Heading("Comparison")
        yield Paragraph(error.message)
        return
    yield Heading("Comparison")
    yield from shown.comparison_blocks(comparison, 0, level=3)


def _setting_blocks(runs: Sequence[RunRecords]) -> Iterator[Block]:
    yield Heading("Settings")
    for run in runs:
        for name, records in run.benchmarks.items():
            blocks: list[Block] = []
            if made_with := _settings_of(records):
                settings = [[key, _value_text(value)] for key, value in made_with.items()]
                blocks.append(Table([["setting", "value"], *settings]))
            if text := prompt_text(records.facts):
                blocks.append(Preformatted(text))
            if command := run_file(run.path).resume_with:
                blocks += [Paragraph("Command:"), Preformatted(command)]
            yield Fold(f"{name} of {run.name}", blocks)


def _value_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return msgspec.json.encode(value).decode()


def _origin_blocks(runs: Sequence[RunRecords]) -> Iterator[Block]:
    yield Heading("Versions, data and cost")
    rows = [["run", "benchmark", "newskills", "grader", "prompt", "data", "licence of the data"]]
    costs = [["run", "benchmark", "tokens read", "tokens written", "cost", "seconds"]]
    for run in runs:
        for name, records in run.benchmarks.items():
            facts, described = records.facts, object_or_empty(records.facts.get("data"))
            rows.append(
                [
                    run.name,
                    name,
                    _known_text(facts.get("newskills")),
                    _known_text(", ".join(sorted(records.graders)) or facts.get("grader")),
                    f"{_known_text(facts.get('prompt'))} {facts.get('prompt_hash') or ''} "
                    f"{facts.get('prompt_source') or ''}".strip(),
                    _known_text(described.get("sha256"))[:16],
                    " ".join(
                        _known_text(described.get(key)) for key in ("licence", "homepage") if described.get(key)
                    )
                    or "not known",
                ]
            )
            costs.append([run.name, name, *_cost_cells(records)])
    yield Fold("Versions and data of each benchmark", [Table(rows)])
    yield Fold("Tokens, cost and time of each benchmark", [Table(costs)])
    yield Paragraph(f"This report was written by newskills {__version__}.")


def _known_text(value: object) -> str:
    if value:
        return str(value)
    return "not known"


def _cost_cells(records: BenchmarkRecords) -> list[str]:
    states = [state for state in records.states if state is not None]
    cells = []
    for name, form in (("input_tokens", ",.0f"), ("output_tokens", ",.0f"), ("cost", ",.4g")):
        values = [getattr(state, name) for state in states]
        numbers = [value for value in values if value is not None]
        total = format(sum(numbers), form) if numbers else "—"
        cells.append(total)
    times = [(state.started, state.ended) for state in states if state.ended]
    seconds = "—"
    if times:
        seconds = f"{max(end for _, end in times) - min(start for start, _ in times):,.0f}"
    cells.append(seconds)
    return cells


def _remark_blocks(runs: Sequence[RunRecords]) -> Iterator[Block]:
    remarks = [note for run in runs for note in run.notes]
    remarks += [f"{run.name}: {name}: {why}" for run in runs for name, why in run.left_out.items()]
    if remarks:
        yield Heading("What to know about these results")
        yield from map(Paragraph, remarks)
