# SPDX-License-Identifier: Apache-2.0
"""`ns grade`: verdicts for any JSONL of answers, from files or standard input. The input is never changed."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills.pipelines.grading.options import GradeOptions

COMMAND = Command(
    name="grade",
    summary="Grade any JSONL file of answers: adds predicted_answer, symbolic_correct (true, false or null = "
    "undecided), outcome, grader and why to each row. ++key=value sets options of the grader, "
    "++sandbox.key=value options of the sandbox for graders that run code, ++end_reasoning_string=TEXT what ends the "
    "reasoning of these models.",
    options=GradeOptions,
    run="newskills.pipelines.grading.work:run",
    result="newskills.pipelines.grading.work:grade_answers",
    any_keys=True,
    examples=(
        "ns grade --grader=math --input_files answers.jsonl --output_file graded.jsonl",
        "ns grade --grader=evalplus --input_files output.jsonl --output_file graded.jsonl ++timeout=10",
        "cat answers.jsonl | ns grade --grader=multichoice ++relaxed=true",
    ),
)
