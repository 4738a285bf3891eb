# SPDX-License-Identifier: Apache-2.0
"""Problems with their tests, limits and checker in one archive, as LiveCodeBench Pro publishes them
(arXiv:2506.11928; the form is that of LightCPVerifier, https://github.com/YanagiOrigami/LightCPVerifier)."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path, PurePath
from typing import Annotated, Any, ClassVar

import yaml
from msgspec import Meta

from newskills.base.protocols import Sandbox
from newskills.base.records import Row
from newskills.graders.code.base import CodeFinding, not_built, unjudged_finding
from newskills.graders.code.contest import ContestCase, Subtask, judge_runs
from newskills.graders.code.programs import CHAINS, ProgramTask, input_batches, run_task
from newskills.graders.code.stdio import LiveCodeBenchConfig, LiveCodeBenchGrader

_MOST = 1 << 30
_TIME = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s)?")
_HEADER = "testlib.h"


class LiveCodeBenchProConfig(LiveCodeBenchConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`++eval_config.*` of `eval_type=livecodebench_pro`."""

    language: Annotated[str, Meta(pattern="^cpp$", description="language of the answers: cpp")] = "cpp"  # type: ignore[assignment]
    testlib: Annotated[
        str, Meta(description="testlib.h, which checkers are made with (github.com/MikeMirzayanov/testlib)")
    ] = ""


class LiveCodeBenchProGrader(LiveCodeBenchGrader):
    """Tests are those of the row, of `<id>.json`, or of the archive `<id>.zip` (or folder `<id>`) in `test_dir`.

    An archive has its own limit of time, and a checker where several outputs are right.
    """

    name: ClassVar[str] = "livecodebench_pro"
    answer_keys: ClassVar[tuple[str, ...]] = ("generation",)
    Config = LiveCodeBenchProConfig

    def __init__(self, config: LiveCodeBenchProConfig = LiveCodeBenchProConfig()) -> None:  # noqa: B008 - frozen
        super().__init__(config)
        self._testlib = config.testlib

    async def judge(self, code: str, record: Row, sandbox: Sandbox) -> CodeFinding:
        place = Path(self.config.test_dir) / PurePath(str(record["id"])).name
        archive = place.with_name(f"{place.name}.zip")
        test_package = next((each for each in (archive, place) if self.config.test_dir and each.exists()), None)
        if record.get("tests") is not None or test_package is None:
            return await super().judge(code, record, sandbox)
        problem = read_package(test_package)
        if isinstance(problem, str):
            return unjudged_finding(problem, "data")
        return await self._run_tests(code, self._with_header(problem), sandbox)

    def _with_header(self, problem: Subtask) -> Subtask:
        """Return the problem with testlib.h where its checker needs it. Raises ValueError where that is nowhere."""
        if _HEADER not in problem.checker or _HEADER in dict(problem.grader_files):
            return problem
        try:
            header = Path(self._testlib or _HEADER).read_text("utf-8")
        except OSError as error:
            raise ValueError(
                "the checker needs testlib.h: name the file as ++eval_config.testlib "
                "(https://github.com/MikeMirzayanov/testlib)"
            ) from error
        files = [*problem.grader_files, (_HEADER, header)]
        return Subtask(
            tests=problem.tests, checker=problem.checker, grader_files=files, time_limit=problem.time_limit
        )

    async def _run_tests(self, code: str, problem: Subtask, sandbox: Sandbox) -> CodeFinding:
        chain, left = CHAINS["cpp"], list(problem.tests.values())
        done, total = 0, len(left)
        for part in input_batches([case.input for case in left]):
            program_task = ProgramTask(
                files={chain.file: code},
                build=chain.build,
                run=chain.run,
                inputs=part,
                cpu=problem.time_limit or self.config.timeout,
            )
            ran = await run_task(program_task, sandbox)
            if (finding := not_built(ran)) is not None:
                return finding
            new_points = await judge_runs(problem, list(zip(ran.runs, left[done:], strict=False)), sandbox)
            if isinstance(new_points, CodeFinding):
                return new_points
            for number, (points, run) in enumerate(zip(new_points, ran.runs, strict=True), done + 1):
                if points < 1:
                    why = "another output" if run.well else str(run)
                    return CodeFinding(passed=False, why=f"test {number} of {total}: {why}")
            done += len(part)
        return CodeFinding(passed=True)


def read_package(place: Path) -> Subtask | str:
    """Return the problem in an archive or a folder, or a reason why it cannot be judged. Raises ValueError."""
    return _read_package_at(place, place.stat().st_mtime_ns)


@lru_cache(maxsize=4)
def _read_package_at(place: Path, changed: int) -> Subtask | str:
    if place.is_file():
        files = _read_archive(place)
    else:
        files = {p.name: p.read_bytes() for p in place.rglob("*") if p.is_file()}
    try:
        config: Any = yaml.safe_load(files.get("config.yaml", b"{}")) or {}
    except yaml.YAMLError as error:
        raise ValueError(f"{place}: config.yaml cannot be read ({error})") from error
    if config.get("type", "default") != "default":
        return f"the problem is {config['type']}: a conversation with another program, which is not run"
    checker = str(config.get("checker") or "chk.cc")
    tests = {
        name: ContestCase(input=_decode_text(files[name]), output=_decode_text(files[answer]))
        for name, answer in _test_pairs(files, config)
        if name in files
    }
    if not tests:
        raise ValueError(f"{place} has no tests")
    return Subtask(
        tests=tests,
        checker=_decode_text(files.get(checker, b"")),
        grader_files=[(name, _decode_text(data)) for name, data in files.items() if name.endswith(".h")],
        time_limit=_time_limit_seconds(config),
    )


def _read_archive(place: Path) -> dict[str, bytes]:
    """Read the files of an archive, by their names without folders. Raises ValueError."""
    try:
        with zipfile.ZipFile(place) as archive:
            infos = [info for info in archive.infolist() if not info.is_dir()]
            if sum(info.file_size for info in infos) > _MOST:
                raise ValueError(f"{place} has more than {_MOST >> 20} MiB")
            return {PurePath(info.filename).name: archive.read(info) for info in infos}
    except zipfile.BadZipFile as error:
        raise ValueError(f"{place} cannot be read: {error}") from error


def _test_pairs(files: Mapping[str, bytes], config: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return (input, output) as the settings list them, else by their names, in the order of their numbers."""
    listed = [case for part in config.get("subtasks") or () for case in part.get("cases") or ()]
    if listed:
        return [(PurePath(case["input"]).name, PurePath(case["output"]).name) for case in listed]
    names = sorted((name for name in files if name.endswith(".in")), key=lambda name: (len(name), name))
    stems = [name.removesuffix(".in") for name in names]
    return [(f"{stem}.in", next(n for n in (f"{stem}.ans", f"{stem}.out") if n in files)) for stem in stems]


def _time_limit_seconds(config: Mapping[str, Any]) -> float:
    """Return the largest of the limits; 0 where there is none."""
    limits = [config.get("time"), *(part.get("time") for part in config.get("subtasks") or ())]
    matches = [_TIME.fullmatch(str(each).strip()) for each in limits if each is not None]
    return max((float(each[1]) / (1000 if each[2] == "ms" else 1) for each in matches if each), default=0.0)


def _decode_text(data: bytes) -> str:
    return data.decode("utf-8", "replace").replace("\r\n", "\n")
