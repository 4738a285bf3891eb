# SPDX-License-Identifier: Apache-2.0
"""What `ns megatron_lm train` does: a chain of jobs, with a process for each GPU of all nodes."""

from __future__ import annotations

import os

from newskills.base.plan import Word
from newskills.config.command_line import Parsed
from newskills.launch.clusters.config import ClusterConfig
from newskills.launch.declarative import Command
from newskills.pipelines.submission.groups import MAIN
from newskills.pipelines.submission.job_command import job_functions, planned_options
from newskills.pipelines.submission.plan import Plan
from newskills.pipelines.submission.prepared import PreparedSubmission, prepare_submission
from newskills.pipelines.training.foreign.jobs import InsideScript, TrainingPlacement, torchrun_words
from newskills.pipelines.training.foreign.options import MegatronLmOptions
from newskills.train.pipelines import megatron_lm
from newskills.train.pipelines.inside import PYTHON

CONTAINER = "megatron"
NAME = "megatron-lm-train"
VARIABLE = "MEGATRON_PATH"


def prepare(parsed: Parsed[MegatronLmOptions], cluster: ClusterConfig) -> PreparedSubmission:
    """Prepare the training. Raises ConfigError."""
    options = planned_options(parsed)
    megatron_lm.check_entrypoint(options.entrypoint)
    placement = TrainingPlacement.for_cluster(cluster, options, CONTAINER, NAME)
    trained = placement.trainer_run(placement.paths.path_in_job(options.megatron_model, "--megatron_model"))
    data = placement.paths.path_in_job(options.per_split_data_path, "--per_split_data_path")
    training = megatron_lm.MegatronLm(run=trained, tokenizer=placement.model(options.tokenizer_model), data=data)
    root = options.megatron_path or os.environ.get(VARIABLE) or megatron_lm.ROOT
    extra = megatron_lm.extra_arguments(options.arguments, parsed.overrides)
    words: list[Word] = [PYTHON, *torchrun_words(MAIN, trained.nodes, trained.gpus)]
    script = InsideScript(
        [*words, options.entrypoint, *training.arguments(), *extra],
        options=[f"--folder={trained.checkpoints}", f"--project={root}", f"--stopped={megatron_lm.STOPPED}"],
        nodes=trained.nodes,
        before=options.init_cmd,
        env={"CUDA_DEVICE_MAX_CONNECTIONS": "1"},
        port=0,
        installation_command=options.installation_command,
    )
    command = Command(script, container=placement.container(CONTAINER), name=MAIN)
    group = placement.group(command, placement.logs(trained.output_dir), gpus=trained.gpus, nodes=trained.nodes)
    plan = Plan()
    outputs = [trained.output_dir, trained.model, data]
    plan.add(NAME, [group], outputs=tuple(outputs), makes=(trained.output_dir,), copies=options.dependent_jobs)
    shown = {"writes": trained.output_dir, "program": f"{root}/{options.entrypoint}", "data": data}
    return prepare_submission(placement.name, plan, cluster, options, shown)


run, train_with_megatron_lm = job_functions(prepare)
