# SPDX-License-Identifier: Apache-2.0
"""A folder of results → one Report per benchmark, metrics.json, and what to tell the user beside."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from newskills._version import __version__
from newskills.base.anytime import anytime_interval
from newskills.base.errors import DataError, StorageError, UnknownNameError, UserError
from newskills.base.protocols import Metric
from newskills.base.records import Report, Row
from newskills.base.registry import fold
from newskills.base.store import write_json
from newskills.base.terminal import counted as counted_as_text
from newskills.benchmarks import get_group
from newskills.metrics import METRICS, VERSION, make_metric
from newskills.metrics.counting.base import ScoreMetric
from newskills.prompts.official.table import NEWSKILLS
from newskills.run.planning.until import METHOD_TEXT, UntilRecord, load_until
from newskills.run.records.completeness import check_complete
from newskills.run.reporting.counted import ALL_SUBSETS, SubsetCounts, fields_when_graded
from newskills.run.reporting.groups import PROMPTS, GroupFor, group_reports
from newskills.run.reporting.panels import ALPHA_METRIC, panel_agreement, with_agreement
from newskills.run.reporting.predictions import read_problems
from newskills.run.reporting.results import (
    BenchmarkResults,
    advice_to_name_a_run,
    list_results,
    read_output,
)
from newskills.run.reporting.tables import ACCEPT_LOST
from newskills.run.reporting.voting import GRADERS_OF_METRICS

MetricFor = Callable[[str], tuple[str, dict[str, Any]]]
"""Benchmark → registered metric and its options. Raises UnknownNameError for a benchmark that it does not know."""

METRICS_FILE = "metrics.json"
EXTENDED_FILE = "metrics_extended.json"
BENCHMARK_FILE = "benchmark.json"
"""Beside the records of a benchmark: which version of it, prompt, grader and data they were made with."""

NOT_SCORES = ("num_entries", "num_benchmarks_in_group", "avg_tokens", "gen_seconds", "unscored", "until", *PROMPTS)
"""What metrics.json still says of a mode whose scores are withheld."""
METRIC_OF_FIELD = {
    "expected_judgement": "answer-judgement",
    "judgement-gen-base": "arena",
    "proof_status": "lean4-proof",
    "strict_eval": "if",
    "is_correct-plus": "evalplus",
    "swe-bench-metrics": "swe-bench",
    "seq_match_ratio": "mrcr",
}
"""Field that only records of one metric have → that metric."""


class _JudgeOrigin(Struct):
    prompt: str = ""
    prompt_source: str = ""


class _Origin(Struct):
    """metric_of_import: what understands records that another system graded, whatever the benchmark is called.
    metric, metric_config: those of the benchmark, for one that is not found by its name."""

    benchmark: str = ""
    group_score: bool = False
    metric_of_import: str = ""
    metric: str = ""
    metric_config: Row = {}
    prompt: str = ""
    prompt_source: str = ""
    judge: _JudgeOrigin | None = None

    def prompts(self) -> dict[str, str]:
        """Return the sources of the prompts' wording, for metrics.json."""
        judge_prompt = self.judge.prompt_source if self.judge else ""
        sources = {"prompt": self.prompt_source, "judge_prompt": judge_prompt}
        return {name: source for name, source in sources.items() if source}


class SummaryOptions(Struct, frozen=True, kw_only=True):
    """What to look at, and how.

    benchmarks          names, or groups of them; empty = all that are found
    max_samples         only the first problems; negative = all
    max_seq_len         longer generations (tokens) count as wrong
    errors_are_incorrect  unscored samples count as wrong, and metrics.json says so
    metric_type         another metric than the benchmark's, with `metrics_kwargs` for its constructor
    save_metrics_path   default: metrics.json in the folder
    accept_lost         share (0-1) of attempts that may be unscored before scores are withheld
    group_for           name → group of benchmarks, for the score of groups
    """

    benchmarks: tuple[str, ...] = ()
    max_samples: int = -1
    max_seq_len: int | None = None
    errors_are_incorrect: bool = False
    metric_type: str | None = None
    metrics_kwargs: dict[str, Any] = {}
    save_metrics_path: Path | None = None
    accept_lost: float = ACCEPT_LOST
    group_for: GroupFor = get_group

    @property
    def partial(self) -> bool:
        """A look that says nothing about the run as a whole."""
        return self.max_samples >= 0 or self.max_seq_len is not None


