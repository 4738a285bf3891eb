# SPDX-License-Identifier: Apache-2.0
"""Runs whole programs in the sandbox, in any language whose tool chain is there, and reads what they did.

What a program should print never enters the sandbox, so nothing in there can turn a wrong output into a right one.
"""

from __future__ import annotations

import math
import secrets
from functools import cache
from importlib.resources import files
from typing import TypeVar

import msgspec
from msgspec import Struct

from newskills.base.errors import SandboxError
from newskills.base.protocols import Execution, Sandbox
from newskills.graders.code.inside.driver import PYTHON

_Form = TypeVar("_Form")
_INSIDE = "newskills.graders.code.inside"
OUTPUT = 1 << 20
_LONGEST = 10_000_000
_BATCH_RUNS, _BATCH_BYTES = 24, 8 << 20
WALL = 6
"""Seconds on the clock for each second of CPU: a busy machine must not fail a program."""


class ToolChain(Struct, frozen=True, kw_only=True):
    """How a language is built and run. `file` holds the program; `build` steps run in its folder, then `run`."""

    file: str
    run: tuple[str, ...]
    build: tuple[tuple[str, ...], ...] = ()
    marks: tuple[str, ...] = ()


_JVM = (
    "-Xmx384m",
    "-Xss8m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:CompressedClassSpaceSize=64m",
    "-XX:ReservedCodeCacheSize=48m",
    "-XX:-UsePerfData",
)
CHAINS: dict[str, ToolChain] = {
    "python": ToolChain(file="program.py", run=(PYTHON, "-S", "-P", "program.py"), marks=("python",)),
    "pypy3": ToolChain(file="program.py", run=("pypy3", "program.py"), marks=("python",)),
    "cpp": ToolChain(
        file="program.cpp",
        build=(("g++", "-O2", "-std=c++17", "-pipe", "-w", "-o", "program", "program.cpp"),),
        run=("./program",),
        marks=("cpp", "c++"),
    ),
    "js": ToolChain(
        file="program.js", run=("node", "--stack-size=8000", "program.js"), marks=("javascript", "js")
    ),
    "java": ToolChain(
        file="Program.java",
        build=(("javac", *(f"-J{each}" for each in _JVM), "-nowarn", "-encoding", "UTF-8", "Program.java"),),
        run=("java", *_JVM, "-ea", "-cp", ".", "Program"),
        marks=("java",),
    ),
    "rust": ToolChain(
        file="program.rs",
        build=(("rustc", "--edition", "2021", "--test", "-o", "program", "program.rs"),),
        run=("./program",),
        marks=("rust", "rs"),
    ),
    "go": ToolChain(
        file="program_test.go",
        build=(("go", "mod", "init", "program"),),
        run=("go", "test", "-timeout", "0", "."),
        marks=("go", "golang"),
    ),
    "sh": ToolChain(file="program.sh", run=("bash", "program.sh"), marks=("bash", "sh", "shell")),
}


class ProgramRun(Struct, frozen=True, kw_only=True):
    """One run. `kind`: ended, timeout, crashed (by a signal: `code` is negative), out_of_memory."""

    kind: str
    code: int = 0
    cpu: float = 0.0
    wall: float = 0.0
    out: str = ""
    err: str = ""

    @property
    def well(self) -> bool:
        return self.kind == "ended" and self.code == 0

    def __str__(self) -> str:
        if self.kind == "ended":
            last = self.err.strip().splitlines()[-1:]
            return f"exit code {self.code}" + "".join(f": {line[:200]}" for line in last)
        signal_text = ""
        if self.code < 0 and self.kind == "crashed":
            signal_text = f" (signal {-self.code})"
        return self.kind.replace("_", " ") + signal_text


class ProgramResult(Struct, frozen=True, kw_only=True):
    """`missing`: a program of the tool chain that the sandbox does not have; `build`: the step that failed; else the
    `runs`, fewer than inputs where one failed and the rest was not wanted."""

    missing: str = ""
    build: ProgramRun | None = None
    runs: list[ProgramRun] = []


class ProgramTask(Struct, frozen=True, kw_only=True):
    """A program and its inputs. `cpu`: seconds for each run; `stop`: leave the rest after a run that failed."""

    files: dict[str, str]
    run: tuple[str, ...]
    build: tuple[tuple[str, ...], ...] = ()
    inputs: list[str]
    cpu: float
    build_cpu: float = 60.0
    output: int = OUTPUT
    stop: bool = True


class ProgramPart(Struct, frozen=True, kw_only=True):
    """One of two programs: its files, and how it is built and run among them."""

    files: dict[str, str]
    run: tuple[str, ...]
    build: tuple[tuple[str, ...], ...] = ()


class PairTask(Struct, frozen=True, kw_only=True):
    """An answer and its tests as two programs that talk over pipes (`inside/pair.py`). `cpu`: seconds for each.

    stdio  the pipes are their standard streams, else the descriptors 3 and 4
    each   the answer's program runs anew for each question, which it gets as arguments
    """

    answer: ProgramPart
    tests: ProgramPart
    cpu: float
    build_cpu: float = 60.0
    output: int = OUTPUT
    stdio: bool = False
    each: bool = False


