# SPDX-License-Identifier: Apache-2.0
"""Answers and tests that make one program in a language other than Python."""

from __future__ import annotations

import re
import secrets

import msgspec

from newskills.base.protocols import Sandbox
from newskills.base.records import Row
from newskills.graders.code.base import CodeFinding, not_built, unjudged_finding
from newskills.graders.code.programs import (
    CHAINS,
    PairResult,
    PairTask,
    ProgramPart,
    ProgramResult,
    ProgramRun,
    make_task,
    run_pair,
    run_task,
)
from newskills.graders.code.separate import WRITERS
from newskills.graders.code.separate.cpp import undefine_macros
from newskills.graders.code.separate.java import java_program
from newskills.graders.code.separate.parts import Answer
from newskills.graders.code.separate.rust import rename_main
from newskills.graders.code.separate.suspicious import list_suspicions

_MARKED = frozenset({"cpp", "java", "js", "sh"})


TOGETHER = "tests share its process"
"""What is suspicious about an answer that could not be kept apart from its tests, whoever wrote it."""


async def judge_program(code: str, record: Row, language: str, cpu: float, sandbox: Sandbox) -> CodeFinding:
    """Run the tests of the record on the code, as two programs where calls between them can be carried. Raises KeyError
    where the record lacks a field, SandboxError."""
    if language not in CHAINS:
        return unjudged_finding(f"nothing is known of how to run {language}; known: {', '.join(sorted(CHAINS))}")
    program = f"{record['prompt']}\n{record.get('declaration', '')}\n{record['test']}"
    finding = await _judge_apart(code, record, program, cpu, sandbox)
    notes = list_suspicions(code, language)
    if finding is None:
        finding = await _judge_together(code, record, program, cpu, sandbox)
        notes = "; ".join(note for note in (TOGETHER, notes) if note)
    return msgspec.structs.replace(finding, suspicious=notes)


async def _judge_apart(code: str, record: Row, program: str, cpu: float, sandbox: Sandbox) -> CodeFinding | None:
    """Answer and tests as two programs; None where calls between them cannot be carried."""
    language = str(record["language"])
    pair = None
    if language in WRITERS:
        pair = WRITERS[language](read_answer(code, record), cpu)
    if pair is None:
        return None
    ended = await run_pair(pair, sandbox)
    if ended.unfit is not None:
        return await _judge_unfit(pair, ended.unfit, language, program, sandbox)
    if ended.tests is not None and ended.tests.kind == "ended" and language in _LACKS:
        lacking = re.search(_LACKS[language], ended.tests.err)
        if lacking is not None and lacking[1] in str(record["test"]):
            return None
    return _pair_finding(ended, language, program)


async def _judge_unfit(
    pair: PairTask, unfit: ProgramRun, language: str, program: str, sandbox: Sandbox
) -> CodeFinding | None:
    """Return why tests that could not be built fail the answer; None where they cannot be built without it either."""
    if (finding := _instrument_finding(unfit, language, program)) is not None:
        return finding
    nothing = msgspec.structs.replace(pair, answer=ProgramPart(files={}, run=("true",)))
    alone = await run_pair(nothing, sandbox)
    if alone.unfit is not None:
        return None
    return CodeFinding(passed=False, why="the tests could not be built beside it")


def _pair_finding(ended: PairResult, language: str, program: str) -> CodeFinding:
    if (finding := not_built(ProgramResult(missing=ended.missing, build=ended.build), program)) is not None:
        return finding
    tests, answer = ended.tests, ended.answer
    assert tests is not None, "the tests have run"
    if answer is not None:
        why = "ended before its tests did" if answer.well else _failure_line(answer)
        return _instrument_finding(answer, language, program) or CodeFinding(passed=False, why=why)
    if tests.well:
        return CodeFinding(passed=True)
    return _instrument_finding(tests, language, program) or CodeFinding(passed=False, why=_failure_line(tests))


async def _judge_together(code: str, record: Row, program: str, cpu: float, sandbox: Sandbox) -> CodeFinding:
    """Run tests and answer in one program, where calls between two cannot be carried.

    It repeats the mark that it gets as input once its tests have ended. An answer that hunts for it can do so, too.
    """
    mark, language = secrets.token_hex(8), str(record["language"])
    ran = await run_task(make_task(language, assemble_program(code, record), [f"{mark}\n"], cpu), sandbox)
    if (finding := not_built(ran, program)) is not None:
        return finding
    run = ran.runs[0]
    if not run.well:
        return _instrument_finding(run, language, program) or CodeFinding(passed=False, why=_failure_line(run))
    if language in _MARKED and mark not in run.out:
        return CodeFinding(passed=False, why="ended before its tests did")
    return CodeFinding(passed=True)


_LACKS = {"js": r"(?m)^ReferenceError: (\S+) is not defined", "sh": r"(?m): (\S+): command not found$"}
"""What tests say that need more of an answer than its function: they hold nothing of it that could say so instead."""
_ERROR = re.compile(r"\w*Error\b")
_MODULE = re.compile(r"Cannot find module '([^'\n]{1,100})'")


