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
    run_settings = {key: value for key, value in run_settings.items() if value}
    if mode == MODES[1]:
        say(_log_run(results, settings, run_settings, several=True))
        return
    for result in results:
        say(_log_run([result], settings, run_settings, several=False))


def _log_run(results: Sequence[Results], settings: Row, run_settings: Row, *, several: bool) -> str:
    import wandb

    first = results[0]
    name, run_id = f"eval-{first.invocation}", first.invocation
    config: Row = {"invocation_id": first.invocation, "executor": first.executor}
    if several:
        config |= {"benchmarks": [result.job.benchmark for result in results]}
        config |= {"harnesses": sorted({result.harness for result in results})}
    else:
        name, run_id = f"{name}-{first.job.task}", first.job.id.replace(".", "-")
        config |= {"job_id": first.job.id, "harness": first.harness, "benchmark": first.job.benchmark}
    options = {
        **run_settings,
        "name": settings.get("name") or name,
        "group": settings.get("group") or first.invocation,
        "job_type": settings.get("job_type") or "evaluation",
        "tags": settings.get("tags"),
        "notes": settings.get("description"),
        "id": settings.get("run_id") or run_id,
        "resume": "allow",
        "config": {**config, **(settings.get("extra_metadata") or {})},
    }
    try:
        run = wandb.init(**{key: value for key, value in options.items() if value is not None})
        for result in results:
            scores = chosen_scores(result.scores, settings.get("log_metrics") or ())
            run.summary.update({f"{_score_prefix(result, results)}{key}": value for key, value in scores.items()})
        if settings.get("log_artifacts", True):
            _upload_artifacts(run, results, several=several)
        run.finish()
    except (wandb.Error, OSError) as error:
        raise NewskillsError(f"W&B: {error}") from error
    return f"W&B run {name}: {getattr(run, 'url', None) or 'offline, in ' + str(run.dir)}"


def _score_prefix(result: Results, results: Sequence[Results]) -> str:
    """Return a prefix that distinguishes the scores of tasks with the same benchmark."""
    same = [other for other in results if other.job.benchmark == result.job.benchmark]
    if len(same) > 1:
        return f"{Path(result.job.folder).name}/"
    return ""


def _upload_artifacts(run: Any, results: Sequence[Results], *, several: bool) -> None:
    import wandb

    first = results[0]
    label, facts = first.invocation, {"invocation_id": first.invocation}
    if not several:
        label += f"_{first.job.benchmark}"
        facts["task"] = first.job.task
    label = "".join(ch if ch.isalnum() or ch in "._-" else "_" for ch in label)
    artifact = wandb.Artifact(label, type="evaluation_result", description="Evaluation results", metadata=facts)
    for result in results:
        for name in UPLOADED:
            if (file := result.artifacts / name).is_file():
                artifact.add_file(str(file), name=f"{Path(result.job.folder).name}/artifacts/{name}")
    run.log_artifact(artifact)
