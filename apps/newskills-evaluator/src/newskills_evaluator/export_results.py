# SPDX-License-Identifier: Apache-2.0
"""Results of an invocation to where people look at them: Weights & Biases, MLflow, local JSON or CSV.

Add a destination: a file in `exporters/` with `export(results, settings, environ, say)`, and a row in `DESTINATIONS`.
It may return the paths that it wrote on this machine.
Scores are called as in NeMo Evaluator: `aime25_pass@1[avg-of-8]_symbolic_correct`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from newskills.base.callbacks import PrintLine
from newskills.base.errors import DataError, NewskillsError
from newskills.base.records import Row
from newskills.base.registry import Registry
from newskills.run.reporting.summarize import EXTENDED_FILE, METRICS_FILE
from newskills_evaluator.artifacts import RESULTS_YML, RUN_CONFIG_YML
from newskills_evaluator.results_yml import task_results

DESTINATIONS = Registry(
    "destination",
    {
        "wandb": "newskills_evaluator.exporters.wandb_runs:export",
        "mlflow": "newskills_evaluator.exporters.mlflow_runs:export",
        "local": "newskills_evaluator.exporters.local:export",
    },
    group="newskills.exporters",
)
HARNESS = "newskills"
UPLOADED = (RESULTS_YML, RUN_CONFIG_YML, METRICS_FILE, EXTENDED_FILE)
"""Files of a task's artifacts that go along with its scores."""


class FinishedJob(Struct, frozen=True, kw_only=True):
    """A task that has been run. id: `<invocation>.<i>`; folder: its run directory, with `artifacts/` in it."""

    id: str
    task: str
    benchmark: str
    folder: str
    container: str = ""
    model: str = ""


class ExportPlan(Struct, frozen=True, kw_only=True):
    """What to export: `settings` has a section for each destination (`export.*` of the configuration)."""

    invocation: str
    executor: str
    destinations: tuple[str, ...] = ()
    settings: dict[str, Row] = {}
    jobs: tuple[FinishedJob, ...] = ()


class Results(Struct, frozen=True, kw_only=True):
    """The scores of one task, by their flat names."""

    invocation: str
    executor: str
    job: FinishedJob
    scores: dict[str, float]

    @property
    def artifacts(self) -> Path:
        return Path(self.job.folder, "artifacts")

    @property
    def harness(self) -> str:
        """`harness.task` names one; else it is newskills."""
        harness, dot, _ = self.job.task.partition(".")
        if dot and "/" not in harness and harness:
            return harness
        return HARNESS


def collect_results(plan: ExportPlan, say: PrintLine = lambda text: None) -> list[Results]:
    """Collect the results of the tasks that have scores; `say` hears of the others. Raises DataError where none
    has."""
    finished_jobs = []
    for job in plan.jobs:
        try:
            scores = flat_scores(task_results(Path(job.folder, "artifacts")))
        except DataError as error:
            say(f"{job.id} ({job.task}) is left out: {error}")
            continue
        finished_jobs.append(Results(invocation=plan.invocation, executor=plan.executor, job=job, scores=scores))
    if not finished_jobs:
        raise DataError(f"Invocation {plan.invocation} has no results to export yet.")
    return finished_jobs


def export_results(
    plan: ExportPlan, environ: Mapping[str, str], say: PrintLine, written: list[Path] | None = None
) -> int:
    """Export to all destinations; return how many failed, of which `say` hears. What was written on this machine is
    added to `written`. Raises DataError, UnknownNameError."""
    results = collect_results(plan, say)
    failed = 0
    for name in plan.destinations:
        export = DESTINATIONS.get(name)
        try:
            paths = export(results, plan.settings.get(name, {}), environ, say) or ()
        except NewskillsError as error:
            failed += 1
            say(f"export to {name} failed: {error}")
        else:
            if written is not None:
                written += paths
    return failed


def chosen_scores(scores: Mapping[str, float], wanted: Sequence[str]) -> dict[str, float]:
    """Return the scores whose name has one of `wanted` in it; all where nothing is wanted (`log_metrics`)."""
    return {name: value for name, value in scores.items() if not wanted or any(part in name for part in wanted)}


def flat_scores(results: Mapping[str, Row]) -> dict[str, float]:
    """Flatten `{"tasks": …, "groups": …}` of results.yml into `T_M_S`, or `T_M` where score and metric have one
    name.

    T is the benchmark, M the mode (`pass@1[avg-of-8]`), S the metric. What is no number is left out.
    """
    metrics: dict[str, float] = {}
    for kind in ("tasks", "groups"):
        for task, body in (results.get(kind) or {}).items():
            for metric, scores in (body.get("metrics") or {}).items():
                for score, score_values in (scores.get("scores") or {}).items():
                    value = score_values.get("value")
                    if isinstance(value, int | float) and not isinstance(value, bool):
                        name = f"{task}_{metric}"
                        if score != metric:
                            name += f"_{score}"
                        metrics[name] = float(value)
    return metrics
