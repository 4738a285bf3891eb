# SPDX-License-Identifier: Apache-2.0
"""Olympiad and contest problems with subtasks and points: IOI, CCC, ICPC. The tests are the user's own."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path, PurePath
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta, Struct

from newskills.base.errors import DataError
from newskills.base.protocols import Sandbox
from newskills.base.records import Row
from newskills.graders.code.base import CodeFinding, CodeGrader, not_built, unjudged_finding
from newskills.graders.code.programs import CHAINS, ProgramRun, ProgramTask, input_batches, run_task
from newskills.graders.code.stdio import same_text

_MANAGER, _TESTLIB = "manager.", "testlib.h"
_CHECKER_FAILED = 3
"""Exit code of a checker made with testlib that has itself to blame."""
_CHECKER = ("g++", "-O2", "-std=c++17", "-w", "-o", "program", "checker.cpp")


class ContestCase(Struct, frozen=True, kw_only=True):
    """One test."""

    input: str
    output: str


class Subtask(Struct, frozen=True, kw_only=True):
    """Tests that bring `score` points together.

    test_names     in place of `tests`: those of the problem's own that belong to it (`Problem.tests`)
    grader_files   [path, text] compiled with the answer (C++) or laid beside it (headers)
    checker        C++ program called with the files of `checker_files`; prints points from 0 to 1, or ends with
                   code 0 for right; without one outputs are compared, blanks at the ends of lines aside
    checker_files  order of input, output (what was printed) and answer (what should have been)
    time_limit     CPU seconds of one test
    """

    tests: dict[str, ContestCase] = {}
    test_names: list[str] = []
    score: float = 1.0
    grader_files: list[tuple[str, str]] = []
    checker: str = ""
    checker_files: tuple[str, str, str] = ("input", "output", "answer")
    time_limit: float = 0.0


class ContestProblem(Struct, frozen=True, kw_only=True):
    """A problem in a file of its own, where subtasks share tests."""

    subtasks: dict[str, Subtask]
    tests: dict[str, ContestCase] = {}

    def subtasks_with_tests(self) -> dict[str, Subtask]:
        """Return each subtask with its tests. Raises KeyError for the name of a test that is not there."""
        return {
            name: msgspec.structs.replace(part, tests={test: self.tests[test] for test in part.test_names})
            if part.test_names
            else part
            for name, part in self.subtasks.items()
        }


class ContestConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`++eval_config.*` of `eval_type=ioi`, `icpc` and `ccc`."""

    test_file: Annotated[
        str,
        Meta(
            description="JSON: problem name → subtask → {score, tests: {name: {input, output}}, checker, …}; or a "
            "folder with a file for each problem: {subtasks, tests}"
        ),
    ] = "test_metadata.json"
    language: Annotated[Literal["cpp", "python"], Meta(description="language of the answers")] = "cpp"
    timeout: Annotated[float, Meta(gt=0, description="CPU seconds of a test for which the file names none")] = 10.0
    time_scale: Annotated[float, Meta(gt=0, description="factor for the limits that the file names")] = 1.0
    time_eval: Annotated[bool, Meta(description="kept for older scripts")] = False
    test_batch_size: Annotated[int, Meta(description="kept for older scripts; the sandbox decides")] = 16
    num_workers: Annotated[int, Meta(description="kept for older scripts; the sandbox decides")] = 16
    overwrite: Annotated[bool, Meta(description="kept for older scripts")] = False


class ContestGrader(CodeGrader):
    """Row: `name` of the problem. Fields written: `test_case_results`, subtask → {score, outputs}; `score`, their sum.

    A subtask is worth its points times the worst of its tests. Right is an answer that has all points.
    """

    name: ClassVar[str] = "contest"
    version: ClassVar[str] = "3"
    Config = ContestConfig

    def __init__(self, config: ContestConfig = ContestConfig()) -> None:  # noqa: B008 - frozen
        self.config = config

    def language(self, record: Row) -> str:
        return self.config.language

    async def judge(self, code: str, record: Row, sandbox: Sandbox) -> CodeFinding:
        try:
            subtasks = read_tests(self.config.test_file, str(record["name"]))
        except DataError as error:
            return unjudged_finding(str(error), "data")
        if manager := next(
            (path for part in subtasks.values() for path, _ in part.grader_files if _MANAGER in path), ""
        ):
            return unjudged_finding(
                f"the problem is a conversation with another program ({manager}), which is not run"
            )
        results: Row = {}
        points_by_test: dict[str, float] = {}
        for name, subtask in subtasks.items():
            known_points = points_by_test if subtask.test_names else {}
            points_of_subtask = await self._judge_subtask(code, subtask, known_points, sandbox)
            if isinstance(points_of_subtask, CodeFinding):
                if points_of_subtask.passed is None:
                    return points_of_subtask
                not_compiled = {"test_case_results": {}, "score": 0.0, "compiled": False}
                return msgspec.structs.replace(points_of_subtask, fields=not_compiled)
            worst = min(points_of_subtask.values())
            outputs = [{"test_name": test, "score": points} for test, points in points_of_subtask.items()]
            results[name] = {"score": subtask.score * worst, "outputs": outputs}
        total, most = (
            sum(each["score"] for each in results.values()),
            sum(each.score for each in subtasks.values()),
        )
        fields: Row = {"test_case_results": results, "score": total, "compiled": True}
        return CodeFinding(passed=total >= most, why=f"{total:g} of {most:g} points", fields=fields)

    async def _judge_subtask(
        self, code: str, subtask: Subtask, points: dict[str, float], sandbox: Sandbox
    ) -> dict[str, float] | CodeFinding:
        """Test → points from 0 to 1; a finding where the answer cannot be built or judged. Tests that have `points`
        are not run again; others get them."""
        if not subtask.tests:
            raise ValueError("a subtask has no tests")
        left = [(test, case) for test, case in subtask.tests.items() if test not in points]
        for part in input_batches([case.input for _, case in left]):
            ran = await run_task(self._program_task(code, part, subtask), sandbox)
            if (finding := not_built(ran)) is not None:
                return finding
            cases = [case for _, case in left[: len(part)]]
            new_points = await judge_runs(subtask, list(zip(ran.runs, cases, strict=False)), sandbox)
            if isinstance(new_points, CodeFinding):
                return new_points
            points |= dict(zip((test for test, _ in left), new_points, strict=False))
            left = left[len(part) :]
        return {test: points.get(test, 0.0) for test in subtask.tests}

    def _program_task(self, code: str, inputs: list[str], subtask: Subtask) -> ProgramTask:
        chain = CHAINS[self.config.language]
        files = dict(subtask.grader_files)
        if any(path.startswith("/") or ".." in path.split("/") for path in files):
            raise ValueError("a grader file lies outside of its folder")
        further = [path for path in files if path.endswith((".cpp", ".cc"))]
        limit = subtask.time_limit * self.config.time_scale or self.config.timeout
        return ProgramTask(
            files={**files, chain.file: code},
            build=tuple((*step, *further) for step in chain.build),
            run=chain.run,
            inputs=inputs,
            cpu=limit,
            stop=False,
        )


