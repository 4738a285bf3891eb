# SPDX-License-Identifier: Apache-2.0
"""Programs that read and print, run on every test case of the record: what each printed is told beside the verdict."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta, Struct

from newskills.base.protocols import Sandbox
from newskills.base.records import Row
from newskills.graders.code.base import CodeFinding, CodeGrader, not_built
from newskills.graders.code.extract import ExtractedCode
from newskills.graders.code.programs import ProgramRun, input_batches, make_task, run_task


class PrintedCase(Struct, frozen=True):
    input: str
    output: str


class CodeExecConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`++eval_config.*` of `eval_type=code_exec`."""

    language: Annotated[
        Literal["python3", "python", "pypy3", "cpp", "js", "java", "sh"],
        Meta(description="language of the programs"),
    ] = "python3"
    timeout: Annotated[
        float, Meta(gt=0, description="CPU seconds for one test; on the clock, six times as much")
    ] = 10.0
    max_output_characters: Annotated[
        int, Meta(ge=1, description="how much of each output is kept in the record")
    ] = 1000


class CodeExecGrader(CodeGrader):
    """Row: `test_cases`, a list of {input, output}; the program is in `code`, or in a block of the answer.

    Fields written: `code_execution` with one item per test in `process_status` (completed, error, timeout), `stdouts`,
    `stderrs` and `correct_tests`, and their share `average_test_score`. A test is passed by the same output, blanks
    around it aside; the answer is right if it passes all.
    """

    name: ClassVar[str] = "code_exec"
    version: ClassVar[str] = "2"
    Config = CodeExecConfig

    def __init__(self, config: CodeExecConfig = CodeExecConfig()) -> None:  # noqa: B008 - frozen
        self.config = config

    def language(self, record: Row) -> str:
        if self.config.language == "python3":
            return "python"
        return self.config.language

    def extract(self, record: Row) -> ExtractedCode:
        code = record.get("code")
        if isinstance(code, str):
            return ExtractedCode(code=code, how="language")
        return super().extract(record)

    async def judge(self, code: str, record: Row, sandbox: Sandbox) -> CodeFinding:
        cases = msgspec.convert(record["test_cases"], list[PrintedCase])
        if not cases:
            raise ValueError("at least one test case is expected")
        runs: list[ProgramRun] = []
        for part in input_batches([case.input for case in cases]):
            task = make_task(self.language(record), code, part, self.config.timeout)
            ran = await run_task(msgspec.structs.replace(task, stop=False), sandbox)
            if (finding := not_built(ran)) is not None:
                return finding
            runs += ran.runs
            if len(ran.runs) < len(part):
                return CodeFinding(passed=False, why=f"test {len(runs)} of {len(cases)}: {runs[-1]}")
        right = [run.out.strip() == case.output.strip() for run, case in zip(runs, cases, strict=True)]
        fields = {"code_execution": self._report_fields(runs, right)}
        first = next((number for number, passed in enumerate(right) if not passed), None)
        if first is None:
            return CodeFinding(passed=True, fields=fields)
        difference = "another output" if runs[first].well else str(runs[first])
        syntax = runs[first].err.rstrip().rpartition("\n")[2].startswith(("SyntaxError", "IndentationError"))
        why = f"test {first + 1} of {len(cases)}: {difference}"
        return CodeFinding(passed=False, why=why, unread=syntax, fields=fields)

    def _report_fields(self, runs: list[ProgramRun], right: list[bool]) -> dict[str, Any]:
        kept = self.config.max_output_characters
        return {
            "process_status": [_run_status(run) for run in runs],
            "correct_tests": right,
            "average_test_score": sum(right) / len(right),
            "stdouts": [run.out[:kept] for run in runs],
            "stderrs": [run.err[:kept] for run in runs],
        }


def _run_status(run: ProgramRun) -> str:
    if run.well:
        return "completed"
    if run.kind == "timeout":
        return "timeout"
    return "error"
