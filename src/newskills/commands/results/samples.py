# SPDX-License-Identifier: Apache-2.0
"""`ns samples DIR`: read samples of a run in the terminal."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills.pipelines.results.samples import SamplesOptions, run, select_samples

COMMAND = Command(
    name="samples",
    summary="Read samples of a run in the terminal: the question, the reply, the expected and the extracted answer, "
    "and why the grader decided so. Shown in a pager on a terminal; control characters in a text are shown as escapes.",
    options=SamplesOptions,
    run=run,
    result=select_samples,
    examples=(
        "ns samples results --outcome wrong --cause truncation -n 5",
        "ns samples results --benchmarks gsm8k --id test-17 --full",
        "ns samples results --outcome no_answer --json",
    ),
)
