# SPDX-License-Identifier: Apache-2.0
"""The job behind a training of LoRA pairs, which merges them into their model."""

from __future__ import annotations

from newskills.launch.declarative import Command, CommandGroup, JobDict
from newskills.pipelines.submission.groups import MAIN, main_container
from newskills.pipelines.submission.plan import Plan
from newskills.pipelines.training.foreign.jobs import TrainingPlacement
from newskills.pipelines.training.merge_script import MergeScript
from newskills.train.pipelines.common import TrainerRun

LORA = "lora"
"""Folder below the output folder for what the converter makes of LoRA pairs."""


def add_merge(
    plan: Plan,
    base: str,
    adapter: str,
    target: str,
    needs: JobDict,
    trained: TrainerRun,
    placement: TrainingPlacement,
) -> None:
    """Add a job that merges `adapter` into `base` once `needs` has ended."""
    merging = Command(MergeScript(base, adapter, target), container=main_container(placement.options), name=MAIN)
    hardware = placement.group(merging, None).hardware
    group = CommandGroup([merging], hardware=hardware, name=MAIN, log_dir=placement.logs(trained.output_dir))
    plan.add("merge", [group], [needs], outputs=(trained.output_dir, target), makes=(target,))
