# SPDX-License-Identifier: Apache-2.0
"""Programs judged by what they print, and functions by what they return (LiveCodeBench, arXiv:2403.07974).

The tests' answers stay outside of the sandbox: what comes out of it is compared here.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path, PurePath
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta, Struct

from newskills.base.protocols import Sandbox
from newskills.base.records import Row
from newskills.graders.code.base import CodeFinding, CodeGrader, not_built
from newskills.graders.code.cpp_calls import calling_program
from newskills.graders.code.inside.driver import PYTHON
from newskills.graders.code.programs import CHAINS, OUTPUT, ProgramRun, ProgramTask, input_batches, run_task

_MODULES = (
    *("string", "re", "datetime", "collections", "heapq", "bisect", "copy", "math", "random", "statistics"),
    *("itertools", "functools", "operator", "io", "sys", "json", "builtins", "typing"),
)
HEADER = (
    "".join(f"from {name} import *\n" for name in _MODULES)
    + f"import {', '.join(_MODULES)}\nsys.setrecursionlimit(50000)\n"
)
"""What programs of contests rely on without importing it."""
_LOAD = "exec(compile(open('answer.py', encoding='utf-8').read(), 'answer.py', 'exec', dont_inherit=True), globals())\n"
_CALL = """import json as _json, os as _os, sys as _sys
_given = [_json.loads(_line) for _line in _sys.stdin.read().split("\\n") if _line.strip()]
_told = _os.dup(1)
_os.dup2(_os.open(_os.devnull, _os.O_WRONLY), 1)
{load}_target = getattr(Solution(), {name!r}) if "Solution" in globals() else globals()[{name!r}]
_data = memoryview(_json.dumps(_target(*_given)).encode())
while _data:
    _data = _data[_os.write(_told, _data):]
_os._exit(0)
"""


_UNPACKED = 1 << 29
_SHOWN = 1_000
"""Characters kept of each text of a failed test."""


class Cases(Struct, frozen=True, kw_only=True):
    """`function`: what is called with one JSON value per line of the input; empty: programs read and print."""

    inputs: list[str]
    outputs: list[str]
    function: str = ""


class LiveCodeBenchConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`++eval_config.*` of `eval_type=livecodebench`."""

    language: Annotated[Literal["python", "cpp"], Meta(description="language of the answers")] = "python"
    interpreter: Annotated[Literal["python", "pypy3"], Meta(description="what runs Python programs")] = "python"
    timeout: Annotated[
        float, Meta(gt=0, description="CPU seconds for one test; on the clock, six times as much")
    ] = 6.0
    float_tolerance: Annotated[
        float, Meta(ge=0, description="how far decimal fractions may be off, relative or absolute; 0: not at all")
    ] = 0.0
    num_processes: Annotated[int, Meta(description="kept for older scripts; the sandbox decides")] = 12
    timeout_buffer: Annotated[int, Meta(description="kept for older scripts")] = 60
    num_retries: Annotated[int, Meta(description="kept for older scripts")] = 3
    test_file: Annotated[str, Meta(description="kept for older scripts: rows bring their tests")] = ""
    test_dir: Annotated[str, Meta(description="folder with <id>.json of tests, for rows that bring none")] = ""


class LiveCodeBenchGrader(CodeGrader):
    """Row: `tests`: {inputs, outputs}, `function` where one is called; or the text of `pack_cases`.

    Fields written: `graded_list`, with one verdict; `failed_test`: the first test that was not passed. All tests must
    be passed; the first failure ends.
    """

    name: ClassVar[str] = "livecodebench"
    version: ClassVar[str] = "5"
    answer_keys: ClassVar[tuple[str, ...]] = ("generation",)
    Config = LiveCodeBenchConfig

    def __init__(self, config: LiveCodeBenchConfig = LiveCodeBenchConfig()) -> None:  # noqa: B008 - frozen
        self.config = config

    def language(self, record: Row) -> str:
        return self.config.language

    def verdict_fields(self, passed: bool | None) -> Row:
        return {"graded_list": [passed]}

    async def judge(self, code: str, record: Row, sandbox: Sandbox) -> CodeFinding:
        tests = self._read_cases(record)
        if not tests.inputs or len(tests.inputs) != len(tests.outputs):
            raise ValueError("as many outputs as inputs are expected, and at least one")
        done, total = 0, len(tests.inputs)
        for part in input_batches(tests.inputs):
            ran = await run_task(self._program_task(code, part, tests, record), sandbox)
            if (finding := not_built(ran)) is not None:
                return finding
            for number, run in enumerate(ran.runs, done):
                if run.well and self._is_right_output(run, tests.outputs[number], tests):
                    continue
                why = "another output" if run.well else str(run)
                last = run.err.rstrip().rpartition("\n")[2]
                syntax = not run.well and last.startswith(("SyntaxError", "IndentationError"))
                failed = _failed_test(number, total, tests, run, why)
                why = f"test {number + 1} of {total}: {why}"
                return CodeFinding(passed=False, why=why, unread=syntax, fields={"failed_test": failed})
            done += len(part)
        return CodeFinding(passed=True)

    def _read_cases(self, record: Row) -> Cases:
        tests = record.get("tests")
        if isinstance(tests, str):
            return unpack_cases(tests)
        if tests is not None:
            return msgspec.convert(tests, Cases)
        if not self.config.test_dir:
            raise KeyError("tests")
        path = Path(self.config.test_dir) / f"{PurePath(str(record['id'])).name}.json"
        try:
            return msgspec.json.decode(path.read_bytes(), type=Cases)
        except OSError as error:
            raise ValueError(f"cannot read {path}: {error.strerror}") from error

    def _program_task(self, code: str, inputs: Sequence[str], tests: Cases, record: Row) -> ProgramTask:
        if self.config.language == "cpp":
            chain = CHAINS["cpp"]
            if tests.function:
                called = calling_program(code, str(record.get("starter_code") or ""), tests.function)
            else:
                called = code
            return ProgramTask(
                files={chain.file: called},
                build=chain.build,
                run=chain.run,
                inputs=list(inputs),
                cpu=self.config.timeout,
            )
        if tests.function:
            main = _CALL.format(load=_LOAD, name=tests.function)
        else:
            main = _LOAD
        pypy = self.config.interpreter == "pypy3"
        run = ("pypy3", "program.py") if pypy else (PYTHON, "-S", "-P", "program.py")
        return ProgramTask(
            files={"program.py": HEADER + main, "answer.py": code},
            run=run,
            inputs=list(inputs),
            cpu=self.config.timeout,
        )

    def _is_right_output(self, run: ProgramRun, expected: str, tests: Cases) -> bool:
        if len(run.out) > OUTPUT:
            return False
        if tests.function:
            return same_value(run.out, expected)
        tolerance = self.config.float_tolerance
        return same_text(run.out, expected, tolerance, words=bool(tolerance))


