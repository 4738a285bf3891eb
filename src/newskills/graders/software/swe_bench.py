# SPDX-License-Identifier: Apache-2.0
"""Patches judged as SWE-bench's own harness judges them (https://github.com/SWE-bench/SWE-bench, package `swebench`).

The row brings the test script and the name of its log's parser; the package completes the script and reads the log; our
containers run it, so no docker daemon is needed. Patches are applied by the harness's own sequence of commands.
"""

from __future__ import annotations

import asyncio
import importlib.util
import tempfile
from pathlib import Path
from typing import Any

from newskills.base.environment import AgentEnvironment, ExecutedCommand
from newskills.base.errors import ConfigError, EnvironmentFailedError, GraderError
from newskills.base.protocols import Kit
from newskills.base.records import Row, Score
from newskills.graders.software.steering import note_steering, without_steering
from newskills.graders.software.task import (
    SETUP_TIMEOUT,
    check_test_fields,
    environments_of,
    patch_of,
    software_task,
)
from newskills.graders.software.tests import REPORT, SHOWN, patch_score

PACKAGE = "swebench"
INSTALL = "Install it: pip install 'newskills[agents]'."
NEEDED = ("image", "repo", "version", "FAIL_TO_PASS", "PASS_TO_PASS", "log_parser", "eval_type", "eval_script")
"""Fields of a row that the package reads."""
TIMEOUT = 1800.0
LOG = 64 << 20
_APPLY = (
    "git apply --verbose",
    "git apply --verbose --3way",
    "git apply --verbose --reject",
    "patch --batch --forward --fuzz=5 -p1 -i",
)
_RESET = "git checkout -- . ; git clean -fd"
_PATCH, _SCRIPT = "/tmp/patch.diff", "/tmp/eval.sh"  # noqa: S108 - in the container


class SweBenchGrader:
    """Row: that of SWE-bench's data sets since version 5 of the package (`eval_script`, `log_parser`, …).

    New files that take over how Python starts or how pytest runs are left out of the patch. An environment that fails
    is raised, and a fault of the environment that the harness sees in the log is unscored.
    """

    name = "swe_bench"
    version = "2"
    needs_sandbox = False

    def check(self) -> None:
        """Raise ConfigError where the harness's package is missing."""
        if importlib.util.find_spec(PACKAGE) is None:
            raise ConfigError(
                f"The package {PACKAGE}, which reads the logs of the tests, is not installed.", hint=INSTALL
            )

    async def grade(self, record: Row, kit: Kit) -> Score:
        """Apply the patch and run the tests. Raises ConfigError, DataError (a row without a test script),
        EnvironmentFailedError, GraderError."""
        self.check()
        environments = environments_of(kit)
        task = software_task(record)
        check_test_fields(task, record, NEEDED)
        whole = patch_of(record)
        patch, steering = without_steering(whole)
        if not patch.strip():
            return self._make_score(
                {"patch_exists": False, "patch_successfully_applied": False, "resolved": False}, ""
            )
        script = await asyncio.to_thread(_test_script, record)
        environment = await environments.start(task.spec)
        try:
            applied = await _apply_patch(environment, patch)
            if applied.exit_code != 0:
                report = {"patch_exists": True, "patch_successfully_applied": False, "resolved": False}
                return self._make_score(report, applied.output.decode("utf-8", "replace"))
            ran = await _run_script(environment, script, float(record.get("test_timeout") or TIMEOUT))
        finally:
            await environment.stop()
        log = ran.output.decode("utf-8", "replace")
        if ran.status == "timeout":
            report = {"patch_exists": True, "patch_successfully_applied": True, "resolved": False}
            return self._make_score({**report, "tests_timed_out": True}, log)
        score = self._make_score(await asyncio.to_thread(_read_report, record, patch, log), log)
        return note_steering(score, whole, steering)

    def _make_score(self, report: Row, log: str) -> Score:
        label = f"{self.name}@{self.version}"
        if report.get("infra_failure"):
            return Score(
                outcome="unscored",
                fields={REPORT: None, "test_output": log[-SHOWN:]},
                grader=label,
                why=f"the environment failed: {report.get('infra_failure_reason')}",
                cause="environment",
            )
        return patch_score({"tests_timed_out": False, **report}, log, label)


async def _apply_patch(environment: AgentEnvironment, patch: str) -> ExecutedCommand:
    """Apply the patch and return the last command's result: 0 where one of them did it."""
    stored = await environment.execute(
        f"cat > {_PATCH}", timeout=SETUP_TIMEOUT, stdin=patch.encode("utf-8", "replace")
    )
    if stored.exit_code != 0:
        raise EnvironmentFailedError("The patch cannot be stored in the container.")
    applied = stored
    for number, command in enumerate(_APPLY):
        reset = f"{_RESET}; " if number else ""
        applied = await environment.execute(f"{reset}{command} {_PATCH}", timeout=SETUP_TIMEOUT)
        if applied.exit_code == 0:
            return applied
    reverse = await environment.execute(f"git apply --check --reverse {_PATCH}", timeout=SETUP_TIMEOUT)
    if reverse.exit_code == 0:
        return reverse
    return applied


async def _run_script(environment: AgentEnvironment, script: str, timeout: float) -> ExecutedCommand:
    await environment.execute(f"cat > {_SCRIPT}", timeout=SETUP_TIMEOUT, stdin=script.encode("utf-8", "replace"))
    return await environment.execute(f"/bin/bash {_SCRIPT}", timeout=timeout, max_output=LOG)


def _test_script(record: Row) -> str:
    """Return the test script as the package completes it. Raises GraderError where it cannot."""
    return str(_make_spec(record).eval_script)


def _make_spec(record: Row) -> Any:
    from swebench.harness.utils import make_test_spec

    try:
        return make_test_spec({"instance_id": record.get("id"), **record})
    except (KeyError, ValueError, TypeError) as error:
        raise GraderError(f"{PACKAGE} cannot read the task {record.get('id')}: {error!r}.") from error


def _read_report(record: Row, patch: str, log: str) -> Row:
    """Return what the package reads in the log. Raises GraderError."""
    from swebench.harness.grading import get_eval_report

    spec = _make_spec(record)
    prediction = {"instance_id": spec.instance_id, "model_name_or_path": "newskills", "model_patch": patch}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "test_output.txt")
        path.write_text(log, "utf-8")
        try:
            reports = get_eval_report(spec, prediction, str(path), include_tests_status=False)
        except (KeyError, ValueError, TypeError) as error:
            raise GraderError(f"{PACKAGE} cannot read the log of {spec.instance_id}: {error!r}.") from error
    report: Row = reports[spec.instance_id]
    # The package tells a run without readable results as a patch that does not apply; here it was applied.
    return {**report, "patch_successfully_applied": True}
