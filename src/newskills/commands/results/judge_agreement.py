# SPDX-License-Identifier: Apache-2.0
"""`ns judge_agreement DIR --labels FILE`: judges beside labels of people."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills.pipelines.results.judge_agreement import JudgeAgreementOptions, measure_judge_agreement, run

COMMAND = Command(
    name="judge_agreement",
    summary="Compare judges with labels of people: accuracy, Cohen's kappa, bias for long replies and for "
    "a model's own answers, and scores with the judge's errors taken out. Nothing is generated.",
    options=JudgeAgreementOptions,
    run=run,
    result=measure_judge_agreement,
    examples=(
        "ns judge_agreement results --labels labels.jsonl",
        "ns judge_agreement results/a results/b --labels labels.jsonl --json",
    ),
)
