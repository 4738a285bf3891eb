# SPDX-License-Identifier: Apache-2.0
"""A training as a job: the command as it was typed, with paths as the job sees them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from glob import glob
from typing import Any

from newskills.base.errors import ConfigError, DataError
from newskills.config.command_line import Parsed
from newskills.config.fields import leaves
from newskills.launch.clusters.config import ClusterConfig
from newskills.pipelines.options import PlacementOptions
from newskills.pipelines.placement.cluster import ClusterPaths, paths_of
from newskills.pipelines.submission.groups import job_group, main_container
from newskills.pipelines.submission.plan import Plan
from newskills.pipelines.submission.prepared import PreparedSubmission, prepare_submission
from newskills.pipelines.training.command_script import CommandScript
from newskills.pipelines.training.methods.options import LocalOptions
from newskills.train.trainers import TRAINERS

READ = ("training_data", "input_files", "eval_data", "solutions", "config")
"""Options with files that the job reads."""
PATHS = (*READ, "output_dir", "data_dir")
MODELS = ("model", "teacher")
"""Options with a folder, or with a name on the hub."""
CODE = ("benchmark", "guard", "eval_benchmark", "backend")
"""Options with names, or with files of code."""
KEYS_WITH_PATHS = ("masked",)
OF_THE_JOB = ("num_gpus", "num_nodes")


def typed_words(parsed: Parsed[Any], paths: ClusterPaths | None = None) -> list[str]:
    """Return the options and keys that the user set, apart from those of the job; `paths`: as the job sees them."""
    own = [name for name in leaves(type(parsed.options)) if name in parsed.given]
    placement = {*leaves(PlacementOptions), *OF_THE_JOB}
    words = [word for name in own if name not in placement for word in _option_words(name, parsed.options, paths)]
    return [*words, *(f"++{key}={_key_in_job(key, value, paths)}" for key, value in parsed.overrides.items())]


def prepare_training(
    command: str, parsed: Parsed[Any], cluster: ClusterConfig, *, launches: bool
) -> PreparedSubmission:
    """Prepare a training as one job, which resumes in the ones after it; `launches`: whether the trl trainer may start
    several processes for it.

    Raises ConfigError, DataError (no such file), UnknownNameError (trainer).
    """
    options: LocalOptions = parsed.options
    trainer = TRAINERS.properties(options.backend)
    together = launches and trainer.several_processes
    if options.num_nodes > 1 and not launches:
        raise ConfigError(f"--num_nodes={options.num_nodes}: ns {command} trains in one process.")
    if options.num_nodes > 1 and not together:
        raise ConfigError(
            f"--num_nodes={options.num_nodes}: the trainer {options.backend} trains in one process.",
            hint="Use --backend=trl.",
        )
    paths = paths_of(cluster, main_container(options), options)
    target = paths.path_in_job(options.output_dir, "--output_dir")
    if not options.run_after:
        check_files(options, paths)
    words = typed_words(parsed, paths)
    gpus = options.num_gpus or 0
    if together and gpus > 1 and "trainer.trl.processes" not in parsed.overrides:
        words.append(f"++trainer.trl.processes={gpus}")
    several = options.num_nodes > 1
    script = CommandScript(
        command,
        words,
        installation_command=options.installation_command,
        span_group_nodes=several,
        nodes=options.num_nodes,
        port=0 if several else None,
    )
    shown = {"trains": options.model, "by": f"{command} ({options.backend})", "writes": target}
    return prepare_command(parsed, script, cluster, target, shown, gpus=gpus, nodes=options.num_nodes)


def prepare_command(
    parsed: Parsed[Any],
    script: CommandScript,
    cluster: ClusterConfig,
    target: str,
    shown: Mapping[str, object],
    **needs: int,
) -> PreparedSubmission:
    """Prepare a command that writes `target` and resumes in the jobs after it; `needs`: settings of its hardware."""
    options: PlacementOptions = parsed.options
    name = options.expname or script.command
    plan = Plan()
    group = job_group(script, options, **needs)
    plan.add(name, [group], outputs=(target,), makes=(target,), copies=options.dependent_jobs)
    return prepare_submission(name, plan, cluster, options, shown)


def check_files(options: Any, paths: ClusterPaths) -> None:
    """Raise DataError for a file to read that is not on the disks which this machine shares with the jobs."""
    if paths.cluster.ssh_tunnel is not None:
        return
    for name in READ:
        for item in _values_of(options, name):
            if item is None:
                continue
            path = paths.path_in_job(str(item), f"--{name}")
            if (
                not paths.in_code(path)
                and not glob(paths.host_path(path))
                and not os.path.exists(paths.host_path(path))
            ):
                raise DataError(
                    f"There is no {paths.host_path(path)}.",
                    hint="If another experiment writes it: --run_after=NAME.",
                )


def _option_words(name: str, options: Any, paths: ClusterPaths | None) -> Iterator[str]:
    for item in _values_of(options, name):
        text = str(item)
        if isinstance(item, bool):
            text = text.lower()
        if paths is not None:
            text = _path_in_job(name, text, paths)
        yield f"--{name}={text}"


def _values_of(options: Any, name: str) -> list[Any]:
    """Return the values of an option as a list, also those of one that takes a single value."""
    value = getattr(options, name, None)
    if isinstance(value, list):
        return value
    return [value]


def _path_in_job(name: str, text: str, paths: ClusterPaths) -> str:
    """Return a value as the job sees it. Raises ConfigError for a path that it does not see."""
    if name in PATHS or (name in MODELS and os.path.exists(os.path.expanduser(text))):
        return paths.path_in_job(text, f"--{name}")
    if name in CODE:
        return ",".join(paths.code_in_job(item) if ".py" in item else item for item in text.split(","))
    return text


def _key_in_job(key: str, value: Any, paths: ClusterPaths | None) -> str:
    if paths and key in KEYS_WITH_PATHS:
        return paths.path_in_job(str(value), f"++{key}")
    return str(value)
