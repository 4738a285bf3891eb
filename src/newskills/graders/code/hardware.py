# SPDX-License-Identifier: Apache-2.0
"""Hardware designs and kernels: judged where the simulator or the device is, unscored where it is not."""

from __future__ import annotations

import re
from typing import Annotated, ClassVar

from msgspec import Meta, Struct

from newskills.base.protocols import Sandbox
from newskills.base.records import Row
from newskills.graders.code.base import CodeFinding, CodeGrader, extract_marked, not_built, unjudged
from newskills.graders.code.extract import ExtractedCode, extract_code
from newskills.graders.code.programs import ProgramTask, run_task

_MISMATCHES = re.compile(r"^Mismatches: (\d{1,9}) in (\d{1,9}) samples", re.MULTILINE)
_TOO_OLD = re.compile(r"^(?:ref|test)\.sv:\d+: (?:sorry|error)", re.MULTILINE)
_NO_DEVICE = ("no CUDA-capable device", "CUDA driver version is insufficient", "cudaErrorNoDevice")
_BUILD = ("iverilog", "-Wno-timescale", "-g2012", "-s", "tb", "-o", "program", "test.sv", "ref.sv", "top.sv")


class HardwareGraderConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`++eval_config.*` of `eval_type=verilog_eval`, `compute-eval` and `kernelbench`."""

    timeout: Annotated[
        float, Meta(gt=0, description="CPU seconds of a simulation; on the clock, six times as much")
    ] = 30.0


class VerilogGrader(CodeGrader):
    """Row: `test` (a test bench `tb` that compares TopModule with RefModule) and `reference`.

    The bench prints its count of mismatches once, at the very end; an answer that prints one, too, fails.
    """

    name: ClassVar[str] = "verilog_eval"
    Config = HardwareGraderConfig

    def __init__(self, config: HardwareGraderConfig = HardwareGraderConfig()) -> None:  # noqa: B008 - frozen
        self.config = config

    def language(self, record: Row) -> str:
        return "verilog"

    def extract(self, record: Row) -> ExtractedCode:
        text = str(record.get("generation") or "")
        extractions = [extract_code(text, mark) for mark in ("systemverilog", "verilog", "sv")]
        return next((each for each in extractions if each.how == "language"), extractions[0])

    async def judge(self, code: str, record: Row, sandbox: Sandbox) -> CodeFinding:
        files = {"test.sv": str(record["test"]), "ref.sv": str(record["reference"]), "top.sv": code}
        program_task = ProgramTask(
            files=files, build=(_BUILD,), run=("vvp", "-n", "program"), inputs=[""], cpu=self.config.timeout
        )
        ran = await run_task(program_task, sandbox)
        if ran.build is not None and _TOO_OLD.search(ran.build.err):
            return unjudged("this Icarus Verilog is too old for the task's own modules: version 12 knows them")
        if (finding := not_built(ran)) is not None:
            return finding
        run = ran.runs[0]
        mismatches = _MISMATCHES.findall(run.out)
        if not run.well or len(mismatches) != 1:
            return CodeFinding(
                passed=False, why=str(run) if not run.well else f"{len(mismatches)} counts of mismatches"
            )
        wrong, samples = map(int, mismatches[0])
        # Some benches announce a TIMEOUT with their own reference, too: it decides nothing.
        return CodeFinding(passed=not wrong and samples > 0, why=f"{wrong} mismatches in {samples} samples")


class ComputeEvalGrader(CodeGrader):
    """Row: `build_command`, `context_files` and `test_files` ([{path, content}]), `test_command`.

    The answer is the file `solution.cu`. Without nvcc, or without a device that the sandbox shows, it is unscored.
    """

    name: ClassVar[str] = "compute-eval"
    Config = HardwareGraderConfig

    def __init__(self, config: HardwareGraderConfig = HardwareGraderConfig()) -> None:  # noqa: B008 - frozen
        self.config = config

    def language(self, record: Row) -> str:
        return "cuda"

    def extract(self, record: Row) -> ExtractedCode:
        text = str(record.get("generation") or "")
        context_files = [extract_marked(text, mark) for mark in ("cuda", "cpp")]
        return next((each for each in context_files if each.how == "language"), context_files[0])

    async def judge(self, code: str, record: Row, sandbox: Sandbox) -> CodeFinding:
        sources = [*record.get("context_files", []), *record["test_files"]]
        files = {str(file["path"]): str(file["content"]) for file in sources} | {"solution.cu": code}
        if any(path.startswith("/") or ".." in path.split("/") for path in files):
            raise ValueError("a file of the task lies outside of its folder")
        program_task = ProgramTask(
            files=files,
            build=(("nvcc", "--version"), ("sh", "-c", str(record["build_command"]))),
            run=("sh", "-c", str(record.get("test_command") or "./test.out")),
            inputs=[""],
            cpu=self.config.timeout,
            build_cpu=300.0,
        )
        ran = await run_task(program_task, sandbox)
        if (finding := not_built(ran)) is not None:
            return finding
        run = ran.runs[0]
        if any(text in run.out + run.err for text in _NO_DEVICE):
            return unjudged("the sandbox shows no GPU to the program")
        return CodeFinding(passed=run.well, why=str(run))


class KernelBenchGrader(CodeGrader):
    """Speed and correctness of kernels need a GPU of one's own, which no sandbox here shows to code: never judged."""

    name: ClassVar[str] = "kernelbench"

    def language(self, record: Row) -> str:
        return "python"

    async def judge(self, code: str, record: Row, sandbox: Sandbox) -> CodeFinding:
        return unjudged(
            "KernelBench needs a GPU, which the sandbox does not show to code: run its own scripts on it"
        )
