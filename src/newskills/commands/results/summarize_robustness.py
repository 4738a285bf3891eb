# SPDX-License-Identifier: Apache-2.0
"""`ns summarize_robustness DIR`: how much the prompts of a robustness evaluation change the scores."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills.pipelines.results.summarize_robustness_options import SummarizeRobustnessOptions

COMMAND = Command(
    name="summarize_robustness",
    summary="Print how much the prompts of ns robust_eval change the scores, over all prompts and for each "
    "prompt: min, max, mean, standard deviation, sensitivity, consistency, missing answers. "
    "Generates nothing.",
    options=SummarizeRobustnessOptions,
    run="newskills.pipelines.results.summarize_robustness:run",
    result="newskills.pipelines.results.summarize_robustness:summarize_robust_eval",
    examples=("ns summarize_robustness robust", "ns summarize_robustness /lustre/me/robust --cluster=slurm"),
)
