# SPDX-License-Identifier: Apache-2.0
"""Patches to repositories of one's own, judged by tests that the agent has not seen."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct

from newskills.base.environment import AgentEnvironment, AgentEnvironments, ExecutedCommand
from newskills.base.errors import DataError
from newskills.base.protocols import Kit
from newskills.base.records import Row, Score
from newskills.graders.software.steering import note_steering, without_steering
from newskills.graders.software.task import (
    SETUP_TIMEOUT,
    SoftwareTask,
    begin_task,
    environments_of,
    format_ending,
    patch_of,
    software_task,
)

REPORT = "swe-bench-metrics"
"""Field of a record with what the tests said, under the names of SWE-bench's own report."""
LOG = 1 << 20
SHOWN = 4000
_APPLY = "cat > /tmp/model.patch && git apply --whitespace=nowarn {exclude} /tmp/model.patch"
_TEST_FOLDERS = ("test", "tests", "testing")
_STEERING = ("conftest.py", "pytest.ini", "tox.ini", "setup.cfg", "pyproject.toml")
"""Files beside tests that decide how they run."""
_STATUS = re.compile(r"^(PASSED|FAILED|ERROR|XFAIL|SKIPPED) (\S+)", re.MULTILINE)


class PatchVerdict(Struct, frozen=True, kw_only=True):
    """What the container said of a patch."""

    exists: bool
    applied: bool = False
    timed_out: bool = False
    resolved: bool = False
    log: str = ""

    def score(self, grader: str) -> Score:
        report = {
            "patch_exists": self.exists,
            "patch_successfully_applied": self.applied,
            "tests_timed_out": self.timed_out,
            "resolved": self.resolved,
        }
        return patch_score(report, self.log, grader)


def patch_score(report: Row, log: str, grader: str) -> Score:
    """Return the score of a report in the words of SWE-bench's harness; `tests_timed_out` besides them."""
    fields = {REPORT: report, "test_output": log[-SHOWN:]}
    if report["resolved"]:
        return Score(outcome="correct", fields=fields, grader=grader, why="all tests pass")
    if not report["patch_exists"]:
        return Score(outcome="no_answer", fields=fields, grader=grader, why="the patch is empty", cause="model")
    why = "the patch does not apply"
    if report["patch_successfully_applied"]:
        why = "tests fail"
    if report["tests_timed_out"]:
        why = "the tests timed out"
    return Score(outcome="wrong", fields=fields, grader=grader, why=why, cause="model")


class SoftwareTestsGrader:
    """Row: `tests` (folder of this machine, laid over the repository), `test_command`, `test_timeout` in seconds, and
    if need be `FAIL_TO_PASS`, `PASS_TO_PASS`: tests that pytest must name as passed (`-rA`).

    The patch is applied to a fresh copy, but for its changes to tests and new files that take over how they run: those
    do not count. An environment that fails is raised (EnvironmentFailedError), so that the sample ends unscored.
    """

    name = "software_tests"
    version = "2"
    needs_sandbox = False

    async def grade(self, record: Row, kit: Kit) -> Score:
        """Apply the patch and run the tests. Raises ConfigError, DataError (a row without tests),
        EnvironmentFailedError."""
        environments = environments_of(kit)
        task = software_task(record)
        tests, command = record.get("tests"), record.get("test_command")
        if not isinstance(tests, str) or not isinstance(command, str):
            raise DataError(f"Task {task.instance} has no tests.", hint="A row needs `tests` and `test_command`.")
        whole = patch_of(record)
        if not whole.strip():
            return PatchVerdict(exists=False).score(self.label)
        patch, steering = without_steering(whole)
        verdict = await self._run_tests(record, task, patch, Path(tests), command, environments)
        return note_steering(verdict.score(self.label), whole, steering)

    async def _run_tests(
        self,
        record: Row,
        task: SoftwareTask,
        patch: str,
        tests: Path,
        command: str,
        environments: AgentEnvironments,
    ) -> PatchVerdict:
        environment = await environments.start(task.spec)
        try:
            await begin_task(environment, task)
            applied = await apply_patch(environment, patch, protected_patterns(tests))
            if applied.exit_code != 0:
                return PatchVerdict(exists=True, log=format_ending(applied))
            await environment.copy_in(tests, task.workdir)
            timeout = float(record.get("test_timeout") or 1800.0)
            ran = await environment.execute(command, timeout=timeout, max_output=LOG)
        finally:
            await environment.stop()
        log = ran.output.decode("utf-8", "replace")
        timed_out = ran.status == "timeout"
        silent = "pytest" in command and not log.strip()
        resolved = ran.exit_code == 0 and all_passed(log, record) and not silent
        return PatchVerdict(exists=True, applied=True, timed_out=timed_out, resolved=resolved, log=log)

    @property
    def label(self) -> str:
        return f"{self.name}@{self.version}"

    def gold_reply(self, record: Row) -> Row | None:
        """Return the fields of a right answer; None for a task without its solution."""
        patch = record.get("patch")
        if isinstance(patch, str) and patch.strip():
            return {"generation": patch, "model_patch": patch}
        return None


async def apply_patch(environment: AgentEnvironment, patch: str, excluded: Iterable[str]) -> ExecutedCommand:
    """Apply a patch by git, as it stands, CRLF and binary parts as well.

    A patch of nothing but `excluded` files counts as none: its exit code is 0.
    """
    exclude = " ".join(f"--exclude={shlex.quote(pattern)}" for pattern in excluded)
    text = patch if patch.endswith("\n") else patch + "\n"
    command = _APPLY.format(exclude=exclude)
    return await environment.execute(command, timeout=SETUP_TIMEOUT, stdin=text.encode("utf-8", "replace"))


def protected_patterns(tests: Path) -> Sequence[str]:
    """Return the patterns of files that a patch may not change.

    They are those of `tests`, of folders called tests, and of what decides beside them how the tests run.
    """
    patterns: dict[str, None] = {}
    for file in sorted(path for path in tests.rglob("*") if path.is_file()):
        name = file.relative_to(tests).as_posix()
        folder = posixpath.dirname(name)
        patterns[_escape_glob(name)] = None
        if folder:
            patterns |= {_escape_glob(f"{folder}/{steering}"): None for steering in _STEERING}
        for parent in Path(name).parents:
            if parent.name.lower() in _TEST_FOLDERS:
                patterns[f"{_escape_glob(parent.as_posix())}/*"] = None
    patterns |= {"conftest.py": None, "*/conftest.py": None}
    return tuple(patterns)


def all_passed(log: str, record: Row) -> bool:
    """Return whether pytest names all tests as passed that the row says must pass."""
    wanted = [name for key in ("FAIL_TO_PASS", "PASS_TO_PASS") for name in record.get(key) or ()]
    statuses = {name: status for status, name in _STATUS.findall(log)}
    return all(statuses.get(name) in ("PASSED", "XFAIL") for name in wanted)


def _escape_glob(path: str) -> str:
    return re.sub(r"([*?\[\\])", r"\\\1", path)
