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

from newskills.base.errors import ConfigError, NewskillsError
from newskills.base.records import Row
from newskills.interop.export_results import UPLOADED, Results, Say, chosen

EXPERIMENT = "nemo-evaluator-launcher"


def export(results: Sequence[Results], settings: Row, environ: Mapping[str, str], say: Say) -> None:
    """Raises ConfigError (no mlflow, no address), NewskillsError for what the service says."""
    if find_spec("mlflow") is None:
        raise ConfigError("MLflow needs the package mlflow.", hint="Run: pip install 'newskills[mlflow]'")
    uri = str(settings.get("tracking_uri") or environ.get("MLFLOW_TRACKING_URI") or "")
    uri = uri if "://" in uri else environ.get(uri, uri)
    if not uri:
        raise ConfigError(
            "Where does MLflow run? There is no export.mlflow.tracking_uri.",
            hint="Set it, or MLFLOW_TRACKING_URI, to http://SERVER:PORT, or with all of mlflow installed to sqlite:///FILE.",
        )
    from mlflow import MlflowClient
    from mlflow.exceptions import MlflowException

    client = MlflowClient(tracking_uri=uri.rstrip("/"))
    try:
        experiment = _experiment(client, str(settings.get("experiment_name") or EXPERIMENT))
        for one in results:
            say(_run(client, experiment, one, settings))
    except (MlflowException, OSError) as error:
        raise NewskillsError(f"MLflow at {uri}: {error}") from error


def metric_name(score: str) -> str:
    """`score` in letters that MLflow takes: `pass@1[avg-of-8]` → `pass_at_1_avg-of-8`."""
    return re.sub(r"[^A-Za-z0-9_.:/ -]+", "_", score.replace("@", "_at_")).replace("__", "_").strip("_")[:250]


def _experiment(client: Any, name: str) -> str:
    found = client.get_experiment_by_name(name)
    return str(found.experiment_id if found else client.create_experiment(name))


def _run(client: Any, experiment: str, one: Results, settings: Row) -> str:
    label = settings.get("run_name") or f"eval-{one.invocation}-{one.job.task}"
    known = client.search_runs([experiment], f"tags.job_id = '{one.job.id}'", max_results=1)
    if known and settings.get("skip_existing"):
        return f"MLflow run {label} is there already"
    tags = {
        "invocation_id": one.invocation,
        "job_id": one.job.id,
        "task_name": one.job.task,
        "benchmark": one.job.benchmark,
        "harness": one.harness,
        "executor": one.executor,
        **{str(key): str(value) for key, value in (settings.get("tags") or {}).items()},
        **({"mlflow.note.content": str(settings["description"])} if settings.get("description") else {}),
    }
    run = known[0] if known else client.create_run(experiment, tags=tags, run_name=str(label))
    identity = run.info.run_id
    if not known:
        facts = {"invocation_id": one.invocation, "executor": one.executor, "model": one.job.model}
        for key, value in {**facts, **(settings.get("extra_metadata") or {})}.items():
            client.log_param(identity, str(key), str(value)[:500])
    for name, value in chosen(one.scores, settings.get("log_metrics") or ()).items():
        client.log_metric(identity, metric_name(name), value)
    for name in UPLOADED if settings.get("log_artifacts", True) else ():
        if (file := one.artifacts / name).is_file():
            client.log_artifact(identity, str(file), f"{one.harness}.{one.job.benchmark}/artifacts")
    client.set_terminated(identity)
    return f"MLflow run {label}: {identity}"
