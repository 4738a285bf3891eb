# SPDX-License-Identifier: Apache-2.0
"""Tests that reach into the answer: `unittest` classes and `test…` functions (BigCodeBench, arXiv:2406.15877)."""

from __future__ import annotations

import ast
import math
import re
import secrets
import sys
import warnings
from functools import cache
from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta, Struct

from newskills.base.errors import SandboxError
from newskills.base.protocols import Execution, Sandbox
from newskills.base.records import Row
from newskills.graders.code.base import CodeFinding, CodeGrader, unjudged_finding
from newskills.graders.code.harness import INSIDE, judge_source, program_of_modules
from newskills.graders.code.plain import PlainTests, plain_tests
from newskills.graders.code.suspicion import list_suspicions

_WALL = 6
_MOST_TASKS = 4096
_UNFIT = "the tests hand over what cannot travel"


class UnitTask(Struct, frozen=True, kw_only=True):
    """`needs`: modules, and `data`: files below the data folder, without which nobody can pass.

    head       the benchmark's own text before the answer: what it imports is the tests' own
    prelude    the benchmark's own program that runs before the answer, where the answer cannot see it
    entry      a name that the tests take from the answer even where Python has it, too
    expects    tests that must have passed
    collect    by pytest
    script     `tests` is a program, nothing in it is called
    reference  a right answer, which tells whether the tests can be run in another process than the answer
    classes    test classes that get a verdict each (field `test_classes_passed`), within `each` seconds
    """

    code: str
    tests: str
    head: str = ""
    prelude: str = ""
    entry: str = ""
    reference: str = ""
    needs: tuple[str, ...] = ()
    data: tuple[str, ...] = ()
    expects: tuple[str, ...] = ()
    collect: bool = False
    script: bool = False
    classes: tuple[str, ...] = ()
    each: float = 0.0


_ABSENT = re.compile(r"ModuleNotFoundError: No module named '(\w+)")


class _Verdict(Struct, frozen=True):
    kind: str
    text: str = ""
    ran: list[str] = []
    passed: dict[str, bool] = {}
    notes: list[str] = []


async def run_unit(task: UnitTask, cpu: float, sandbox: Sandbox) -> CodeFinding:
    """Run the tests in another process than the answer where they can be, else beside it.

    Who passes there has passed. Who does not may have given what such tests cannot see: the reference tells.
    Raises SandboxError where the sandbox failed or did not begin.
    """
    is_program = task.script or task.data or task.prelude
    plain = None if is_program else plain_tests(task.tests, task.head, task.entry)
    if plain is not None:
        apart = await _run_apart(task, plain, cpu, sandbox)
        if apart is not None and (apart.passed is not False or await _is_decisive(task, plain, cpu, sandbox)):
            return apart
    return await _run_beside(task, cpu, sandbox)


_decisive: dict[tuple[str, str], bool] = {}


async def _is_decisive(task: UnitTask, plain: PlainTests, cpu: float, sandbox: Sandbox) -> bool:
    """Return whether a right answer would have passed in a process of its own."""
    if not task.reference:
        return plain.calls
    key = (task.reference, task.tests)
    if key not in _decisive:
        if len(_decisive) >= _MOST_TASKS:
            _decisive.clear()
        finding = await _run_apart(msgspec.structs.replace(task, code=task.reference), plain, cpu, sandbox)
        _decisive[key] = finding is not None and finding.passed is True
    return _decisive[key]


async def _run_apart(task: UnitTask, plain: PlainTests, cpu: float, sandbox: Sandbox) -> CodeFinding | None:
    """Run the answer in a process of its own; None where the tests turn out to hand over what cannot travel."""
    task_fields: Row = {name: getattr(task, name) for name in ("code", "tests", "needs", "classes", "each")}
    task_fields |= {"names": plain.names, "imports": plain.imports}
    finding = await _run_tests(task, _apart_source(max(1, math.ceil(cpu))), task_fields, cpu, sandbox)
    if finding.why != _UNFIT:
        return finding
    return None


async def _run_beside(task: UnitTask, cpu: float, sandbox: Sandbox) -> CodeFinding:
    return await _run_tests(
        task, _test_program(), {"cpu": max(1, math.ceil(cpu)), **msgspec.to_builtins(task)}, cpu, sandbox
    )


async def _run_tests(task: UnitTask, source: str, task_fields: Row, cpu: float, sandbox: Sandbox) -> CodeFinding:
    mark = secrets.token_hex(16)
    result = await sandbox.execute(
        Execution(
            code=source,
            language="python",
            timeout=_WALL * cpu,
            std_input=msgspec.json.encode({"mark": mark, **task_fields}).decode(),
            max_output_characters=10_000,
        )
    )
    lines = [line[len(mark) :] for line in result.stdout.split("\n") if line.startswith(mark)]
    if not lines:
        last = (result.stderr or result.stdout).strip().splitlines()[-1:] or ["no output"]
        raise SandboxError(f"The sandbox did not begin to test ({result.status}): {last[0][:200]}")
    if len(lines) == 1:
        why = "timeout"
        if result.status != "timeout":
            why = f"ended before its tests ({result.status})"
        return CodeFinding(
            passed=False, why=why, fields=_no_classes_passed(task), suspicious=list_suspicions(task.code)
        )
    return _read_finding(task, msgspec.json.decode(lines[1], type=_Verdict), result.status)


