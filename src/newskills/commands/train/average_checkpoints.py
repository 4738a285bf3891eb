# SPDX-License-Identifier: Apache-2.0
"""`ns average_checkpoints`: the mean of some checkpoints' weights, here or as a job."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills.pipelines.training.options import AverageOptions

COMMAND = Command(
    name="average_checkpoints",
    summary="Average the weights of checkpoints of one run, tensor by tensor, here or as a cluster job. The "
    "checkpoints are kept unless you ask to remove them afterwards.",
    options=AverageOptions,
    run="newskills.pipelines.training.average:run",
    result="newskills.pipelines.training.average:average_weights",
    prepare="newskills.pipelines.training.average:prepare",
    examples=(
        "ns average_checkpoints --checkpoints hf/step-100 hf/step-200 --output_model=hf/mean",
        "ns average_checkpoints --checkpoints hf --steps=100,200 --output_model=hf/mean "
        "--remove_checkpoints_after_average",
    ),
)
