# SPDX-License-Identifier: Apache-2.0
"""Whole classes, of which each method has a test class, and the class as a whole another (ClassEval)."""

from __future__ import annotations

import re
from typing import Annotated, ClassVar

from msgspec import Meta, Struct

from newskills.base.protocols import Sandbox
from newskills.base.records import Row
from newskills.graders.code.base import CodeFinding, CodeGrader
from newskills.graders.code.units import UnitTask, imported_modules, run_unit, test_names

_METHOD = re.compile(r"^ {4}def .*$")
_STATIC = "    @staticmethod"


class ClassEvalConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`++eval_config.*` of `eval_type=classeval`."""

    timeout: Annotated[float, Meta(gt=0, description="seconds for each test class")] = 5.0


class ClassEvalGrader(CodeGrader):
    """Row: `test`, `test_classes` (names), `test_setup_code`. Field written beside the usual: `test_classes_passed`.

    Correct where all test classes pass. As in the authors' scorer, methods whose `def` line names neither self nor cls
    are static ones, and others are not, whatever the answer says.
    """

    name: ClassVar[str] = "classeval"
    version: ClassVar[str] = "3"
    answer_keys: ClassVar[tuple[str, ...]] = ("generation",)
    Config = ClassEvalConfig

    def __init__(self, config: ClassEvalConfig = ClassEvalConfig()) -> None:  # noqa: B008 - frozen
        self.config = config

    def language(self, record: Row) -> str:
        return "python"

    async def judge(self, code: str, record: Row, sandbox: Sandbox) -> CodeFinding:
        tests, before = str(record["test"]), str(record.get("test_setup_code") or "")
        classes, solution = tuple(record["test_classes"]), str(record.get("canonical_solution") or "")
        reference = f"{before}\n{static_methods_marked(solution)}" if solution else ""
        task = UnitTask(
            code=f"{before}\n{static_methods_marked(code)}",
            tests=tests,
            head=before,
            reference=reference,
            needs=imported_modules(before, tests, solution),
            expects=test_names(tests),
            classes=classes,
            each=self.config.timeout,
        )
        return await run_unit(task, self.config.timeout * max(1, len(classes)), sandbox)


def static_methods_marked(code: str) -> str:
    """Mark each method whose line names neither `self` nor `cls` with `@staticmethod`, in place of the marks that are
    there.

    >>> print(static_methods_marked("class A:\\n    def one(x):\\n        return x"))
    class A:
        @staticmethod
        def one(x):
            return x
    """
    lines: list[str] = []
    for line in code.split("\n"):
        if "@staticmethod" in line:
            continue
        if _METHOD.match(line) and "self" not in line and "cls" not in line:
            lines.append(_STATIC)
        lines.append(line)
    return "\n".join(lines)
