# SPDX-License-Identifier: Apache-2.0
"""Runs a program against hidden tests in a sandbox, and reads the verdicts that only the judge in there can have sent.

What is used of the sandbox: stateless `python`, standard input and output, processes, and `/proc` not being readable
across processes that are not dumpable, which the kernel sees to.
"""

from __future__ import annotations

import math
import secrets
from functools import cache
from importlib.resources import files

import msgspec
from msgspec import Struct

from newskills.base.errors import SandboxError
from newskills.base.protocols import Execution, ExecutionResult, Sandbox

INSIDE = "newskills.graders.code.inside"
_OUTPUT = 20_000
_LOADER = """import sys, types
for name, text in {texts!r}.items():
    module = sys.modules[name] = types.ModuleType(name)
    module.__dict__["__builtins__"] = dict(vars(sys.modules["builtins"]))
    exec(compile(text, name, "exec", dont_inherit=True), module.__dict__)
"""


class Suite(Struct, frozen=True, kw_only=True):
    """Tests that are passed together. `before` runs first, then the answer's names take their places beside it."""

    before: str = ""
    tests: list[str]


class Program(Struct, frozen=True, kw_only=True):
    """An answer and its tests.

    answer   the model's code; where it does not define the first of `names`, it is what follows `prompt`
    prefix   runs before the answer: the imports and helpers that the prompt gives
    names    what the tests use of the answer
    """

    answer: str
    names: list[str]
    suites: list[Suite]
    prefix: str = ""
    prompt: str = ""


class SuiteVerdict(Struct, frozen=True, kw_only=True):
    """How one suite ended.

    kind   passed; assertion, exception, load, protocol, timeout, crashed, out_of_memory: the code failed;
           data, harness: the suite could not be judged
    """

    kind: str
    text: str = ""

    @property
    def passed(self) -> bool:
        return self.kind == "passed"

    @property
    def judged(self) -> bool:
        return self.kind not in ("data", "harness")

    def __str__(self) -> str:
        kind = self.kind.replace("_", " ")
        if self.text and self.kind != "passed":
            return f"{kind}: {self.text}"
        return kind


class Time(Struct, frozen=True, kw_only=True):
    """Seconds that a program may take: of CPU, and on the clock (for one that sleeps, or forks)."""

    cpu: float
    wall: float


async def run_program(program: Program, time: Time, sandbox: Sandbox) -> list[SuiteVerdict]:
    """Return one verdict per suite, in order. Raises SandboxError where the sandbox failed or the judge never began."""
    mark = secrets.token_hex(16)
    result = await sandbox.execute(
        Execution(
            code=_judge_program(max(1, math.ceil(time.cpu)), any(map(_uses_numpy, program.suites))),
            language="python",
            timeout=time.wall,
            std_input=msgspec.json.encode({"mark": mark, **msgspec.to_builtins(program)}).decode(),
            max_output_characters=_OUTPUT,
        )
    )
    return _read_verdicts(result, mark, len(program.suites))


def _uses_numpy(suite: Suite) -> bool:
    return any("numpy" in text for text in (suite.before, *suite.tests))


@cache
def _judge_program(cpu_seconds: int, uses_numpy: bool) -> str:
    return judge_source(cpu_seconds, *(("near",) if uses_numpy else ()))


def judge_source(cpu_seconds: int, *more: str, work: str = "None") -> str:
    """Return the text that the sandbox runs. It is the same for all programs and holds nothing secret.

    `more`: modules of `inside` that the judge needs besides; `work`: its way to judge, `module.function` of those.
    """
    candidate = f"{program_of_modules('values', 'candidate')}sys.modules['{INSIDE}.candidate'].main()\n"
    module, _, function = work.partition(".")
    way = f"sys.modules['{INSIDE}.{module}'].{function}" if function else work
    judge = program_of_modules("hiding", "values", "judge", *more)
    return f"{judge}sys.modules['{INSIDE}.judge'].main({candidate!r}, {cpu_seconds}, {way})\n"


def program_of_modules(*names: str) -> str:
    """Return the program that loads these modules of `inside`, each with builtins of its own, and nothing else."""
    texts = {f"{INSIDE}.{name}": files(INSIDE).joinpath(f"{name}.py").read_text("utf-8") for name in names}
    return _LOADER.format(texts=texts)


def _read_verdicts(result: ExecutionResult, mark: str, suites: int) -> list[SuiteVerdict]:
    reports = [line.removeprefix(mark).strip() for line in result.stdout.splitlines() if line.startswith(mark)]
    if not reports:
        last = (result.stderr or result.stdout).strip().splitlines()[-1:] or ["no output"]
        raise SandboxError(f"The sandbox did not begin to judge ({result.status}): {last[0][:200]}")
    if len(reports) > 1:
        verdicts = msgspec.json.decode(reports[1], type=list[SuiteVerdict])
        return [_for_memory(verdict) if result.status == "out_of_memory" else verdict for verdict in verdicts]
    kind = "crashed"
    if result.status in ("timeout", "out_of_memory"):
        kind = result.status
    text = "the judge was ended" if kind == "crashed" else ""
    return [SuiteVerdict(kind=kind, text=text)] * suites


def _for_memory(verdict: SuiteVerdict) -> SuiteVerdict:
    """Return a crash as `out_of_memory`: the judge sees only a signal of a process that the kernel has ended for its
    memory."""
    if verdict.kind == "crashed":
        return msgspec.structs.replace(verdict, kind="out_of_memory")
    return verdict