class Summary(Struct, kw_only=True):
    """`reports` in the order of metrics.json; `notes`: sentences to show; `path`: where metrics.json went.

    `failed`: benchmark → why its records have no numbers.
    """

    reports: list[Report]
    notes: list[str]
    path: Path
    failed: dict[str, str] = {}

    @property
    def failures(self) -> str:
        """What to say of them last; empty where there are none."""
        return " ".join(f"{name} has no numbers: {why}" for name, why in self.failed.items())


def summarize(results_dir: Path, metric_for: MetricFor | None, options: SummaryOptions) -> Summary:
    """Read every benchmark below `results_dir` and write metrics.json with its extended sibling.

    Each benchmark and each group gets these files in its own folder too, where that can be written, unless only a
    part was looked at. A benchmark whose records are broken does not keep the others from their numbers.

    Raises DataError (nothing there, broken records), UnknownNameError, ConfigError (metric), StorageError.
    """
    selected = wanted_benchmarks(results_dir, options)
    notes = [f"{item.folder} has no output files; skipped." for item in selected if not item.files]
    by_benchmark: dict[str, list[Report]] = {}
    folders: dict[str, Path] = {}
    failed: dict[str, DataError] = {}
    for benchmark, folder, files, _ in selected:
        if not files:
            continue
        try:
            reports, remarks = summarize_files(benchmark, files, metric_for, options)
        except DataError as error:
            failed[benchmark] = error
            continue
        notes += remarks
        if reports:
            by_benchmark[benchmark], folders[benchmark] = reports, folder
    if failed and not by_benchmark:
        raise next(iter(failed.values()))
    if not by_benchmark:
        raise _no_results_error(results_dir, options, notes)
    scored = {name.rpartition(".")[0] for name, folder in folders.items() if _in_scored_group(folder)}
    groups, remarks = group_reports([made[0] for made in by_benchmark.values()], options.group_for, scored)
    notes += remarks
    everything = groups + [report for reports in by_benchmark.values() for report in reports]
    path = options.save_metrics_path or results_dir / METRICS_FILE
    write_metrics(path, everything, options.accept_lost)
    if options.partial and options.save_metrics_path is None:
        notes.append(
            f"{METRICS_FILE} has the figures of this part now (elsewhere: --save_metrics_path=FILE). Without "
            "--max_samples and --max_seq_len, the same command writes those of the whole run again."
        )
    elif not options.partial:
        notes += _write_beside_outputs(by_benchmark, folders, groups, options.accept_lost)
    failures = {name: str(error) for name, error in failed.items()}
    return Summary(reports=everything, notes=notes, path=path, failed=failures)


def _in_scored_group(folder: Path) -> bool:
    """Return whether the benchmark was evaluated as part of a group with a score of its own."""
    return _read_origin(folder).group_score


def named_in(folder: Path) -> str:
    """Return the benchmark that its `benchmark.json` names; empty where there is none."""
    return _read_origin(folder).benchmark


def own_prompts(folder: Path) -> list[str]:
    """Return the names of prompts that a benchmark's records were made with in the wording of newskills."""
    origin = _read_origin(folder)
    pairs = [(origin.prompt, origin.prompt_source)]
    if origin.judge is not None:
        pairs += [(origin.judge.prompt, origin.judge.prompt_source)]
    return [prompt for prompt, source in pairs if source == NEWSKILLS]


def _read_origin(folder: Path) -> _Origin:
    try:
        return msgspec.json.decode((folder / BENCHMARK_FILE).read_bytes(), type=_Origin)
    except (OSError, msgspec.DecodeError):
        return _Origin()


