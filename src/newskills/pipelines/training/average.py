# SPDX-License-Identifier: Apache-2.0
"""What `ns average_checkpoints` does: the mean of some checkpoints' weights, here or as a job."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from newskills.base.errors import ConfigError, DataError
from newskills.config.command_line import Parsed
from newskills.launch.clusters.config import ClusterConfig
from newskills.launch.experiments import Experiment
from newskills.pipelines.dry_run import Step, show_dry_run
from newskills.pipelines.extras import require_train
from newskills.pipelines.placement.cluster import paths_of, target_cluster
from newskills.pipelines.submission.groups import job_group, main_container
from newskills.pipelines.submission.plan import Plan
from newskills.pipelines.submission.prepared import PreparedSubmission, prepare_submission
from newskills.pipelines.submission.submit import run_prepared, submit_and_wait
from newskills.pipelines.training.average_script import AverageScript
from newskills.pipelines.training.options import AverageOptions
from newskills.train.pipelines.common import steps_of

STEP = "step_"
NAME = "average"


def folders_of(options: AverageOptions) -> tuple[list[str], list[str]]:
    """Return the folders to average, and those to remove afterwards. Raises ConfigError."""
    folders = options.checkpoints
    if options.steps is not None:
        if len(folders) != 1:
            raise ConfigError("With --steps, --checkpoints must be the one folder that contains the steps.")
        folders = [f"{folders[0].rstrip('/')}/{STEP}{step}" for step in steps_of(options.steps, "--steps")]
    if len(folders) < 2:
        raise ConfigError("An average needs at least two checkpoints.")
    removed = list(options.remove)
    if options.remove_checkpoints_after_average:
        removed = [*folders, *removed]
    if options.output_model in removed:
        raise ConfigError(f"--remove {options.output_model}: the average is written there.")
    return folders, list(dict.fromkeys(removed))


def run(parsed: Parsed[AverageOptions]) -> int:
    cluster = target_cluster(parsed.options, parsed.given)
    if cluster is not None:
        return run_prepared(prepare(parsed, cluster), show=("main",))
    _average_here(parsed.options)
    return 0


def average_weights(parsed: Parsed[AverageOptions]) -> Path | Experiment | None:
    """Average for Python, and return the folder of the average; on a cluster the experiment. Raises NewskillsError."""
    cluster = target_cluster(parsed.options, parsed.given)
    if cluster is not None:
        return submit_and_wait(prepare(parsed, cluster))
    return _average_here(parsed.options)


def _average_here(options: AverageOptions) -> Path | None:
    """Write the average, and return its folder; None for a dry run. Raises ConfigError, DataError."""
    from newskills.train.convert.merge import average_checkpoints

    folders, removed = folders_of(options)
    target = Path(options.output_model)
    if options.dry_run:
        steps: list[Step] = [("reads", folder, "weights") for folder in folders]
        steps.append(("writes", target, f"average of {len(folders)}"))
        show_dry_run([*steps, *(("removes", folder, "after the average is written") for folder in removed)])
        return None
    require_train("torch", "safetensors")
    average_checkpoints([Path(folder) for folder in folders], target)
    for folder in removed:
        _remove_folder(Path(folder))
    outcome = f"{target}: average of {len(folders)} checkpoints"
    if removed:
        outcome += f"; removed {', '.join(removed)}"
    sys.stdout.write(f"{outcome}\n")
    return target


def _remove_folder(folder: Path) -> None:
    if not folder.is_dir():
        return
    try:
        shutil.rmtree(folder)
    except OSError as error:
        raise DataError(f"{folder} cannot be removed: {error.strerror}. The average is written.") from error


def prepare(parsed: Parsed[AverageOptions], cluster: ClusterConfig) -> PreparedSubmission:
    """Prepare the average as a job. Raises ConfigError."""
    options = parsed.options
    paths = paths_of(cluster, main_container(options), options)
    folders, removed = folders_of(options)
    folders_there = [paths.path_in_job(folder, "--checkpoints") for folder in folders]
    target = paths.path_in_job(options.output_model, "--output_model")
    script = AverageScript(
        folders_there,
        target,
        [paths.path_in_job(folder, "--remove") for folder in removed],
        installation_command=options.installation_command,
    )
    plan = Plan()
    name = options.expname or NAME
    plan.add(NAME, [job_group(script, options)], outputs=(*folders_there, target), makes=(target,))
    return prepare_submission(
        name, plan, cluster, options, {"checkpoints": " ".join(folders_there), "writes": target}
    )
