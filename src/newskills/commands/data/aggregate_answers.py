# SPDX-License-Identifier: Apache-2.0
"""`ns aggregate_answers DIR`: the majority answer of several runs, as the expected answer or as one run."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills.pipelines.data.aggregate_answers import AggregateAnswersOptions, aggregate_answers

COMMAND = Command(
    name="aggregate_answers",
    summary="Find the common answer of several runs to each problem, by votes or by the scores of a reward model, and "
    "write it as the expected answer of all records (fill), or write one record per problem that gives it (extract). "
    "Answers of the same value vote together. A problem without any answer gets null.",
    options=AggregateAnswersOptions,
    result=aggregate_answers,
    examples=(
        "ns aggregate_answers solutions --output_dir=with-majority",
        "ns aggregate_answers solutions --mode=extract --use_highest_rm_score",
    ),
)
