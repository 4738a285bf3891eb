# SPDX-License-Identifier: Apache-2.0
"""Answers and tests that make one program in a language other than Python."""

from __future__ import annotations

import re
import secrets

from newskills.base.protocols import Sandbox
from newskills.base.records import Row
from newskills.graders.code.base import CodeFinding, not_built, unjudged
from newskills.graders.code.programs import (
    CHAINS,
    PairResult,
    ProgramResult,
    ProgramRun,
    make_task,
    run_pair,
    run_task,
)
from newskills.graders.code.separated import java_program, separate

_MARKED = frozenset({"cpp", "java", "js", "sh"})


async def judge_program(code: str, record: Row, language: str, cpu: float, sandbox: Sandbox) -> CodeFinding:
    """Raises KeyError where the record lacks a field, SandboxError."""
    if language not in CHAINS:
        return unjudged(f"nothing is known of how to run {language}; known: {', '.join(sorted(CHAINS))}")
    program = f"{record['prompt']}\n{record['test']}"
    pair = separate(answer_program(code, record), record, cpu)
    if pair is not None:
        ended = await run_pair(pair, sandbox)
        if ended.unfit is None:
            return _pair_finding(ended, language, program)
    return await _judge_together(code, record, language, cpu, sandbox)


def _pair_finding(ended: PairResult, language: str, program: str) -> CodeFinding:
    if (finding := not_built(ProgramResult(missing=ended.missing, build=ended.build), program)) is not None:
        return finding
    tests, answer = ended.tests, ended.answer
    assert tests is not None, "the tests have run"
    if answer is not None:
        why = "ended before its tests did" if answer.well else _why(answer)
        return _instrument(answer, language, program) or CodeFinding(passed=False, why=why)
    if tests.well:
        return CodeFinding(passed=True)
    return _instrument(tests, language, program) or CodeFinding(passed=False, why=_why(tests))


async def _judge_together(code: str, record: Row, language: str, cpu: float, sandbox: Sandbox) -> CodeFinding:
    """Tests and answer in one program, where calls between two cannot be carried."""
    program = f"{record['prompt']}\n{record['test']}"
    mark = secrets.token_hex(8)
    ran = await run_task(make_task(language, assembled(code, record, mark), [""], cpu), sandbox)
    if (finding := not_built(ran, program)) is not None:
        return finding
    run = ran.runs[0]
    if not run.well:
        return _instrument(run, language, program) or CodeFinding(passed=False, why=_why(run))
    if language in _MARKED and mark not in run.out:
        return CodeFinding(passed=False, why="ended before its tests did")
    return CodeFinding(passed=True)


_ERROR = re.compile(r"\w*Error\b")
_MODULE = re.compile(r"Cannot find module '([^'\n]{1,100})'")


def _why(run: ProgramRun) -> str:
    """The line that tells the error, where there is one; a machine's last words are its version."""
    error_lines = [line.strip() for line in run.err.splitlines() if "rror" in line[:100]]
    error_lines.sort(key=lambda line: _ERROR.match(line) is None)
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
    tests, language = str(record["test"]), str(record["language"])
    return _FRAMES[language](answer_program(code, record), tests, mark, str(record.get("main", "Main")))


def answer_program(code: str, record: Row) -> str:
    """The answer with what is given around it: the head, or all of the prompt where it goes on with that."""
    prompt, language, entry = str(record["prompt"]), str(record["language"]), str(record["entry_point"])
    if re.search(_DEFINES[language].format(re.escape(entry)), code) is None:
        return f"{prompt}{_stopped(code, record)}{record.get('closing', '')}"
    helper = str(record.get("helper", ""))
    lacks = helper and not re.search(_DEFINES[language].format(re.escape(helper)), code)
    body = f"{record.get('head', '')}{record['helpers'] if lacks else ''}\n{code}"
    return body[: body.rfind("}")] if record.get("inside") else body


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
    start = (
        "public class Program {\n  public static void main(String[] arguments) throws Throwable {\n"
        f'    {main}.main(arguments);\n    System.out.println("\\n{mark}");\n  }}\n}}'
    )
    return java_program(f"{body}\n{tests}", start)


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
