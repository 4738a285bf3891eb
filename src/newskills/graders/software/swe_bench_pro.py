# SPDX-License-Identifier: Apache-2.0
"""Patches judged as SWE-bench Pro judges them (https://github.com/scaleapi/SWE-bench_Pro-os, `swe_bench_pro_eval.py`).

Each task brings a script that runs its tests and a program that reads their output; both run in a fresh container.
"""

from __future__ import annotations

import re

import msgspec

from newskills.base.environment import AgentEnvironment, ExecutedCommand
from newskills.base.errors import DataError, EnvironmentFailedError
from newskills.base.protocols import Kit
from newskills.base.records import Row, Score
from newskills.graders.software.steering import note_steering, without_steering
from newskills.graders.software.task import (
    GIT,
    SETUP_TIMEOUT,
    check_test_fields,
    environments_of,
    format_ending,
    patch_of,
    software_task,
)
from newskills.graders.software.tests import PatchVerdict, apply_patch

NEEDED = ("base_commit", "eval_script", "run_script", "parser", "FAIL_TO_PASS", "PASS_TO_PASS")
TIMEOUT = 3600.0
WORKSPACE = "/tmp/swe-bench-pro"  # noqa: S108 - in the container
"""Where the scripts are put; officially /workspace, which sessions of the sandbox cannot have."""
RESULTS = f"{WORKSPACE}/output.json"
NO_PROGRAM = 127
_FILES = {"eval_script": "entryscript.sh", "run_script": "run_script.sh", "parser": "parser.py"}
_LARGEST = 64 << 20
_SECTION = re.compile(r"^(?=diff --git )", re.MULTILINE)
_BINARY = re.compile(r"^(?:GIT binary patch|Binary files .* differ)$", re.MULTILINE)


class _ProTest(msgspec.Struct):
    name: str
    status: str


class _ProResults(msgspec.Struct):
    tests: list[_ProTest]


class SweBenchProGrader:
    """Row: `eval_script` (calls the two others), `run_script`, `parser`, `base_commit`, and the tests that must pass.

    Binary parts of a patch are left out, as officially, and new files that take over how tests run. An environment
    that fails is raised.
    """

    name = "swe_bench_pro"
    version = "2"
    needs_sandbox = False

    async def grade(self, record: Row, kit: Kit) -> Score:
        """Apply the patch and run the tests. Raises ConfigError, DataError (a row without scripts),
        EnvironmentFailedError."""
        environments = environments_of(kit)
        task = software_task(record)
        check_test_fields(task, record, NEEDED)
        label = f"{self.name}@{self.version}"
        whole = patch_of(record)
        patch, steering = without_steering(without_binaries(whole))
        if not patch.strip():
            return PatchVerdict(exists=False).score(label)
        environment = await environments.start(task.spec)
        try:
            await _write_scripts(environment, record)
            applied = await apply_patch(environment, patch, ())
            if applied.exit_code != 0:
                return PatchVerdict(exists=True, log=format_ending(applied)).score(label)
            timeout = float(record.get("test_timeout") or TIMEOUT)
            ran = await environment.execute(f"bash {WORKSPACE}/{_FILES['eval_script']}", timeout=timeout)
            if ran.status == "timeout":
                return PatchVerdict(exists=True, applied=True, timed_out=True).score(label)
            passed, log = await _passed_tests(environment, ran)
        finally:
            await environment.stop()
        wanted = {*record["FAIL_TO_PASS"], *record["PASS_TO_PASS"]}
        verdict = PatchVerdict(exists=True, applied=True, resolved=wanted <= passed, log=log)
        return note_steering(verdict.score(label), whole, steering)


def without_binaries(patch: str) -> str:
    """Return the parts of a patch that are text.

    >>> without_binaries("diff --git a/a b/a\\n+1\\ndiff --git a/b b/b\\nGIT binary patch\\nx\\n")
    'diff --git a/a b/a\\n+1\\n'
    """
    return "".join(section for section in _SECTION.split(patch) if _BINARY.search(section) is None)


async def _write_scripts(environment: AgentEnvironment, record: Row) -> None:
    for field, name in _FILES.items():
        text = str(record[field]).encode("utf-8", "replace")
        command = f"mkdir -p {WORKSPACE} && cat > {WORKSPACE}/{name}"
        stored = await environment.execute(command, timeout=SETUP_TIMEOUT, stdin=text)
        if stored.exit_code != 0:
            raise EnvironmentFailedError(
                f"The file {name} cannot be stored in the container: {format_ending(stored)}"
            )
    commit = str(record["base_commit"])
    if not commit.isalnum():
        raise DataError(f"'{commit}' is not a commit.")
    reset = await environment.execute(
        f"{GIT} reset --hard {commit} && {GIT} checkout {commit}", timeout=SETUP_TIMEOUT
    )
    if reset.exit_code != 0:
        raise EnvironmentFailedError(f"git cannot go to the commit {commit}: {format_ending(reset)}")


async def _passed_tests(environment: AgentEnvironment, ran: ExecutedCommand) -> tuple[set[str], str]:
    """Return the names of the tests that passed, and the log. Without results none has passed, as officially.

    Raises EnvironmentFailedError where the container has no Python for the task's parser.
    """
    log = await environment.execute(
        f"tail -c 4000 {WORKSPACE}/stdout.log {WORKSPACE}/stderr.log", timeout=SETUP_TIMEOUT
    )
    text = log.output.decode("utf-8", "replace")
    made = await environment.execute(f"cat {RESULTS}", timeout=SETUP_TIMEOUT, max_output=_LARGEST)
    if made.exit_code != 0 and ran.exit_code == NO_PROGRAM:
        raise EnvironmentFailedError(f"The program that reads the tests' output cannot run: {format_ending(ran)}")
    try:
        output = made.output if made.exit_code == 0 else b""
        results = msgspec.json.decode(output, type=_ProResults)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return set(), text
    return {test.name for test in results.tests if test.status == "PASSED"}, text