async def judge_runs(
    subtask: Subtask, runs: Sequence[tuple[ProgramRun, ContestCase]], sandbox: Sandbox
) -> list[float] | CodeFinding:
    """Return the points of each run, 0–1, or a finding where the checker itself fails.

    The checker is built once for all runs.
    """
    if not subtask.checker:
        return [float(run.well and same_text(run.out, case.output)) for run, case in runs]
    ended = {str(at): pair for at, pair in enumerate(runs) if pair[0].well}
    if not ended:
        return [0.0] * len(runs)
    files = {**dict(subtask.grader_files), "checker.cpp": subtask.checker}
    order = " ".join(f'"{name}-$number.txt"' for name in subtask.checker_files)
    files["check.sh"] = f"read -r number\nexec ./program {order}\n"
    for number, (run, case) in ended.items():
        texts = {"input": case.input, "output": run.out, "answer": case.output}
        files |= {f"{name}-{number}.txt": text for name, text in texts.items()}
    inputs = [f"{number}\n" for number in ended]
    check = ProgramTask(
        files=files, build=(_CHECKER,), run=("bash", "check.sh"), inputs=inputs, cpu=30.0, stop=False
    )
    ran = await run_task(check, sandbox)
    if ran.missing or ran.build is not None:
        why = ran.missing or (ran.build and ran.build.err.strip().partition("\n")[0][:300])
        return unjudged_finding(f"the checker cannot be built: {why}", "data")
    points = [0.0] * len(runs)
    for number, checker_run in zip(ended, ran.runs, strict=False):
        if checker_run.kind == "ended" and checker_run.code == _CHECKER_FAILED and _TESTLIB in subtask.checker:
            return unjudged_finding(f"the checker failed: {checker_run}", "data")
        points[int(number)] = _told_points(checker_run)
    return points


def _told_points(check: ProgramRun) -> float:
    try:
        return min(1.0, max(0.0, float(check.out.split()[0])))
    except (IndexError, ValueError):
        return float(check.well)


class IOIGrader(ContestGrader):
    """International Olympiad in Informatics."""

    name: ClassVar[str] = "ioi"


class ICPCGrader(ContestGrader):
    """International Collegiate Programming Contest: the subtasks `sample` and `test`."""

    name: ClassVar[str] = "icpc"


class CCCGrader(ContestGrader):
    """Canadian Computing Competition."""

    name: ClassVar[str] = "ccc"


def read_tests(place: str, name: str) -> dict[str, Subtask]:
    """Return the subtasks of the problem `name`, of the user's file or of a folder. Raises DataError, KeyError."""
    path = Path(place)
    if path.is_dir():
        path /= f"{PurePath(name).name}.json"
        problem: ContestProblem = _read_problems(path, _change_time(path), ContestProblem)
        return problem.subtasks_with_tests()
    problems: dict[str, dict[str, Subtask]] = _read_problems(
        path, _change_time(path), dict[str, dict[str, Subtask]]
    )
    if not problems:
        raise DataError(f"{path} has no problems.")
    return problems[name]


def _change_time(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError as error:
        raise DataError(
            f"Cannot read the tests {path}: {error.strerror}. Name them: ++eval_config.test_file."
        ) from error


@lru_cache(maxsize=2)
def _read_problems(path: Path, changed: int, form: Any) -> Any:
    try:
        return msgspec.json.decode(path.read_bytes(), type=form)
    except (msgspec.DecodeError, OSError) as error:
        raise DataError(f"{path} is not a file of tests: {error}.") from error