def _failure_line(run: ProgramRun) -> str:
    """Return the line that tells the error, where there is one; a machine's last words are its version."""
    error_lines = [line.strip() for line in run.err.splitlines() if "rror" in line[:100]]
    error_lines.sort(key=lambda line: _ERROR.match(line) is None)
    if error_lines and run.kind == "ended":
        return f"exit code {run.code}: {error_lines[0][:200]}"
    return str(run)


def _instrument_finding(run: ProgramRun, language: str, program: str) -> CodeFinding | None:
    messages = run.err + run.out
    if (module := _MODULE.search(messages)) and module[1] in program:
        return unjudged_finding(f"the benchmark's own code needs '{module[1]}', which is not in the sandbox")
    if language == "java" and "Error occurred during initialization of VM" in messages:
        return unjudged_finding("the Java machine cannot start in the sandbox: raise ++sandbox.limits.memory_mb")
    if language == "go" and ("cannot find module" in messages or "no required module provides" in messages):
        return unjudged_finding("the Go packages of the tests are not in the sandbox")
    return None


def assemble_program(code: str, record: Row) -> str:
    """Return the program: the answer, or what it goes on with, then the tests, which end by repeating their input."""
    frame = _FRAMES[str(record["language"])]
    return frame(answer_program(code, record), str(record["test"]), str(record.get("main", "Main")))


def read_answer(code: str, record: Row) -> Answer:
    """Return the answer and what the row says of its tests. A prompt without the head of its function gets it from the
    row's `declaration`."""
    inside, entry = bool(record.get("inside")), str(record["entry_point"])
    body = answer_program(code, record)
    body_text = f"{body}\n}}\n" if inside else body
    return Answer(
        code=code,
        whole=_is_whole(code, record),
        body=body_text,
        prompt=f"{record['prompt']}{record.get('declaration', '')}",
        tests=str(record["test"]),
        entry=entry,
        closing=str(record.get("closing") or ""),
        inside=inside,
        main=str(record.get("main", "Main")),
    )


def _is_whole(code: str, record: Row) -> bool:
    pattern = _DEFINES[str(record["language"])].format(re.escape(str(record["entry_point"])))
    return re.search(pattern, code) is not None


def answer_program(code: str, record: Row) -> str:
    """Return the answer with what is given around it: the head, or all of the prompt where it goes on with that."""
    if not _is_whole(code, record):
        return f"{record['prompt']}{_cut_at_stop_token(code, record)}{record.get('closing', '')}"
    helper = str(record.get("helper", ""))
    defines_helper = _DEFINES[str(record["language"])].format(re.escape(helper))
    lacks = helper and not re.search(defines_helper, code)
    helpers = record["helpers"] if lacks else ""
    body = f"{record.get('head', '')}{helpers}\n{code}"
    if record.get("inside"):
        return body[: body.rfind("}")]
    return body


def _cut_at_stop_token(code: str, record: Row) -> str:
    """Return what goes on with the prompt, up to the first of the stop tokens, which may end with the line."""
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


_CPP_MAIN = """
#undef main
#include <cstdio>
namespace ns_tests {
int run(int (*tests)()) { return tests(); }
int run(int (*tests)(int, char **)) { char *none = nullptr; return tests(0, &none); }
}
int main() {
  int code = ns_tests::run(ns_tests_main);
  char mark[64] = "";
  if (code == 0 && std::fgets(mark, sizeof mark, stdin)) std::printf("\\n%s", mark);
  return code;
}
"""


def _cpp_program(body: str, tests: str, main: str) -> str:
    """Return the program, whose tests get a `return 0`: main returns 0 by itself under its own name only."""
    end = tests.rfind("}")
    return (
        f"#define main answer_main\n{body}\n#undef main\n{undefine_macros(body)}#undef NDEBUG\n"
        f"#define main ns_tests_main\n{tests[:end]}\n    return 0;\n{tests[end:]}\n{_CPP_MAIN}"
    )


def _java_program(body: str, tests: str, main: str) -> str:
    start = (
        "public class Program {\n  public static void main(String[] arguments) throws Throwable {\n"
        f"    {main}.main(arguments);\n    System.out.println();\n"
        "    System.out.write(System.in.readAllBytes());\n    System.out.flush();\n  }\n}"
    )
    return java_program(f"{body}\n{tests}", start)


def _js_program(body: str, tests: str, main: str) -> str:
    strict = "console.assert = (held) => { if (!held) throw new Error('assertion failed'); };"
    return f"{body}\n;{strict}\n{tests}\n;console.log('\\n' + require('fs').readFileSync(0, 'utf8'));\n"


def _sh_program(body: str, tests: str, main: str) -> str:
    return f"{body}\n{tests}\nbuiltin read -r ns_mark\nbuiltin printf '\\n%s\\n' \"$ns_mark\"\n"


def _plain_program(body: str, tests: str, main: str) -> str:
    return f"{body}\n{tests}\n"


def _rust_program(body: str, tests: str, main: str) -> str:
    return f"{rename_main(body)}\n{tests}\n"


_FRAMES = {
    "cpp": _cpp_program,
    "java": _java_program,
    "js": _js_program,
    "sh": _sh_program,
    "rust": _rust_program,
    "go": _plain_program,
}