def summarize_files(
    benchmark: str, files: Sequence[Path], metric_for: MetricFor | None, options: SummaryOptions
) -> tuple[list[Report], list[str]]:
    """Return the reports of one benchmark (all, then its subsets), and notes. No report where the files are empty.

    Raises DataError for a file that was whole once and lacks rows now, unless only rows that are there are looked at.
    """
    for file in files:
        check_complete(file, options.max_samples)
    name, kwargs, notes = choose_metric(benchmark, files, metric_for, options)
    until = load_until(files[0].parent)
    anytime = until is not None and until.method == METHOD_TEXT

    def fresh_metric() -> Metric:
        metric = make_metric(name, **kwargs)
        if anytime and isinstance(metric, ScoreMetric):
            metric.interval = anytime_interval
        return metric

    counted = SubsetCounts(
        fresh_metric,
        options.max_seq_len,
        GRADERS_OF_METRICS.get(name, ""),
        charged_as=fields_when_graded(fresh_metric(), files) if options.errors_are_incorrect else None,
    )
    _count_samples(counted, name, kwargs, files, options)
    metrics, graders = counted.metrics, counted.graders
    if not metrics[ALL_SUBSETS].ledger().total:
        return [], [*notes, f"{files[0].parent} has no rows; skipped."]
    if len(graders) > 1:
        notes.append(f"{benchmark} was graded by different versions: {', '.join(sorted(graders))}.")
    versions = {"newskills": __version__, "metric": f"{name}@{VERSION}", **_read_origin(files[0].parent).prompts()}
    if graders:
        versions["grader"] = ", ".join(sorted(graders))
    reports = [
        _make_report(benchmark if subset == ALL_SUBSETS else f"{benchmark}-{subset}", metric, versions, until)
        for subset, metric in metrics.items()
    ]
    if options.errors_are_incorrect:
        charged = counted.charged
        notes.append(f"{benchmark}: {counted_as_text(charged, 'unscored sample')} counted as incorrect.")
        for report in reports:
            report.modes = {mode: {**row, "errors_as": "incorrect"} for mode, row in report.modes.items()}
    if (agreement := panel_agreement(files)) is not None:
        notes.append(f"{benchmark}: {agreement.sentence()}")
        reports[0].modes = with_agreement(reports[0].modes, agreement)
        for numbers in reports[0].numbers.values():
            if agreement.alpha is not None:
                numbers[ALPHA_METRIC] = agreement.alpha
    return reports, notes


def _count_samples(
    counted: SubsetCounts, metric: str, kwargs: Row, files: Sequence[Path], options: SummaryOptions
) -> None:
    """Count the samples of each problem by their verdicts, which some records of others tell in a text only."""
    from newskills.run.judging.recorded import fields_of, grade_problems, text_verdict

    how = text_verdict(metric, files[0])
    if (
        how is None
        and len(files) == 1
        and options.max_samples < 0
        and counted.count_file(files[0], metric, kwargs)
    ):
        return
    judge_fields = fields_of(how) if how else {}
    problems = read_problems(files, {**judge_fields, **counted.fields})
    limit = options.max_samples if options.max_samples >= 0 else None
    graded = grade_problems(problems, how) if how else problems
    for predictions in islice(graded, limit):
        counted.update(predictions)


def write_metrics(path: Path, reports: Sequence[Report], accept_lost: float = ACCEPT_LOST) -> None:
    """Write metrics.json and, beside it, intervals, ledgers and versions. Raises StorageError.

    Where more than the share `accept_lost` was lost, metrics.json has no scores; the other file has them, marked.
    """
    withheld = {report.benchmark: lost_share([report]) > accept_lost for report in reports}
    write_json(path, {r.benchmark: _told_modes(r, withheld=withheld[r.benchmark]) for r in reports})
    extended = {
        report.benchmark: {
            "withheld": withheld[report.benchmark],
            "numbers": report.numbers,
            "ledger": report.ledger,
            "versions": report.versions,
        }
        for report in reports
    }
    write_json(extended_path(path), extended)


def extended_path(path: Path) -> Path:
    """Return the path, beside the metrics file `path`, of intervals, ledgers and versions."""
    if path.name == METRICS_FILE:
        name = EXTENDED_FILE
    else:
        name = f"{path.stem}_extended{path.suffix}"
    return path.with_name(name)


def _told_modes(report: Report, *, withheld: bool) -> dict[str, Row]:
    """Return the modes of a report, each with whose prompts they were made with; without scores where these are
    withheld."""
    prompts = {name: report.versions[name] for name in PROMPTS if name in report.versions}
    return {
        mode: {name: value for name, value in metrics.items() if not withheld or name in NOT_SCORES} | prompts
        for mode, metrics in report.modes.items()
    }


def lost_share(reports: Sequence[Report]) -> float:
    """Return the largest share (0–1) of unscored attempts in any of the reports."""
    return max(
        (report.ledger.lost / report.ledger.total for report in reports if report.ledger.total), default=0.0
    )


