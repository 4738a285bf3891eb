# SPDX-License-Identifier: Apache-2.0
"""Answers in any language with tests in the same language (HumanEval-X, MultiPL-E), or with Python unit tests."""

from __future__ import annotations

import re
import secrets
from typing import Annotated, ClassVar

from msgspec import Meta, Struct

from newskills.base.protocols import Sandbox
from newskills.base.records import Row
from newskills.graders.code.base import CodeFinding, CodeGrader, not_built, unjudged
from newskills.graders.code.evalplus import program_of
from newskills.graders.code.extract import ExtractedCode
from newskills.graders.code.harness import Time, run_program
from newskills.graders.code.programs import CHAINS, ProgramRun, make_task, run_task
from newskills.graders.code.snippet import extract_snippet
from newskills.graders.code.units import UnitTask, count_tests, imported, run_unit

_WALL = 6
_PUBLIC = re.compile(r"^[ \t]*public[ \t]+(?=(?:final[ \t]+)?class\b)", re.MULTILINE)


class CodeTestsConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`++eval_config.*` of `eval_type=code_tests`."""

    timeout: Annotated[
        float, Meta(gt=0, description="CPU seconds for all tests; on the clock, six times as much")
    ] = 15.0


class CodeTestsGrader(CodeGrader):
    """Row: `language` (python where there is none), `test`, and by `style`:

    function   Python, as for `evalplus`; the tests see the answer over a pipe only
    unit       Python, `test` with unittest classes or test functions, in the answer's process
    pytest     the same with what pytest gives to tests
    script     Python, `test` is a program to which the answer, part of another, is the text `answer`; it ends without
               an exception
    program    `prompt`, `entry_point`, `head` (for answers that are whole; `helpers`, the first called
               `helper`, for those that leave them out), `closing` (ends what the prompt begins),
               `inside` (the tests belong into the class that the answer closes), `stop_tokens`
    """

    name: ClassVar[str] = "code_tests"
    version: ClassVar[str] = "5"
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
            return await self._program(code, record, sandbox)
        if style == "function":
            time = Time(cpu=self.config.timeout, wall=_WALL * self.config.timeout)
            verdicts = await run_program(program_of(record, code), time, sandbox)
            decisive = next((verdict for verdict in verdicts if not verdict.passed), verdicts[0])
            if not decisive.judged:
                return unjudged(str(decisive), "data" if decisive.kind == "data" else "grader")
            return CodeFinding(passed=decisive.passed, why=str(decisive), unread=decisive.kind == "load")
        tests = str(record["test"])
        before = str(record.get("test_setup_code") or "")
        needs = imported(before, tests, str(record.get("canonical_solution") or ""))
        if style == "junit":
            return unjudged("tests in JUnit are not run")
        if style in ("unit", "pytest"):
            collect = style == "pytest"
            unit = UnitTask(
                code=f"{before}\n{code}",
                tests=tests,
                needs=("pytest", *needs) if collect else needs,
                at_least=count_tests(tests),
                collect=collect,
            )
        elif style == "script":
            unit = UnitTask(code=f"answer = {code!r}\n", tests=tests, needs=needs, script=True)
        else:
            raise ValueError(f"unknown style {style!r}")
        return await run_unit(unit, self.config.timeout, sandbox)

    async def _program(self, code: str, record: Row, sandbox: Sandbox) -> CodeFinding:
        language = self.language(record)
        if language not in CHAINS:
            return unjudged(f"nothing is known of how to run {language}; known: {', '.join(sorted(CHAINS))}")
        mark = secrets.token_hex(8)
        ran = await run_task(
            make_task(language, assembled(code, record, mark), [""], self.config.timeout), sandbox
        )
        if (finding := not_built(ran, f"{record['prompt']}\n{record['test']}")) is not None:
            return finding
        run = ran.runs[0]
        if not run.well:
            program = f"{record['prompt']}\n{record['test']}"
            return _instrument(run, language, program) or CodeFinding(passed=False, why=_why(run))
        if language in _MARKED and mark not in run.out:
            return CodeFinding(passed=False, why="ended before its tests did")
        return CodeFinding(passed=True)


_MARKED = frozenset({"cpp", "java", "js", "sh"})


_MODULE = re.compile(r"Cannot find module '([^'\n]{1,100})'")


def _why(run: ProgramRun) -> str:
    """The line that tells the error, where there is one; a machine's last words are its version."""
    error_lines = [line.strip() for line in run.err.splitlines() if "rror" in line[:100]]
    return f"exit code {run.code}: {error_lines[0][:200]}" if error_lines and run.kind == "ended" else str(run)