def _no_classes_passed(task: UnitTask) -> Row:
    if task.classes:
        return {"test_classes_passed": dict.fromkeys(task.classes, False)}
    return {}


def _read_finding(task: UnitTask, verdict: _Verdict, status: str) -> CodeFinding:
    suspicious = list_suspicions(task.code, *verdict.notes)
    if verdict.kind == "unfit":
        return CodeFinding(passed=False, why=_UNFIT)
    if verdict.kind == "missing":
        return unjudged_finding(f"not in the sandbox: {verdict.text}")
    if (absent := _ABSENT.search(verdict.text)) and absent[1] in task.needs:
        return unjudged_finding(f"not in the sandbox, or not whole: {absent[1]}")
    if verdict.passed:
        fields = {"test_classes_passed": verdict.passed}
    else:
        fields = _no_classes_passed(task)
    missing = [name for name in task.expects if name not in verdict.ran]
    if verdict.kind == "passed" and missing:
        why = f"{len(task.expects) - len(missing)} of {len(task.expects)} tests ran"
        return CodeFinding(passed=False, why=why, fields=_no_classes_passed(task), suspicious=suspicious)
    passed = verdict.kind == "passed"
    return CodeFinding(
        passed=passed,
        why="passed" if passed else _failure_reason(verdict, status),
        unread=verdict.kind == "load" and verdict.text.startswith(("SyntaxError", "IndentationError")),
        fields=fields,
        suspicious=suspicious,
    )


def _failure_reason(verdict: _Verdict, status: str) -> str:
    if verdict.kind == "timeout":
        return "timeout"
    if verdict.kind == "ended":
        if status == "out_of_memory":
            return "out of memory"
        return f"ended before its tests ({verdict.text})"
    return f"{verdict.kind}: {verdict.text}"


@cache
def _test_program() -> str:
    modules = program_of_modules(
        "hiding", "private", "near", "equality", "rewriting", "testcases", "trial", "unit"
    )
    return f"{modules}sys.modules['{INSIDE}.unit'].main()\n"


@cache
def _apart_source(cpu_seconds: int) -> str:
    return judge_source(cpu_seconds, "testcases", "apart", work="apart.judge_unit")


def _parse_quietly(text: str) -> ast.Module:
    """Parse without warnings of what the text might have meant. Raises SyntaxError."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)


def test_names(tests: str) -> tuple[str, ...]:
    """Return test functions and methods that the benchmark's text defines. Raises ValueError where it is no Python."""
    try:
        tree = _parse_quietly(tests)
    except SyntaxError as error:
        raise ValueError(f"the tests are no Python: {error}") from error
    bodies = [
        ("", tree.body),
        *((f"{node.name}.", node.body) for node in tree.body if isinstance(node, ast.ClassDef)),
    ]
    names = [
        f"{place}{node.name}"
        for place, body in bodies
        for node in body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test")
    ]
    return tuple(dict.fromkeys(names))


def imported_modules(*texts: str) -> tuple[str, ...]:
    """Return the top-level modules that the benchmark's texts import and Python does not bring.

    Texts that do not parse import none.
    """
    modules: dict[str, None] = {}
    for text in texts:
        try:
            tree = _parse_quietly(text)
        except SyntaxError:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                modules |= dict.fromkeys(name.name.partition(".")[0] for name in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                modules |= {node.module.partition(".")[0]: None}
    return tuple(name for name in modules if name not in sys.stdlib_module_names)


class BigCodeBenchConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`++eval_config.*` of `eval_type=bigcodebench`."""

    timeout: Annotated[
        float, Meta(gt=0, description="CPU seconds for all tests; on the clock, six times as much")
    ] = 60.0


class BigCodeBenchGrader(CodeGrader):
    """Row: `test`, `entry_point`, `code_prompt` (the head, put before the answer), `libs` or what the texts import.

    The head comes first, so that its imports are there, as in the calibrated results of the benchmark's authors.
    A library that the sandbox lacks leaves the answer unscored.
    """

    name: ClassVar[str] = "bigcodebench"
    version: ClassVar[str] = "4"
    answer_keys: ClassVar[tuple[str, ...]] = ("generation",)
    Config = BigCodeBenchConfig

    def __init__(self, config: BigCodeBenchConfig = BigCodeBenchConfig()) -> None:  # noqa: B008 - frozen
        self.config = config

    def language(self, record: Row) -> str:
        return "python"

    def gold_head(self, record: Row) -> str:
        return str(record.get("code_prompt") or "")

    def verdict_fields(self, passed: bool | None) -> Row:
        if passed is None:
            return {}
        status = "pass" if passed else "fail"
        return {"status": status}

    async def judge(self, code: str, record: Row, sandbox: Sandbox) -> CodeFinding:
        head, tests = str(record.get("code_prompt") or ""), str(record["test"])
        solution = str(record.get("canonical_solution") or "")
        program = f"{head}    pass\n{code}" if head else code
        reference = f"{head}{solution}" if solution else ""
        task = UnitTask(
            code=program,
            head=head,
            entry=str(record.get("entry_point") or ""),
            tests=tests,
            needs=imported_modules(f"{head}{solution}", f"{head}    pass\n", tests),
            expects=test_names(tests),
            reference=reference,
        )
        finding = await run_unit(task, self.config.timeout, sandbox)
        if record.get("needs_network") and finding.passed is False:
            return unjudged_finding("the tests need the network, which the sandbox does not give")
        return finding
