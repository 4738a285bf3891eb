# SPDX-License-Identifier: Apache-2.0
"""Answers in any language with tests in the same language (HumanEval-X, MultiPL-E), or with Python unit tests."""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta, Struct

from newskills.base.protocols import Sandbox
from newskills.base.records import Row
from newskills.graders.code.assembled import judge_program
from newskills.graders.code.base import CodeFinding, CodeGrader, unjudged_finding
from newskills.graders.code.evalplus import program_of
from newskills.graders.code.extract import ExtractedCode
from newskills.graders.code.harness import Time, run_program
from newskills.graders.code.snippet import extract_snippet
from newskills.graders.code.suspicion import list_suspicions
from newskills.graders.code.units import UnitTask, imported_modules, run_unit, test_names

_WALL = 6


class CodeTestsConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`++eval_config.*` of `eval_type=code_tests`."""

    timeout: Annotated[
        float, Meta(gt=0, description="CPU seconds for all tests; on the clock, six times as much")
    ] = 15.0


class CodeTestsGrader(CodeGrader):
    """Of a row it reads `language` (python where there is none), `test`, and what its `style` needs.

    function   Python, as for `evalplus`; the tests see the answer over a pipe only
    unit       Python, `test` with unittest classes or test functions, in the answer's process unless they hand over
               and compare plain data only
    pytest     the same with what pytest gives to tests
    script     Python, `test` is a program to which the answer, part of another, is the text `answer`; it ends without
               an exception
    program    `prompt`, `entry_point`, `head` (for answers that are whole; `helpers`, the first called
               `helper`, for those that leave them out), `closing` (ends what the prompt begins),
               `inside` (the tests belong into the class that the answer closes), `stop_tokens`,
               `declaration` (the head of the function, where the prompt does not end with it)
    """

    name: ClassVar[str] = "code_tests"
    version: ClassVar[str] = "6"
    answer_keys: ClassVar[tuple[str, ...]] = ("generation",)
    Config = CodeTestsConfig

    def __init__(self, config: CodeTestsConfig = CodeTestsConfig()) -> None:  # noqa: B008 - frozen
        self.config = config

    def language(self, record: Row) -> str:
        return str(record.get("language") or "python")

    def extract(self, record: Row) -> ExtractedCode:
        if record.get("style") == "script":
            return extract_snippet(str(record.get("generation") or ""))
        return super().extract(record)

    def gold_head(self, record: Row) -> str:
        return str(record.get("prompt", ""))

    async def judge(self, code: str, record: Row, sandbox: Sandbox) -> CodeFinding:
        style = record.get("style", "function")
        if style == "program":
            language = self.language(record)
            return await judge_program(code, record, language, self.config.timeout, sandbox)
        if style == "function":
            time = Time(cpu=self.config.timeout, wall=_WALL * self.config.timeout)
            verdicts = await run_program(program_of(record, code), time, sandbox)
            decisive = next((verdict for verdict in verdicts if not verdict.passed), verdicts[0])
            if not decisive.judged:
                return unjudged_finding(str(decisive), "data" if decisive.kind == "data" else "grader")
            return CodeFinding(
                passed=decisive.passed,
                why=str(decisive),
                unread=decisive.kind == "load",
                suspicious=list_suspicions(code),
            )
        tests = str(record["test"])
        before = str(record.get("test_setup_code") or "")
        solution = str(record.get("canonical_solution") or "")
        needs = imported_modules(before, tests, solution)
        if style == "junit":
            return unjudged_finding("tests in JUnit are not run")
        if style in ("unit", "pytest"):
            collect = style == "pytest"
            unit = UnitTask(
                code=f"{before}\n{code}",
                head=before,
                entry=str(record.get("entry_point") or ""),
                tests=tests,
                needs=("pytest", *needs) if collect else needs,
                expects=test_names(tests),
                collect=collect,
                reference=f"{before}\n{solution}" if solution else "",
            )
        elif style == "script":
            unit = UnitTask(code=f"answer = {code!r}\n", tests=tests, needs=needs, script=True)
        else:
            raise ValueError(f"unknown style {style!r}")
        return await run_unit(unit, self.config.timeout, sandbox)