def _instrument(run: ProgramRun, language: str, program: str) -> CodeFinding | None:
    messages = run.err + run.out
    if (module := _MODULE.search(messages)) and module[1] in program:
        return unjudged(f"the benchmark's own code needs '{module[1]}', which is not in the sandbox")
    if language == "java" and "Error occurred during initialization of VM" in messages:
        return unjudged("the Java machine cannot start in the sandbox: raise ++sandbox.limits.memory_mb")
    if language == "go" and ("cannot find module" in messages or "no required module provides" in messages):
        return unjudged("the Go packages of the tests are not in the sandbox")
    return None


def assembled(code: str, record: Row, mark: str) -> str:
    """The program: the answer, or what it goes on with, then the tests, which end by saying `mark`."""
    prompt, tests = str(record["prompt"]), str(record["test"])
    language, entry = str(record["language"]), str(record["entry_point"])
    whole = re.search(_DEFINES[language].format(re.escape(entry)), code) is not None
    if whole:
        helper = str(record.get("helper", ""))
        lacks = helper and not re.search(_DEFINES[language].format(re.escape(helper)), code)
        body = f"{record.get('head', '')}{record['helpers'] if lacks else ''}\n{code}"
        if record.get("inside"):
            body = body[: body.rfind("}")]
    else:
        body = f"{prompt}{_stopped(code, record)}{record.get('closing', '')}"
    return _FRAMES[language](body, tests, mark, str(record.get("main", "Main")))


def _stopped(code: str, record: Row) -> str:
    """What goes on with the prompt, up to the first of the stop tokens, which may end with the line."""
    if not record.get("closing"):
        return code
    text = f"{code.rstrip()}\n"
    ends = [at for at in (text.find(token) for token in record.get("stop_tokens") or ()) if at >= 0]
    return text[: min(ends, default=len(text))] + "\n"


_DEFINES = {
    "cpp": r"(?m)^(?![ \t]*(?:return|else)\b)[\w:<>,&*\t ]+[\s&*]{0}\s*\(",
    "java": r"(?m)^[ \t]*(?:(?:public|final)[ \t]+)*class\b",
    "js": r"(?m)^(?:async )?(?:function\s+{0}\b|(?:const|let|var)\s+{0}\s*=)",
    "rust": r"\bfn\s+{0}\b",
    "go": r"(?m)^func\s+{0}\b",
    "sh": r"(?m)^\s*(?:function\s+)?{0}\s*\(\)",
}
"""What a text has that is more than the rest of a function."""


def _cpp(body: str, tests: str, mark: str, main: str) -> str:
    end = tests.rfind("}")
    return (
        f"#include <cstdio>\n#define main answer_main\n{body}\n#undef main\n#undef NDEBUG\n"
        f'{tests[:end]}\n    std::puts("\\n{mark}");\n    return 0;\n{tests[end:]}\n'
    )


def _java(body: str, tests: str, mark: str, main: str) -> str:
    imports = [line for line in body.splitlines() if line.lstrip().startswith("import ")]
    rest = "\n".join(line for line in body.splitlines() if not line.lstrip().startswith("import "))
    return (
        "\n".join(dict.fromkeys(imports))
        + "\npublic class Program {\n  public static void main(String[] arguments) throws Throwable {\n"
        + f'    {main}.main(arguments);\n    System.out.println("\\n{mark}");\n  }}\n}}\n'
        + _PUBLIC.sub("", f"{rest}\n{tests}\n")
    )


def _js(body: str, tests: str, mark: str, main: str) -> str:
    strict = "console.assert = (held) => { if (!held) throw new Error('assertion failed'); };"
    return f"{body}\n;{strict}\n{tests}\n;console.log('\\n{mark}');\n"


def _sh(body: str, tests: str, mark: str, main: str) -> str:
    return f"{body}\n{tests}\necho\necho {mark}\n"


def _plain(body: str, tests: str, mark: str, main: str) -> str:
    return f"{body}\n{tests}\n"


def _rust(body: str, tests: str, mark: str, main: str) -> str:
    return f"{body.replace('fn main(){}', '')}\n{tests}\n"


_FRAMES = {"cpp": _cpp, "java": _java, "js": _js, "sh": _sh, "rust": _rust, "go": _plain}
