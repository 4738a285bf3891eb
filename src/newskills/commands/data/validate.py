# SPDX-License-Identifier: Apache-2.0
"""`ns validate NAME…`: whether benchmarks measure what they should, found without a model."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills.pipelines.data.validate_options import ValidateKeys, ValidateOptions

COMMAND = Command(
    name="validate",
    summary="Check benchmarks without a model. Rows: the expected number, none missing, none duplicated, a "
    "prompt for each. Replies: a row's own answer is graded correct, in several spellings; an empty "
    "reply, the prompt itself, one reply for all rows, the answers of other rows, and replies that name "
    "many answers are graded correct no more often than by chance. The exit code is 1 if a check fails.",
    options=ValidateOptions,
    config=ValidateKeys,
    run="newskills.pipelines.data.validate:run",
    result="newskills.pipelines.data.validate:validate_benchmarks",
    examples=(
        "ns validate gsm8k mmlu",
        "ns validate ./sums.py",
        "ns validate ./tasks.py ++environment.engine=sandbox",
        "ns validate all --category=science --mirror /data/mirror --json report.json",
    ),
)
