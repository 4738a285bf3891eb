# SPDX-License-Identifier: Apache-2.0
"""Runs of MLflow, one for each task.

`export.mlflow`: tracking_uri (or the name of a variable that holds it; else MLFLOW_TRACKING_URI), experiment_name,
run_name, description, tags, extra_metadata, skip_existing, log_metrics, log_artifacts. The run of a task is found again
by its tag `job_id`, so that exporting again does not add another one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any

from newskills.base.callbacks import PrintLine
from newskills.base.errors import ConfigError, NewskillsError
from newskills.base.records import Row
from newskills_evaluator.export_results import UPLOADED, Results, chosen_scores

EXPERIMENT = "nemo-evaluator-launcher"


def export(results: Sequence[Results], settings: Row, environ: Mapping[str, str], say: PrintLine) -> None:
    """Log each result as a run in MLflow. Raises ConfigError (no mlflow, no address), NewskillsError for errors of the
    service."""
    if find_spec("mlflow") is None:
        raise ConfigError("MLflow needs the package mlflow.", hint="Run: pip install 'newskills[mlflow]'")
    uri = str(settings.get("tracking_uri") or environ.get("MLFLOW_TRACKING_URI") or "")
    if "://" not in uri:
        uri = environ.get(uri, uri)
    if not uri:
        raise ConfigError(
            "There is no export.mlflow.tracking_uri, so the MLflow server is not known.",
            hint="Set it, or MLFLOW_TRACKING_URI, to http://SERVER:PORT, or with all of mlflow installed to sqlite:///FILE.",
        )
    from mlflow import MlflowClient
    from mlflow.exceptions import MlflowException

    client = MlflowClient(tracking_uri=uri.rstrip("/"))
    try:
        experiment = _find_or_create_experiment(client, str(settings.get("experiment_name") or EXPERIMENT))
        for result in results:
            say(_log_run(client, experiment, result, settings))
    except (MlflowException, OSError) as error:
        raise NewskillsError(f"MLflow at {uri}: {error}") from error


def metric_name(score: str) -> str:
    """Return `score` in letters that MLflow takes: `pass@1[avg-of-8]` → `pass_at_1_avg-of-8`."""
    return re.sub(r"[^A-Za-z0-9_.:/ -]+", "_", score.replace("@", "_at_")).replace("__", "_").strip("_")[:250]


def _find_or_create_experiment(client: Any, name: str) -> str:
    existing = client.get_experiment_by_name(name)
    if existing:
        return str(existing.experiment_id)
    return str(client.create_experiment(name))


def _log_run(client: Any, experiment: str, result: Results, settings: Row) -> str:
    label = settings.get("run_name") or f"eval-{result.invocation}-{result.job.task}"
    earlier_runs = client.search_runs([experiment], f"tags.job_id = '{result.job.id}'", max_results=1)
    if earlier_runs and settings.get("skip_existing"):
        return f"MLflow run {label} already exists"
    tags = {
        "invocation_id": result.invocation,
        "job_id": result.job.id,
        "task_name": result.job.task,
        "benchmark": result.job.benchmark,
        "harness": result.harness,
        "executor": result.executor,
        **{str(key): str(value) for key, value in (settings.get("tags") or {}).items()},
    }
    if settings.get("description"):
        tags["mlflow.note.content"] = str(settings["description"])
    if earlier_runs:
        run = earlier_runs[0]
    else:
        run = client.create_run(experiment, tags=tags, run_name=str(label))
    identity = run.info.run_id
    if not earlier_runs:
        facts = {"invocation_id": result.invocation, "executor": result.executor, "model": result.job.model}
        for key, value in {**facts, **(settings.get("extra_metadata") or {})}.items():
            client.log_param(identity, str(key), str(value)[:500])
    for name, value in chosen_scores(result.scores, settings.get("log_metrics") or ()).items():
        client.log_metric(identity, metric_name(name), value)
    if settings.get("log_artifacts", True):
        for name in UPLOADED:
            if (file := result.artifacts / name).is_file():
                client.log_artifact(identity, str(file), f"{result.harness}.{result.job.benchmark}/artifacts")
    client.set_terminated(identity)
    return f"MLflow run {label}: {identity}"
