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
from importlib.resources import files
from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta, Struct

from newskills.base.errors import SandboxError
from newskills.base.protocols import Execution, Sandbox
from newskills.base.records import Row
from newskills.graders.code.base import CodeFinding, CodeGrader, unjudged

_WALL = 6


class UnitTask(Struct, frozen=True, kw_only=True):
    """`needs`: modules, and `data`: files below the data folder, without which nobody can pass.

    at_least   tests that must have run
    collect    by pytest
    script     `tests` is a program, nothing in it is called
    classes    test classes that get a verdict each (field `test_classes_passed`), within `each` seconds
    """

    code: str
    tests: str
    needs: tuple[str, ...] = ()
    data: tuple[str, ...] = ()
    at_least: int = 0
    collect: bool = False
    script: bool = False
    classes: tuple[str, ...] = ()
    each: float = 0.0


_ABSENT = re.compile(r"ModuleNotFoundError: No module named '(\w+)")


class _Verdict(Struct, frozen=True):
    kind: str
    text: str
    ran: int
    passed: dict[str, bool] = {}


async def run_unit(task: UnitTask, cpu: float, sandbox: Sandbox) -> CodeFinding:
    """Raises SandboxError where the sandbox failed or did not begin."""
    mark = secrets.token_hex(16)
    task_with_mark = {"mark": mark, "cpu": max(1, math.ceil(cpu)), **msgspec.to_builtins(task)}
    result = await sandbox.execute(
        Execution(
            code=_source(),
            language="python",
            timeout=_WALL * cpu,
            std_input=msgspec.json.encode(task_with_mark).decode(),
            max_output_characters=10_000,
        )
    )
    lines = [line[len(mark) :] for line in result.stdout.split("\n") if line.startswith(mark)]
    if not lines:
        last = (result.stderr or result.stdout).strip().splitlines()[-1:] or ["no output"]
        raise SandboxError(f"The sandbox did not begin to test ({result.status}): {last[0][:200]}")
    nothing: Row = {"test_classes_passed": dict.fromkeys(task.classes, False)} if task.classes else {}
    if len(lines) == 1:
        late = result.status == "timeout" or (result.exit_code in (-9, -24) and result.seconds > cpu / 2)
        why = "timeout" if late else f"ended before its tests ({result.status})"
        return CodeFinding(passed=False, why=why, fields=nothing)
    verdict = msgspec.json.decode(lines[1], type=_Verdict)
    if verdict.kind == "missing":
        return unjudged(f"not in the sandbox: {verdict.text}")
    if (absent := _ABSENT.search(verdict.text)) and absent[1] in task.needs:
        return unjudged(f"not in the sandbox, or not whole: {absent[1]}")
    fields = {"test_classes_passed": verdict.passed} if verdict.passed else nothing
    if verdict.kind == "passed" and verdict.ran < task.at_least:
        return CodeFinding(passed=False, why=f"{verdict.ran} of {task.at_least} tests ran", fields=nothing)
    unread = verdict.kind == "load" and verdict.text.startswith(("SyntaxError", "IndentationError"))
    why = "passed" if verdict.kind == "passed" else f"{verdict.kind}: {verdict.text}"
    return CodeFinding(passed=verdict.kind == "passed", why=why, unread=unread, fields=fields)


@cache
def _source() -> str:
    return files("newskills.graders.code.inside").joinpath("unit.py").read_text("utf-8") + "\nmain()\n"


def _parsed(text: str) -> ast.Module:
    """Without warnings of what the text might have meant. Raises SyntaxError."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)


def count_tests(tests: str) -> int:
    """Test functions and methods that the benchmark's text defines. Raises ValueError where it is no Python."""
    try:
        tree = _parsed(tests)
    except SyntaxError as error:
        raise ValueError(f"the tests are no Python: {error}") from error
    bodies = [tree.body, *(node.body for node in tree.body if isinstance(node, ast.ClassDef))]
    return sum(
        isinstance(node, ast.FunctionDef) and node.name.startswith("test") for body in bodies for node in body
    )


def imported(*texts: str) -> tuple[str, ...]:
    """Top-level modules that the benchmark's texts import and Python does not bring. Texts that do not parse, none."""
    modules: dict[str, None] = {}
    for text in texts:
        try:
            tree = _parsed(text)
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
    version: ClassVar[str] = "3"
    Config = BigCodeBenchConfig

    def __init__(self, config: BigCodeBenchConfig = BigCodeBenchConfig()) -> None:  # noqa: B008 - frozen
        self.config = config

    def language(self, record: Row) -> str:
        return "python"

    def gold_head(self, record: Row) -> str:
        return str(record.get("code_prompt") or "")

    def verdict_fields(self, passed: bool | None) -> Row:
        return {} if passed is None else {"status": "pass" if passed else "fail"}

    async def judge(self, code: str, record: Row, sandbox: Sandbox) -> CodeFinding:
        head, tests = str(record.get("code_prompt") or ""), str(record["test"])
        solution = str(record.get("canonical_solution") or "")
        task = UnitTask(
            code=f"{head}    pass\n{code}" if head else code,
            tests=tests,
            needs=imported(f"{head}{solution}", f"{head}    pass\n", tests),
            at_least=count_tests(tests),
        )
        finding = await run_unit(task, self.config.timeout, sandbox)
        if record.get("needs_network") and finding.passed is False:
            return unjudged("the tests need the network, which the sandbox does not give")
        return finding