class PairResult(Struct, frozen=True, kw_only=True):
    """`missing`: a program that the sandbox does not have; `build`: the step of the answer's that failed; `unfit`: the
    tests cannot be a program of their own; else how the `tests` ended, and the `answer`, where it ended before them."""

    missing: str = ""
    build: ProgramRun | None = None
    unfit: ProgramRun | None = None
    tests: ProgramRun | None = None
    answer: ProgramRun | None = None


def make_task(language: str, program: str, inputs: list[str], cpu: float) -> ProgramTask:
    """Return the task of a program in one file. Raises KeyError for a language that is not in `CHAINS`."""
    chain = CHAINS[language]
    build = chain.build
    if language == "cpp" and "<openssl/" in program:
        build = tuple((*step, "-lcrypto") for step in build)
    if language == "rust" and "#[test]" not in program:
        build = tuple(tuple(part for part in step if part != "--test") for step in build)  # tests are in main
    return ProgramTask(files={chain.file: program}, build=build, run=chain.run, inputs=inputs, cpu=cpu)


async def run_task(program_task: ProgramTask, sandbox: Sandbox) -> ProgramResult:
    """Run a program on its inputs. Raises SandboxError where the sandbox failed or nothing of the job began."""
    build = 3 * program_task.build_cpu * len(program_task.build)
    seconds = build + len(program_task.inputs) * (WALL * program_task.cpu + 1)
    report, status = await _drive_sandbox("driver.run_all", program_task, seconds, sandbox)
    if report is None:
        return ProgramResult(runs=[ProgramRun(kind=status)])
    ran = _decode_report(report, ProgramResult)
    if status != "out_of_memory":
        return ran
    runs = [
        msgspec.structs.replace(run, kind="out_of_memory") if run.kind == "crashed" else run for run in ran.runs
    ]
    return msgspec.structs.replace(ran, runs=runs)


async def run_pair(task: PairTask, sandbox: Sandbox) -> PairResult:
    """Run answer and tests as two programs. Raises SandboxError where the sandbox failed or nothing of the job
    began."""
    steps = len(task.answer.build) + len(task.tests.build)
    seconds = 3 * task.build_cpu * steps + WALL * task.cpu
    report, status = await _drive_sandbox("pair.run_pair", task, seconds, sandbox)
    if report is None:
        return PairResult(tests=ProgramRun(kind=status))
    ran = _decode_report(report, PairResult)
    if status == "out_of_memory" and ran.answer is not None and ran.answer.kind == "crashed":
        return msgspec.structs.replace(ran, answer=msgspec.structs.replace(ran.answer, kind="out_of_memory"))
    return ran


async def _drive_sandbox(
    work: str, task: ProgramTask | PairTask, seconds: float, sandbox: Sandbox
) -> tuple[str | None, str]:
    """Return what the function `work` reports from inside, and the sandbox's status; without a report, the kind of end.

    Raises SandboxError where the sandbox failed or nothing of the job began.
    """
    mark = secrets.token_hex(16)
    task_with_mark = {"mark": mark, **msgspec.to_builtins(task), "wall": WALL * task.cpu}
    result = await sandbox.execute(
        Execution(
            code=_driver_program(work),
            language="python",
            timeout=min(3600.0, math.ceil(30 + seconds)),
            std_input=msgspec.json.encode(task_with_mark).decode(),
            max_output_characters=_LONGEST,
        )
    )
    reports = [line[len(mark) :] for line in result.stdout.split("\n") if line.startswith(mark)]
    if not reports:
        last = (result.stderr or result.stdout).strip().splitlines()[-1:] or ["no output"]
        raise SandboxError(f"The sandbox did not begin to run the program ({result.status}): {last[0][:200]}")
    if len(reports) > 1:
        return reports[1], result.status
    status = "crashed"
    if result.status in ("timeout", "out_of_memory"):
        status = result.status
    return None, status


def _decode_report(report: str, form: type[_Form]) -> _Form:
    try:
        return msgspec.json.decode(report, type=form)
    except msgspec.DecodeError as error:
        raise SandboxError("The outputs of the program are too long to leave the sandbox.") from error


def input_batches(inputs: list[str], output: int = OUTPUT) -> list[list[str]]:
    """Return the inputs for one call of the sandbox each, so that what they say can leave it at once."""
    batch_list: list[list[str]] = []
    size = 0
    room = max(1, min(_BATCH_RUNS, _LONGEST // (2 * output)))
    for text in inputs:
        if not batch_list or len(batch_list[-1]) >= room or size + len(text) > _BATCH_BYTES:
            batch_list.append([])
            size = 0
        batch_list[-1].append(text)
        size += len(text)
    return batch_list


@cache
def _driver_program(work: str) -> str:
    """Return the text that the sandbox runs: `work` is a module of `inside` and its function."""
    module, _, function = work.partition(".")
    names = ("hiding", "driver") if module == "driver" else ("hiding", "driver", module)
    texts = {f"{_INSIDE}.{name}": files(_INSIDE).joinpath(f"{name}.py").read_text("utf-8") for name in names}
    return (
        f"import sys, types\nfor name, text in {texts!r}.items():\n"
        "    module = sys.modules[name] = types.ModuleType(name)\n"
        '    exec(compile(text, name, "exec", dont_inherit=True), module.__dict__)\n'
        f"sys.modules['{_INSIDE}.driver'].main(sys.modules['{_INSIDE}.{module}'].{function})\n"
    )