def _write_beside_outputs(
    by_benchmark: Mapping[str, Sequence[Report]],
    folders: Mapping[str, Path],
    groups: Sequence[Report],
    accept_lost: float,
) -> list[str]:
    """Write the metrics beside the outputs; return notes on folders that cannot be written."""
    files = [(folders[benchmark], reports) for benchmark, reports in by_benchmark.items()]
    for group in groups:
        parent = next(folders[name].parent for name in by_benchmark if name.startswith(f"{group.benchmark}."))
        if parent.name == group.benchmark.rpartition(".")[2]:
            files.append((parent, [group]))
    notes = []
    for folder, reports in files:
        try:
            write_metrics(folder / METRICS_FILE, reports, accept_lost)
        except StorageError as error:
            notes.append(error.message)
    return notes


def _make_report(benchmark: str, metric: Metric, versions: dict[str, str], until: UntilRecord | None) -> Report:
    modes = metric.metrics()
    if until is not None:
        modes = {mode: {**row, "until": msgspec.to_builtins(until)} for mode, row in modes.items()}
    return Report(
        benchmark=benchmark,
        modes=modes,
        numbers=metric.numbers(),
        ledger=metric.ledger(),
        versions=versions,
        columns=metric.columns,
        shown=metric.shown(),
        plain=getattr(metric, "plain", ()),
    )


class UngradedError(DataError):
    """Records of which nothing says what they are worth."""


def choose_metric(
    benchmark: str, files: Sequence[Path], metric_for: MetricFor | None, options: SummaryOptions
) -> tuple[str, dict[str, Any], list[str]]:
    """Return the metric as (name, options, notes). Raises DataError where nothing says which."""
    if options.metric_type is not None:
        return options.metric_type, options.metrics_kwargs, []
    origin = _read_origin(files[0].parent)
    if origin.metric_of_import:
        return origin.metric_of_import, options.metrics_kwargs, []
    if metric_for is not None:
        try:
            name, kwargs = metric_for(benchmark)
            return name, kwargs | options.metrics_kwargs, []
        except UnknownNameError:
            pass
    if origin.metric in METRICS:
        return origin.metric, origin.metric_config | options.metrics_kwargs, []
    name = _infer_metric(benchmark, files[0])
    note = (
        f"{benchmark} is not a known benchmark; its records match the metric '{name}' (--metric_type chooses "
        "another)."
    )
    return name, options.metrics_kwargs, [note]


def _infer_metric(benchmark: str, file: Path) -> str:
    for row in islice(read_output(file), 100):
        if telling_metric := next((metric for field, metric in METRIC_OF_FIELD.items() if field in row), None):
            return telling_metric
        if "symbolic_correct" in row or "judgement" in row:
            return "math"
        if "is_correct" in row or "outcome" in row:
            return "generic"
    raise UngradedError(
        f"{benchmark} is not a known benchmark, and {file} has no field that says which answers are correct.",
        hint="Grade it with `ns grade`, or give the metric with --metric_type.",
    )


def wanted_benchmarks(results_dir: Path, options: SummaryOptions) -> list[BenchmarkResults]:
    """Return the benchmarks that `summarize` would look at. Raises DataError."""
    return [item for item in list_results(results_dir) if _is_wanted(item.benchmark, options.benchmarks)]


def _is_wanted(benchmark: str, names: Sequence[str]) -> bool:
    own = fold(benchmark)
    return not names or any(own == fold(name) or own.startswith(f"{fold(name)}.") for name in names)


def _no_results_error(results_dir: Path, options: SummaryOptions, notes: Sequence[str]) -> UserError:
    results = [item for item in list_results(results_dir) if item.files]
    if empty := [item.benchmark for item in results if _is_wanted(item.benchmark, options.benchmarks)]:
        why = "max_samples is 0." if options.max_samples == 0 else " ".join(notes)
        return DataError(f"{', '.join(empty)}: there are no rows to score: {why}")
    if options.benchmarks and results:
        missing = [
            name for name in options.benchmarks if not any(_is_wanted(item.benchmark, (name,)) for item in results)
        ]
        return UnknownNameError(
            "benchmark in the results", ", ".join(missing), [item.benchmark for item in results]
        )
    if not results and (advice := advice_to_name_a_run(results_dir)):
        return DataError(f"{results_dir} has no results: {advice}")
    return DataError(
        (
            f"{results_dir} has no results: it contains no output*.jsonl, no "
            f"eval-results/<benchmark>/output*.jsonl and no <benchmark>/output*.jsonl. {' '.join(notes)}"
        ).rstrip()
    )
