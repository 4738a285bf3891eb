# SPDX-License-Identifier: Apache-2.0
"""How much the wording of prompts changes a model's scores: `DIR/<benchmark>/<prompt>/…` → statistics and tables.

A run is one output file: one prompt, one seed. Standard deviations are those of the runs at hand (ddof 0).
`prompt_sensitivity` is the deviation of the prompts' mean scores; `consistency_rate` the share of pairs of runs that
give a problem the same answer, averaged over problems. On why one prompt is not enough: Sclar et al. 2024,
arXiv:2310.11324.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

from msgspec import Struct

from newskills.base.errors import DataError
from newskills.base.records import Report, Row
from newskills.base.store import atomic_write, no_folder, write_json
from newskills.metrics.counting.base import NO_ANSWER
from newskills.run.reporting.predictions import read_problems
from newskills.run.reporting.results import BenchmarkResults, list_results
from newskills.run.reporting.summarize import METRICS_FILE, MetricFor, SummaryOptions, lost_share, summarize_files
from newskills.run.reporting.tables import titled_table

FOLDER = "summarize_robustness"
TABLES_FILE = "tables.txt"
SINGLE_MODE = "pass@1"
_VERDICTS = ("symbolic_correct", "is_correct")
_FIELDS: Mapping[str, Any] = dict.fromkeys(("outcome", "predicted_answer", *_VERDICTS), Any)
STATISTICS = ("min", "max", "avg", "std")
SENSITIVITY, CONSISTENCY = "prompt_sensitivity", "consistency_rate"
_ABOUT_ALL = (*STATISTICS, SENSITIVITY, CONSISTENCY, NO_ANSWER)
_ABOUT_ONE = (*STATISTICS, CONSISTENCY, NO_ANSWER)


class Spread(Struct, frozen=True, kw_only=True):
    """Some runs of a benchmark, in percent; None: there is nothing to say, or scores are withheld.

    avg_interval  95 % interval of the mean score over problems
    """

    min: float | None
    max: float | None
    avg: float | None
    std: float | None
    avg_interval: tuple[float, float] | None
    consistency_rate: float | None
    no_answer: float | None
    num_runs: int


class Robustness(Struct, frozen=True, kw_only=True):
    """One benchmark under several prompts. `unscored`: percent of unscored attempts.

    num_seeds  runs of each prompt; of the prompt with the most, where they differ
    withheld   too many attempts were lost: there are no scores
    """

    benchmark: str
    metric: str
    all_prompts: Spread
    prompt_sensitivity: float | None
    prompts: dict[str, Spread]
    num_seeds: int
    unscored: float
    withheld: bool


class RobustnessSummary(Struct, kw_only=True):
    """`notes`: sentences to show; `path`: where the numbers went."""

    benchmarks: list[Robustness]
    notes: list[str]
    path: Path


class _Runs(Struct, kw_only=True):
    """What output files say: a score of each (percent), answers that are missing, and all of them together."""

    files: tuple[Path, ...]
    metric: str
    scores: list[float | None]
    missing: list[float]
    together: Report


def summarize_robustness(
    results_dir: Path, metric_for: MetricFor | None, options: SummaryOptions
) -> RobustnessSummary:
    """Read every benchmark and prompt below `results_dir`, and write numbers and tables.

    Raises DataError (nothing there, broken or unlike records), ConfigError (metric), StorageError.
    """
    prompts_by_benchmark = prompts_of(results_dir)
    notes: list[str] = []
    benchmarks = []
    for name, prompts in prompts_by_benchmark.items():
        runs = {prompt: _read_runs(results, metric_for, options, notes) for prompt, results in prompts.items()}
        benchmarks.append(_make_robustness(name, runs, options.accept_lost))
    path = options.save_metrics_path or results_dir / FOLDER / METRICS_FILE
    write_json(path, {benchmark.benchmark: benchmark for benchmark in benchmarks})
    with atomic_write(path.with_name(TABLES_FILE)) as file:
        file.write(render_robustness(benchmarks).encode())
    return RobustnessSummary(benchmarks=benchmarks, notes=list(dict.fromkeys(notes)), path=path)


def prompts_of(results_dir: Path) -> dict[str, dict[str, BenchmarkResults]]:
    """Return benchmark → prompt → its output files. Raises DataError where there are none."""
    if not results_dir.is_dir():
        raise no_folder(results_dir)
    benchmarks: dict[str, dict[str, BenchmarkResults]] = {}
    for folder in _sorted_folders(results_dir):
        for prompt in _sorted_folders(folder):
            for result in list_results(prompt):
                if result.files:
                    benchmarks.setdefault(result.benchmark, {})[prompt.name] = result
    if not benchmarks:
        raise DataError(
            f"{results_dir} has no results of several prompts: there is no "
            "<benchmark>/<prompt>/eval-results/<benchmark>/output*.jsonl.",
            hint="ns robust_eval writes them; for single evaluations use ns summarize_results.",
        )
    return benchmarks


def render_robustness(benchmarks: Sequence[Robustness], width: int | None = None) -> str:
    """Return a table over benchmarks, then one over the prompts of each, and below what the numbers leave out; in lines
    of at most `width` columns."""
    head = ["benchmark@runs", *_ABOUT_ALL, "num_prompts", "num_seeds"]
    rows = [head]
    for benchmark in benchmarks:
        cells = [_table_cell(benchmark, benchmark.all_prompts, name) for name in _ABOUT_ALL]
        name = f"{benchmark.benchmark}@{benchmark.all_prompts.num_runs}"
        rows.append([name, *cells, str(len(benchmark.prompts)), str(benchmark.num_seeds)])
    blocks = [titled_table("robustness over prompts", rows, width)]
    for benchmark in benchmarks:
        rows = [["prompt@seeds", *_ABOUT_ONE, "95% interval"]]
        rows += [_table_line(benchmark, prompt, spread) for prompt, spread in benchmark.prompts.items()]
        rows.append(_table_line(benchmark, "all prompts", benchmark.all_prompts))
        below = [f"scores: {benchmark.metric}"]
        if benchmark.unscored:
            withheld = "; scores are withheld" if benchmark.withheld else ""
            below.append(f"unscored: {benchmark.unscored:.2f}% of the samples{withheld}")
        blocks.append(titled_table(benchmark.benchmark, rows, width) + "".join(f"{line}\n" for line in below))
    return "".join(f"\n{block}" for block in blocks) + "\n"


def _read_runs(
    result: BenchmarkResults, metric_for: MetricFor | None, options: SummaryOptions, notes: list[str]
) -> _Runs:
    reports = []
    for files in ([file] for file in result.files):
        reports.append(_prompt_report(result.benchmark, files, metric_for, options, notes))
    together = reports[0]
    if len(result.files) > 1:
        together = _prompt_report(result.benchmark, result.files, metric_for, options, notes)
    metric = _first_score_name(together)
    numbers = [report.numbers.get(SINGLE_MODE, {}) for report in reports]
    missing = [row[NO_ANSWER].value for row in numbers if NO_ANSWER in row]
    scores = [row[metric].value if metric in row else None for row in numbers]
    return _Runs(files=result.files, metric=metric, scores=scores, missing=missing, together=together)


def _prompt_report(
    benchmark: str,
    files: Sequence[Path],
    metric_for: MetricFor | None,
    options: SummaryOptions,
    notes: list[str],
) -> Report:
    reports, remarks = summarize_files(benchmark, files, metric_for, options)
    notes += remarks
    if not reports:
        raise DataError(f"{files[0]} has no rows.")
    return reports[0]


def _first_score_name(report: Report) -> str:
    """Return the name of the first score of the table."""
    scores = report.numbers.get(SINGLE_MODE, {})
    names = [name for name in (*report.columns, *scores) if name in scores and name != NO_ANSWER]
    if names:
        return names[0]
    return ""


def _make_robustness(name: str, runs: Mapping[str, _Runs], accept_lost: float) -> Robustness:
    metrics = list(
        dict.fromkeys(runs_of_prompt.metric for runs_of_prompt in runs.values() if runs_of_prompt.metric)
    )
    if len(metrics) > 1:
        raise DataError(f"{name}: some prompts were scored by {metrics[0]}, others by {metrics[1]}.")
    reports = [runs_of_prompt.together for runs_of_prompt in runs.values()]
    lost = sum(report.ledger.lost for report in reports)
    total = sum(report.ledger.total for report in reports)
    withheld = lost_share(reports) > accept_lost
    prompts = {prompt: _score_spread([runs_of_prompt], withheld) for prompt, runs_of_prompt in runs.items()}
    means = [spread.avg for spread in prompts.values() if spread.avg is not None]
    metric = metrics[0] if metrics else ""
    prompt_sensitivity = pstdev(means) if len(means) > 1 else None
    return Robustness(
        benchmark=name,
        metric=metric,
        all_prompts=_score_spread(list(runs.values()), withheld),
        prompt_sensitivity=prompt_sensitivity,
        prompts=prompts,
        num_seeds=max(len(runs_of_prompt.files) for runs_of_prompt in runs.values()),
        unscored=100.0 * lost / total,
        withheld=withheld,
    )


def _score_spread(runs: Sequence[_Runs], withheld: bool) -> Spread:
    scores = [score for run in runs for score in run.scores if score is not None and not withheld]
    missing = [share for run in runs for share in run.missing]
    files = [file for run in runs for file in run.files]
    avg = fmean(scores) if scores else None
    std = pstdev(scores) if scores else None
    avg_interval = _spread_interval(runs[0]) if scores and len(runs) == 1 else None
    consistency_rate = None if withheld else answer_consistency(files)
    no_answer = fmean(missing) if missing else None
    return Spread(
        min=min(scores, default=None),
        max=max(scores, default=None),
        avg=avg,
        std=std,
        avg_interval=avg_interval,
        consistency_rate=consistency_rate,
        no_answer=no_answer,
        num_runs=len(files),
    )


def _spread_interval(runs: _Runs) -> tuple[float, float] | None:
    numbers = runs.together.numbers.get(_mean_mode(len(runs.files)), {})
    number = numbers.get(runs.metric)
    if number is not None:
        return (number.low, number.high)
    return None


def _mean_mode(runs: int) -> str:
    if runs == 1:
        return SINGLE_MODE
    return f"{SINGLE_MODE}[avg-of-{runs}]"


def answer_consistency(files: Sequence[Path]) -> float | None:
    """Return the percent of pairs of runs that agree on a problem, averaged over problems; None where there are no
    pairs.

    Two right answers agree however they are written; others do where their texts are the same. A missing answer
    agrees with none; unscored attempts form no pairs. Records without `predicted_answer` (programs) agree where
    their verdicts do. Raises DataError where a problem is not in all files.
    """
    shares = [share for share in map(_pair_agreement, read_problems(files, _FIELDS)) if share is not None]
    if shares:
        return 100.0 * fmean(shares)
    return None


def _pair_agreement(attempts: Sequence[Row]) -> float | None:
    scored = [row for row in attempts if row.get("outcome") != "unscored"]
    pairs = len(scored) * (len(scored) - 1)
    if not pairs:
        return None
    counts = Counter(label for row in scored if (label := _answer_label(row)) is not None)
    return sum(count * (count - 1) for count in counts.values()) / pairs


def _answer_label(row: Row) -> Hashable:
    """Return a label that is equal for answers that agree; None for a missing answer."""
    verdict = row.get("outcome") or next(
        (bool(row[name]) for name in _VERDICTS if row.get(name) is not None), None
    )
    if verdict in ("correct", True):
        return True
    if verdict == NO_ANSWER:
        return None
    if "predicted_answer" not in row:
        return False
    answer = row["predicted_answer"]
    if answer is None or not str(answer).strip():
        return None
    return str(answer).strip().casefold()


def _table_line(benchmark: Robustness, prompt: str, spread: Spread) -> list[str]:
    interval = spread.avg_interval
    shown = ""
    if interval is not None:
        shown = f"[{interval[0]:.2f}%, {interval[1]:.2f}%]"
    return [f"{prompt}@{spread.num_runs}", *(_table_cell(benchmark, spread, name) for name in _ABOUT_ONE), shown]


def _table_cell(benchmark: Robustness, spread: Spread, name: str) -> str:
    value: float | None = benchmark.prompt_sensitivity if name == SENSITIVITY else getattr(spread, name)
    if value is None:
        return "—"
    return f"{value:.2f}%"


def _sorted_folders(parent: Path) -> Iterator[Path]:
    for folder in sorted(parent.iterdir()):
        name = folder.name
        if folder.is_dir() and not name.startswith(".") and "-logs" not in name and name != FOLDER:
            yield folder
