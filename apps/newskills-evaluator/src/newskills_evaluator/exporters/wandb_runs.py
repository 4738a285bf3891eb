# SPDX-License-Identifier: Apache-2.0
"""Runs of Weights & Biases: one for each task, or one for the invocation (`log_mode: multi_task`).

`export.wandb`: entity, project, log_mode, name, group, job_type, tags, description, extra_metadata, log_metrics,
log_artifacts. Ids of runs are made of the invocation, so that exporting again goes on with the same run. The key is
read by wandb from WANDB_API_KEY or its own login; WANDB_MODE=offline writes below WANDB_DIR.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from newskills.base.callbacks import PrintLine
from newskills.base.errors import AuthError, ConfigError, NewskillsError
from newskills.base.records import Row
from newskills_evaluator.export_results import UPLOADED, Results, chosen_scores
from newskills_evaluator.wandb_login import found_login

MODES = ("per_task", "multi_task")


def export(results: Sequence[Results], settings: Row, environ: Mapping[str, str], say: PrintLine) -> None:
    """Log the results to Weights & Biases, as one run for each or for all. Raises ConfigError (no wandb, no project),
    AuthError, NewskillsError for errors of the service."""
    if find_spec("wandb") is None:
        raise ConfigError("W&B needs the package wandb.", hint="Run: pip install 'newskills[wandb]'")
    mode = settings.get("log_mode") or MODES[0]
    if mode not in MODES:
        raise ConfigError(f"export.wandb.log_mode is {' or '.join(MODES)}, not '{mode}'.")
    if environ.get("WANDB_MODE") not in ("offline", "disabled") and not found_login(environ):
        raise AuthError("There is no key for Weights & Biases.", hint="Run wandb login, or set WANDB_API_KEY.")
    run_settings = {key: settings.get(key) or environ.get(f"WANDB_{key.upper()}") for key in ("project", "entity")}
    if not run_settings["project"]:
        raise ConfigError(
            "There is no export.wandb.project, so the W&B project is not known.",
            hint='Add [wandb] project = "NAME" to env.toml, or export: {wandb: {project: NAME}}.',
        )
    groups = [results] if mode == "multi_task" else [[result] for result in results]
    for group in groups:
        say(
            _run(
                group,
                settings,
                {key: value for key, value in run_settings.items() if value},
                several=mode == MODES[1],
            )
        )


def _run(results: Sequence[Results], settings: Row, run_settings: Row, *, several: bool) -> str:
    import wandb

    first = results[0]
    name = f"eval-{first.invocation}" + ("" if several else f"-{first.job.task}")
    config: Row = {"invocation_id": first.invocation, "executor": first.executor}
    if several:
        config |= {"benchmarks": [result.job.benchmark for result in results]}
        config |= {"harnesses": sorted({result.harness for result in results})}
    else:
        config |= {"job_id": first.job.id, "harness": first.harness, "benchmark": first.job.benchmark}
    options = {
        **run_settings,
        "name": settings.get("name") or name,
        "group": settings.get("group") or first.invocation,
        "job_type": settings.get("job_type") or "evaluation",
        "tags": settings.get("tags"),
        "notes": settings.get("description"),
        "id": settings.get("run_id") or (first.invocation if several else first.job.id.replace(".", "-")),
        "resume": "allow",
        "config": {**config, **(settings.get("extra_metadata") or {})},
    }
    try:
        run = wandb.init(**{key: value for key, value in options.items() if value is not None})
        for result in results:
            scores = chosen_scores(result.scores, settings.get("log_metrics") or ())
            run.summary.update({f"{_prefix(result, results)}{key}": value for key, value in scores.items()})
        if settings.get("log_artifacts", True):
            _upload(run, results, several=several)
        run.finish()
    except (wandb.Error, OSError) as error:
        raise NewskillsError(f"W&B: {error}") from error
    return f"W&B run {name}: {getattr(run, 'url', None) or 'offline, in ' + str(run.dir)}"


def _prefix(result: Results, results: Sequence[Results]) -> str:
    """Return what tells scores of tasks apart that have one benchmark."""
    same = [other for other in results if other.job.benchmark == result.job.benchmark]
    if len(same) > 1:
        return f"{Path(result.job.folder).name}/"
    return ""


def _upload(run: Any, results: Sequence[Results], *, several: bool) -> None:
    import wandb

    first = results[0]
    label = first.invocation if several else f"{first.invocation}_{first.job.benchmark}"
    label = "".join(ch if ch.isalnum() or ch in "._-" else "_" for ch in label)
    facts = {"invocation_id": first.invocation, **({} if several else {"task": first.job.task})}
    artifact = wandb.Artifact(label, type="evaluation_result", description="Evaluation results", metadata=facts)
    for result in results:
        for name in UPLOADED:
            if (file := result.artifacts / name).is_file():
                artifact.add_file(str(file), name=f"{Path(result.job.folder).name}/artifacts/{name}")
    run.log_artifact(artifact)
