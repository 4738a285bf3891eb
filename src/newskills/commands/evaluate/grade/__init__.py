# SPDX-License-Identifier: Apache-2.0
"""`ns grade`: verdicts for any JSONL of answers, from files or standard input. The input is never changed."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Struct

from newskills.commands.command import Command
from newskills.pipelines.options import AcceptLost, DryRun, doc


class Options(Struct, frozen=True, kw_only=True):
    grader: Annotated[str, doc("name, module::Class or file.py::Class")] = "math"
    input_files: Annotated[list[str], doc("files of rows (as in ns generate); none or - = standard input")] = []
    output_file: Annotated[str | None, doc("JSONL file to write (default: standard output)")] = None
    executor: Annotated[
        Literal["none", "ray"],
        doc("ray: many files on the nodes of RAY_ADDRESS, or of this machine, by Ray Data; rows stay the same"),
    ] = "none"
    accept_lost: AcceptLost = 1.0
    dry_run: DryRun = False


COMMAND = Command(
    name="grade",
    summary="Grade any JSONL file of answers: adds predicted_answer, symbolic_correct (true, false or null = "
    "undecided), outcome, grader and why to each row. ++key=value sets options of the grader, "
    "++sandbox.key=value options of the sandbox for graders that run code, ++end_reasoning_string=TEXT what ends the "
    "reasoning of these models.",
    options=Options,
    run="newskills.commands.evaluate.grade.work:run",
    any_keys=True,
    examples=(
        "ns grade --grader=math --input_files answers.jsonl --output_file graded.jsonl",
        "ns grade --grader=evalplus --input_files output.jsonl --output_file graded.jsonl ++timeout=10",
        "cat answers.jsonl | ns grade --grader=multichoice ++relaxed=true",
    ),
)
