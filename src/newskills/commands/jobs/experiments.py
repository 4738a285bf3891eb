# SPDX-License-Identifier: Apache-2.0
"""`ns experiments`: what was submitted from this machine. Asks no cluster."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills.pipelines.jobs.experiments import ExperimentsOptions, list_experiments, run

COMMAND = Command(
    name="experiments",
    summary="List the experiments submitted from this machine, latest first. This reads local records only; "
    "ns status asks the cluster.",
    options=ExperimentsOptions,
    run=run,
    result=list_experiments,
    examples=("ns experiments", "ns experiments my-eval"),
)
