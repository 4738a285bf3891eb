# SPDX-License-Identifier: Apache-2.0
"""Scientific programs judged step by step (SciCode, arXiv:2407.13168)."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Annotated, ClassVar

from msgspec import Meta, Struct

from newskills.base.protocols import Sandbox
from newskills.base.records import Row, Score
from newskills.graders.code.base import CodeFinding, CodeGrader
from newskills.graders.code.extract import ExtractedCode
from newskills.graders.code.given import GIVEN
from newskills.graders.code.units import UnitTask, imported_modules, run_unit

TARGETS = "test_data.h5"
_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t][^\n(]*\bimport[ \t]*\([^)]{0,2000}\)|(?:import|from[ \t][^\n]*\bimport)[ \t][^\n]*)",
    re.MULTILINE,
)


def without_imports(code: str) -> str:
    """Remove the imports, as the authors' program does: a step has those that the problem names, and no other."""
    return _IMPORT.sub("", code)


class SciCodeConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`++eval_config.*` of `eval_type=scicode`."""

    timeout: Annotated[float, Meta(gt=0, description="CPU seconds of a step; on the clock, six times as much")] = (
        30.0
    )
    num_parallel_requests: Annotated[int, Meta(description="kept for older scripts; the sandbox decides")] = 20


class SciCodeGrader(CodeGrader):
    """Row: `sub_steps` with `test_cases`, `required_dependencies`; `steps`, the code of each, from the solver.

    A step is run with all steps before it, of which some are given, and without imports of its own. The targets are in
    `test_data.h5` below the sandbox's data folder; without it, or without h5py, nothing is judged. Field written:
    `eval_status`, one {step, passed, why} for each step that is not given.
    """

    name: ClassVar[str] = "scicode"
    version: ClassVar[str] = "4"
    Config = SciCodeConfig

    def __init__(self, config: SciCodeConfig = SciCodeConfig()) -> None:  # noqa: B008 - frozen
        self.config = config

    def language(self, record: Row) -> str:
        return "python"

    def extract(self, record: Row) -> ExtractedCode:
        steps = record.get("steps")
        written = steps.items() if isinstance(steps, dict) else ()
        code = "\n\n".join(str(code) for number, code in written if number not in GIVEN)
        how = "language" if code.strip() else "empty"
        return ExtractedCode(code=code, how=how)

    def no_answer(self, extracted: ExtractedCode, record: Row) -> Score:
        score = super().no_answer(extracted, record)
        numbers = [str(step["step_number"]) for step in record.get("sub_steps") or []]
        score.fields["eval_status"] = [
            {"step": number, "passed": False, "why": score.why} for number in numbers if number not in GIVEN
        ]
        return score

    async def judge(self, code: str, record: Row, sandbox: Sandbox) -> CodeFinding:
        written: list[str] = [str(record["required_dependencies"])]
        status: list[Row] = []
        suspicious: dict[str, None] = {}
        for step in record["sub_steps"]:
            number = str(step["step_number"])
            if number in GIVEN:
                written.append(GIVEN[number])
                continue
            written.append(without_imports(str(record["steps"].get(number) or "")))
            finding = await self._judge_step(step, "\n\n".join(written), written[0], sandbox)
            if finding.passed is None:
                return finding
            status.append({"step": number, "passed": finding.passed, "why": finding.why})
            suspicious |= dict.fromkeys(filter(None, [finding.suspicious]))
        passed = sum(each["passed"] for each in status)
        return CodeFinding(
            passed=passed == len(status),
            why=f"{passed} of {len(status)} steps",
            suspicious="; ".join(suspicious),
            fields={"eval_status": status},
        )

    async def _judge_step(self, step: Row, code: str, dependencies: str, sandbox: Sandbox) -> CodeFinding:
        cases = [str(case) for case in step["test_cases"]]
        target = f"process_hdf5_to_tuple({str(step['step_number'])!r}, {len(cases)})"
        tests = [f"target = _targets[{number}]\n{case}\n" for number, case in enumerate(cases)]
        task = UnitTask(
            code=code,
            prelude=f"{dependencies}\n{_shim_source()}\ninstall_functions()\n_targets = {target}\n",
            tests="\n".join(tests),
            needs=("h5py", *imported_modules(dependencies)),
            data=(TARGETS,),
            script=True,
        )
        return await run_unit(task, self.config.timeout, sandbox)


@cache
def _shim_source() -> str:
    return files("newskills.graders.code.inside").joinpath("scicode.py").read_text("utf-8")