def _failed_test(number: int, total: int, tests: Cases, run: ProgramRun, why: str) -> Row:
    """Return what a reader needs to see of the first test that failed; long texts keep their beginning."""
    return {
        "number": number + 1,
        "total": total,
        "input": tests.inputs[number][:_SHOWN],
        "expected": tests.outputs[number][:_SHOWN],
        "actual": run.out[:_SHOWN],
        "error": run.err[-_SHOWN:],
        "why": why,
        "seconds": round(run.wall, 3),
    }


class LiveBenchCodingGrader(LiveCodeBenchGrader):
    """The same, with `partial_solution` before the answer where the task is to go on with it."""

    name: ClassVar[str] = "livebench_coding"
    answer_keys: ClassVar[tuple[str, ...]] = ("generation",)

    async def judge(self, code: str, record: Row, sandbox: Sandbox) -> CodeFinding:
        begun = str(record.get("partial_solution") or "")
        finding = await super().judge(code, record, sandbox)
        if begun and finding.passed is False:
            joined = await super().judge(f"{begun.rstrip()}\n{code}", record, sandbox)
            if joined.passed:
                return joined
            return finding
        return finding


def pack_cases(tests: Cases) -> str:
    """Return `tests` as a short text, for rows with megabytes of them."""
    return base64.b64encode(zlib.compress(msgspec.json.encode(tests), 9)).decode()


def unpack_cases(text: str) -> Cases:
    """Return the tests that `pack_cases` made a text of. Raises ValueError."""
    unzip = zlib.decompressobj()
    try:
        data = unzip.decompress(base64.b64decode(text, validate=True), _UNPACKED)
    except zlib.error as error:
        raise ValueError(f"unreadable tests: {error}") from error
    if not unzip.eof:
        raise ValueError("the tests are cut off, or too many")
    return msgspec.json.decode(data, type=Cases)


def same_value(output: str, expected: str) -> bool:
    """Return whether both are JSON of equal values. `expected` may be a plain text, too."""
    try:
        value: Any = msgspec.json.decode(output)
    except (msgspec.DecodeError, RecursionError):
        return False
    try:
        wanted = msgspec.json.decode(expected)
    except msgspec.DecodeError:
        wanted = expected
    return bool(value == wanted)


def same_text(output: str, expected: str, tolerance: float = 0.0, *, words: bool = True) -> bool:
    """Compare line by line without blanks around; in a line that differs, numbers may be written in another way.

    `words`: such a line may have words between its numbers, which must be the same.
    """
    lines, wanted = ([line.strip() for line in text.strip().split("\n")] for text in (output, expected))
    return len(lines) == len(wanted) and all(
        line == want or _same_numbers(line.split(), want.split(), tolerance, words)
        for line, want in zip(lines, wanted, strict=True)
    )


def _same_numbers(outputs: list[str], wanted: list[str], tolerance: float, words: bool) -> bool:
    return len(outputs) == len(wanted) and all(
        (words and left == right) or _same_number(left, right, tolerance)
        for left, right in zip(outputs, wanted, strict=True)
    )


def _same_number(output: str, wanted: str, tolerance: float) -> bool:
    if max(len(output), len(wanted)) > 400:
        return False
    try:
        left, right = Decimal(output), Decimal(wanted)
    except InvalidOperation:
        return False
    if not (left.is_finite() and right.is_finite()):
        return False
    if left == right:
        return True
    if not tolerance or "." not in wanted:
        return False
    if max(left.adjusted(), right.adjusted()) > 300:
        return False
    return abs(float(left) - float(right)) <= tolerance * max(1.0, abs(float(right)))
