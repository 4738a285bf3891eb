# SPDX-License-Identifier: Apache-2.0
"""`ns critpt export|submit`: send code for CritPt to its grading service, or write the batch."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills.pipelines.evaluation.critpt import CritptOptions, export_or_submit_batch
from newskills.run.harnesses.critpt import KEY_VARIABLE

COMMAND = Command(
    name="critpt",
    summary="Send the code that a model wrote for CritPt to the CritPt grading service, and read its scores. "
    f"Only this service can grade it. It needs a key ({KEY_VARIABLE}), and accepts ten batches of all "
    "problems a day.",
    options=CritptOptions,
    result=export_or_submit_batch,
    examples=(
        "ns critpt export results/eval-results/critpt/output.jsonl --output_file=batch.json",
        "ns critpt submit results/eval-results/critpt/output.jsonl --output_file=answer.json --model_name=mine",
    ),
)
