# SPDX-License-Identifier: Apache-2.0
"""Hardware designs and kernels: judged where the simulator or the device is, unscored where it is not."""

from __future__ import annotations

import re
import secrets
from typing import Annotated, ClassVar

from msgspec import Meta, Struct

from newskills.base.protocols import Sandbox
from newskills.base.records import Row
from newskills.graders.code.base import CodeFinding, CodeGrader, extract_marked, not_built, unjudged_finding
from newskills.graders.code.extract import ExtractedCode, extract_code
from newskills.graders.code.programs import ProgramTask, run_task

_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_MISMATCHES = r"(?m)^{}Mismatches: (\d{{1,9}}) in (\d{{1,9}}) samples"
_MODULE = re.compile(r"\bmodule\s+(\w+)")
_ENDING = re.compile(r"\$(?:finish|stop|fatal)\b")
_FOREIGN = {
    "reads or writes files": r"\$(?:f(?:open|close|flush|gets|getc|read|scanf|seek|write|display)|s?readmem[bh]"
    r"|writemem[bh]|system)\b|`include\b",
    "reaches out of its module": r"\$root\b|\b(?:force|release|bind|defparam)\b",
    "puts words together": r"``",
}
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

    The bench prints its count of mismatches once, at the very end, behind a word that the answer does not know. The
    names of its modules and what they are made of are not known to the answer either, and no answer ends the bench.
    """

    name: ClassVar[str] = "verilog_eval"
    version: ClassVar[str] = "2"
    answer_keys: ClassVar[tuple[str, ...]] = ("generation",)
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
        plain = _COMMENT.sub(" ", code)
        if foreign := "; ".join(name for name, pattern in _FOREIGN.items() if re.search(pattern, plain)):
            return CodeFinding(passed=False, why=f"the answer {foreign}", suspicious=foreign)
        word = f"ns_{secrets.token_hex(8)}_"
        bench = hide_bench(str(record["test"]), str(record["reference"]), word)
        files = {"test.sv": bench[0], "ref.sv": bench[1], "top.sv": _ENDING.sub("$display", code)}
        build = tuple(f"{word}tb" if part == "tb" else part for part in _BUILD)
        suspicious = "ends the simulation" if _ENDING.search(plain) else ""
        program_task = ProgramTask(
            files=files, build=(build,), run=("vvp", "-n", "program"), inputs=[""], cpu=self.config.timeout
        )
        ran = await run_task(program_task, sandbox)
        if ran.build is not None and _TOO_OLD.search(ran.build.err):
            return unjudged_finding(
                "this Icarus Verilog is too old for the task's own modules: version 12 knows them"
            )
        if (finding := not_built(ran)) is not None:
            return finding
        run = ran.runs[0]
        mismatches = re.findall(_MISMATCHES.format(word), run.out)
        if not run.well or len(mismatches) != 1:
            if not run.well:
                why = str(run)
            else:
                why = f"{len(mismatches)} counts of mismatches"
            return CodeFinding(passed=False, why=why, suspicious=suspicious)
        wrong, samples = map(int, mismatches[0])
        # Some benches announce a TIMEOUT with their own reference, too: it decides nothing.
        why = f"{wrong} mismatches in {samples} samples"
        return CodeFinding(passed=not wrong and samples > 0, why=why, suspicious=suspicious)


def hide_bench(test: str, reference: str, word: str) -> tuple[str, str]:
    """Return the bench and its reference with `word` before the names of their modules, instances and records, by which
    an answer could reach them, and before the count of mismatches."""
    modules = [name for name in _MODULE.findall(test + reference) if name != "TopModule"]
    kinds = [*modules, "TopModule", *re.findall(r"\}\s*(\w+)\s*;", test)]
    made = re.findall(rf"(?m)^\s*(?:{'|'.join(map(re.escape, kinds))})\s+(?:#\s*\([^;]*?\)\s*)?(\w+)\s*[(;]", test)
    ports = set(re.findall(r"\.(\w+)", test))
    names = [name for name in dict.fromkeys((*modules, *made)) if name not in ports]
    pattern = re.compile(rf"(?<![.$`\w])(?:{'|'.join(map(re.escape, names))})\b")
    hidden = [pattern.sub(lambda match: word + match[0], text) for text in (test, reference)]
    return hidden[0].replace('"Mismatches: ', f'"{word}Mismatches: '), hidden[1]


class ComputeEvalGrader(CodeGrader):
    """Row: `build_command`, `context_files` and `test_files` ([{path, content}]), `test_command`.

    The answer is the file `solution.cu`. Without nvcc, or without a device that the sandbox shows, it is unscored.
    """

    name: ClassVar[str] = "compute-eval"
    answer_keys: ClassVar[tuple[str, ...]] = ("generation",)
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
            return unjudged_finding("the sandbox shows no GPU to the program")
        return CodeFinding(passed=run.well, why=str(run))


class KernelBenchGrader(CodeGrader):
    """Speed and correctness of kernels need a GPU of one's own, which no sandbox here shows to code: never judged."""

    name: ClassVar[str] = "kernelbench"
    answer_keys: ClassVar[tuple[str, ...]] = ("generation",)

    def language(self, record: Row) -> str:
        return "python"

    async def judge(self, code: str, record: Row, sandbox: Sandbox) -> CodeFinding:
        return unjudged_finding(
            "KernelBench needs a GPU, which the sandbox does not show to code: run its own scripts on it"
        )
