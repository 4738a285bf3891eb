# SPDX-License-Identifier: Apache-2.0
"""Tasks in a terminal, judged by their own test script in the container in which the agent worked.

As the harnesses do it: packages `terminal-bench` 0.2.18 (`harness/harness.py`, `parsers/pytest_parser.py`) and `harbor`
0.26.0 (`verifier/verifier.py`).
"""

from __future__ import annotations

import asyncio
import json
import math
import re
import shlex
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, structs

from newskills.base.environment import (
    AgentEnvironment,
    AgentEnvironments,
    AllowedHosts,
    EnvironmentSpec,
    ExecutedCommand,
    ServiceGroup,
    TaskService,
)
from newskills.base.errors import DataError
from newskills.base.protocols import Kit
from newskills.base.records import Row, Score
from newskills.graders.software.phases import (
    PhaseRules,
    TaskPhases,
    TaskStep,
    TestContainer,
    bring_artifacts,
    check_health,
    take_artifacts,
)
from newskills.graders.software.steering import STEERING_FILES
from newskills.graders.software.task import QUIET, SETUP_TIMEOUT, environments_of, format_ending
from newskills.graders.software.tests import LOG, SHOWN

REPORT = "task-tests"
"""Field of a record with what the test script said."""
SOLVED = "reference_solution"
"""Field of a record with the name of the task whose own solution it stands for."""
TESTS, SOLUTION, LOGS = "/tests", "/solution", "/logs/verifier"
_FORGET = f"rm -rf {TESTS} {SOLUTION} {LOGS}"
"""Takes away the tests of a step before the agent works on the next."""
HARBOR = "harbor"
_REWARDS = (f"{LOGS}/reward.json", f"{LOGS}/reward.txt")
_CLEAR = (
    f"if [ -L {TESTS} ]; then rm -f {TESTS}; fi; if [ -d {TESTS} ]; then find {TESTS} "
    f"'(' {' -o '.join(f'-name {name}' for name in ('conftest.py', *STEERING_FILES))} ')' -exec rm -rf {{}} +; fi"
)
"""Takes away what the agent has left where tests will lie, to steer them: links, and files that pytest would obey."""
_SUMMARY = re.compile(r"=+\s*short test summary info\s*=+", re.IGNORECASE)
_STATUS = re.compile(r"^(PASSED|FAILED|SKIPPED|XFAIL|XPASS|ERROR):?[ \t]+\S", re.MULTILINE)
_GOOD = frozenset(("PASSED", "SKIPPED", "XFAIL"))


class TerminalTask(Struct, frozen=True, kw_only=True):
    """A task as its row tells it. `folder` holds its files; times in seconds."""

    instance: str
    format: str
    folder: Path
    script: str
    spec: EnvironmentSpec
    test_timeout: float
    test_variables: dict[str, str]
    solution_variables: dict[str, str]
    phases: TaskPhases = TaskPhases()
    steps: list[TaskStep] = []
    last_step_counts: bool = False
    step: TaskStep | None = None

    @property
    def test_folders(self) -> list[Path]:
        """Folders whose files are the tests; a later one's stand in for an earlier one's."""
        folders = [self.folder / "tests"]
        if self.step is not None:
            folders.append(self.step_folder / "tests")
        return [folder for folder in folders if folder.is_dir()]

    @property
    def step_folder(self) -> Path:
        assert self.step is not None
        return self.folder / "steps" / self.step.name

    def at(self, step: TaskStep) -> TerminalTask:
        """Return the task as it is in one of its steps."""
        return structs.replace(
            self,
            step=step,
            test_timeout=step.test_timeout,
            test_variables={**self.test_variables, **step.test_variables},
            phases=structs.replace(
                self.phases, **{name: getattr(step, name) for name in PhaseRules.__struct_fields__}
            ),
        )

    def test_spec(self, container: TestContainer) -> EnvironmentSpec:
        """Return what the container of the tests is made of, where they have one of their own."""
        build = str(self.folder / container.build) if container.build else ""
        return EnvironmentSpec(
            image=container.image,
            build=build,
            fields=self.spec.fields,
            workdir=container.workdir,
            variables={**QUIET, **container.variables},
            memory_mb=container.memory_mb,
            cpus=container.cpus,
            disk_mb=container.disk_mb,
            build_timeout=container.build_timeout,
            offline=container.closed,
        )


def is_terminal_task(row: Row) -> bool:
    return isinstance(row.get("task_format"), str)


def terminal_task(row: Row, data_dir: Path) -> TerminalTask:
    """Read the task of a row from a file in the folder `data_dir`. Raises DataError for a row without its files."""
    instance = str(row.get("instance_id") or row.get("id") or "")
    try:
        folder = (data_dir / str(row["task_file"])).parent.resolve()
        script = str(row["test_script"])
        image, build = str(row["image"]), str(row["build"])
    except KeyError as error:
        raise DataError(f"Task {instance} has no {error}.", hint="Prepare the benchmark again.") from error
    steps = msgspec.convert(row.get("task_steps") or [], list[TaskStep])
    if not steps and not (folder / script).is_file():
        raise DataError(f"Task {instance} has no tests: {folder / script} is missing.")
    group = msgspec.convert(row.get("group"), ServiceGroup | None)
    fields = {key: str(value) for key, value in row.items() if isinstance(value, str | int)}
    phases = msgspec.convert(row.get("phases") or {}, TaskPhases)
    allowed = _allowed_hosts(phases, steps)
    if allowed is not None and group is None:
        group = ServiceGroup(services=[TaskService(name="main", image=image)])
    build_folder = str(folder / build) if build else ""
    return TerminalTask(
        instance=instance,
        format=str(row["task_format"]),
        folder=folder,
        script=script,
        spec=EnvironmentSpec(
            image=image,
            build=build_folder,
            fields={**fields, "instance_id": instance},
            workdir=str(row.get("container_repo_dir") or ""),
            variables={**QUIET, **(row.get("variables") or {})},
            memory_mb=int(row.get("memory_mb") or 0),
            disk_mb=int(row.get("disk_mb") or 0),
            cpus=float(row.get("cpus") or 0.0),
            build_timeout=float(row.get("build_timeout") or 0.0),
            offline=bool(row.get("offline")),
            group=None if group is None else group.with_folder(folder),
            allowed=allowed,
        ),
        test_timeout=float(row.get("test_timeout") or 0.0) or 600.0,
        test_variables=row.get("test_variables") or {},
        solution_variables=row.get("solution_variables") or {},
        phases=phases,
        steps=steps,
        last_step_counts=bool(row.get("last_step_counts")),
    )


def _allowed_hosts(phases: TaskPhases, steps: Sequence[TaskStep]) -> AllowedHosts | None:
    """Return what a task needs to know of allowed hosts before its first phase; None where no phase has any."""
    lists = [*phases.allowed.values(), *(hosts for step in steps for hosts in step.allowed.values())]
    if not lists:
        return None
    named = sorted({host for hosts in lists for host in hosts if is_host_name(host)})
    first = phases.allowed.get("start", [] if "start" in phases.closed else None)
    return AllowedHosts(named=named, first=first)


def is_host_name(host: str) -> bool:
    """Return whether the entry is the full name of one host."""
    return not (host.startswith("*.") or ":" in host or "/" in host or host.replace(".", "").isdigit())


async def judge_task(environment: AgentEnvironment, task: TerminalTask, environments: AgentEnvironments) -> Row:
    """Run the task's own tests on what the agent has left, in its container or in one of their own, and return what
    they say. Raises ConfigError, EnvironmentFailedError.

    reward     0 to 1, from Harbor's reward file or pytest's summary; None where the script gave no verdict
    timed_out, exit_code, log (its end)
    """
    phases = task.phases
    for collected in phases.collect:
        await phases.enter(environment, "agent", collected.user)
        await environment.execute(collected.command, timeout=collected.timeout)
    if phases.container is None:
        return await _run_tests(environment, task)
    await phases.enter(environment, "agent", phases.setup_user)
    with tempfile.TemporaryDirectory() as place:
        refused = await take_artifacts(environment, phases.artifacts, Path(place))
        await environment.stop()
        tests = await environments.start(task.test_spec(phases.container))
        try:
            await bring_artifacts(tests, phases.artifacts, Path(place))
            report = await _run_tests(tests, task, upload=not phases.container.bundled)
        finally:
            await asyncio.shield(tests.stop())
    return {**report, "log": "".join(f"{line}\n" for line in refused) + report["log"]}


async def _run_tests(environment: AgentEnvironment, task: TerminalTask, *, upload: bool = True) -> Row:
    """Run the task's script on the container as it is now; `upload`: the tests are not in its image."""
    phases = task.phases
    await phases.enter(environment, "tests", phases.setup_user)
    if upload:
        await environment.execute(_CLEAR, timeout=SETUP_TIMEOUT)
        for folder in task.test_folders:
            await environment.copy_in(folder, TESTS)
    if task.format == HARBOR:
        writable = f" && chmod 777 {LOGS}" if phases.setup_user else ""
        await environment.execute(
            f"rm -rf {LOGS} && mkdir -p {LOGS}{writable} && chmod +x {TESTS}/test.sh", timeout=SETUP_TIMEOUT
        )
        command = f"{_export_commands(task.test_variables)}{TESTS}/test.sh"
    else:
        await _copy_file(environment, task.folder / task.script, TESTS)
        command = f"{_export_commands(task.test_variables)}bash {TESTS}/{task.script}"
    await phases.enter(environment, "tests", phases.test_user)
    ran = await environment.execute(command, timeout=task.test_timeout, max_output=LOG)
    log = ran.output.decode("utf-8", "replace")
    rewards = await _read_rewards(environment) if task.format == HARBOR else _of_summary(log)
    if ran.status == "timeout":
        rewards = None
    return {
        "reward": single_reward(rewards),
        **({"rewards": rewards} if task.step is not None else {}),
        "timed_out": ran.status == "timeout",
        "exit_code": ran.exit_code,
        "log": log[-SHOWN:],
    }


async def _read_rewards(environment: AgentEnvironment) -> dict[str, float] | None:
    for place in _REWARDS:
        shown_file = await environment.execute(f"cat {place}", timeout=SETUP_TIMEOUT, max_output=LOG)
        if shown_file.exit_code == 0:
            return parse_rewards(shown_file.output.decode("utf-8", "replace"))
    return None


def parse_rewards(text: str) -> dict[str, float] | None:
    """Read `reward.json` (a number, or several by name) or `reward.txt`; None where there is no finite number.

    >>> parse_rewards("1"), parse_rewards('{"reward": 0.5, "speed": 3}'), parse_rewards("NaN"), parse_rewards("yes")
    ({'reward': 1.0}, {'reward': 0.5, 'speed': 3.0}, None, None)
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    rewards: dict[str, Any] = value if isinstance(value, dict) else {"reward": value}
    if not rewards or not all(isinstance(item, int | float) and math.isfinite(item) for item in rewards.values()):
        return None
    return {name: float(item) for name, item in rewards.items()}


def single_reward(rewards: Mapping[str, float] | None) -> float | None:
    """Return the reward called `reward`, else the mean of all; None without any."""
    if not rewards:
        return None
    if "reward" in rewards:
        return rewards["reward"]
    return sum(rewards.values()) / len(rewards)


def _of_summary(log: str) -> dict[str, float] | None:
    """Return the reward 1 where pytest's summary names no test that failed, else 0; None without a summary, or with an
    empty one."""
    parts = _SUMMARY.split(log, maxsplit=1)
    statuses = _STATUS.findall(parts[1]) if len(parts) > 1 else []
    if statuses:
        return {"reward": float(set(statuses) <= _GOOD)}
    return None


StepWork = Callable[[TerminalTask], Awaitable[Row]]
"""Works on a task in one of its steps; what it returns stands in the report of the step."""


async def work_in_steps(
    environment: AgentEnvironment, task: TerminalTask, environments: AgentEnvironments, work: StepWork
) -> Row:
    """Work on the steps of a task, one after the other, each judged before the next; return a report as `judge_task`,
    with that of each step. The task's phases have begun. Raises what `work` raises, EnvironmentFailedError.

    As Harbor does it (`trial/multi_step.py`): a step whose setup fails, that gets no verdict, or whose reward is too
    low is the last one; the reward is the mean over steps with a verdict by name, or the last step's.
    """
    reports: list[Row] = []
    for number, step in enumerate(task.steps):
        now = task.at(step)
        if number:
            await now.phases.enter(environment, "start", now.phases.setup_user)
            await environment.execute(_FORGET, timeout=SETUP_TIMEOUT)
        if failure := await _set_up(environment, now):
            reports.append(
                {"name": step.name, "rewards": None, "reward": None, "log": failure, "timed_out": False}
            )
            break
        done = await work(now)
        reports.append({"name": step.name, **done, **await judge_task(environment, now, environments)})
        rewards = reports[-1]["rewards"]
        if rewards is None or any(rewards.get(name, -math.inf) < least for name, least in step.min_reward.items()):
            break
    verdicts = [report["rewards"] for report in reports if report["rewards"] is not None]
    if task.last_step_counts:
        reward = single_reward(reports[-1]["rewards"])
    else:
        names = sorted({name for rewards in verdicts for name in rewards})
        reward = single_reward(
            {name: sum(rewards.get(name, 0.0) for rewards in verdicts) / len(verdicts) for name in names}
        )
    return {
        "reward": reward,
        "timed_out": any(report["timed_out"] for report in reports),
        "exit_code": reports[-1].get("exit_code"),
        "log": "".join(f"Step {report['name']}:\n{report['log']}\n" for report in reports)[-SHOWN:],
        "steps": reports,
    }


async def _set_up(environment: AgentEnvironment, task: TerminalTask) -> str:
    """Make a step ready for its agent: its files, its `setup.sh`, its health check. Return why that fails, '' where it
    does not."""
    phases, files = task.phases, task.step_folder / "workdir"
    await phases.enter(environment, "start", phases.agent_user)
    if files.is_dir():
        shown_folder = await environment.execute("pwd", timeout=SETUP_TIMEOUT)
        folder = shown_folder.output.decode("utf-8", "replace").strip() or "/"
        await environment.copy_in(files, folder)
        if (files / "setup.sh").is_file():
            ran = await environment.execute(f"bash {shlex.quote(folder)}/setup.sh", timeout=task.test_timeout)
            if ran.exit_code != 0:
                return f"setup.sh ended with {format_ending(ran)}"
    if phases.health is not None:
        await check_health(environment, phases.health, task.instance)
    await phases.enter(environment, "agent", phases.agent_user)
    return ""


async def solve_by_reference(environment: AgentEnvironment, task: TerminalTask) -> ExecutedCommand:
    """Run the solution that the task, or its step, brings. Raises DataError where it brings none,
    EnvironmentFailedError."""
    script = reference_solution(task.folder if task.step is None else task.step_folder)
    if script is None:
        raise DataError(f"Task {task.instance} has no solution.")
    if script.parent == task.folder:
        await _copy_file(environment, script, SOLUTION)
    else:
        await environment.copy_in(script.parent, SOLUTION)
    command = f"{_export_commands(task.solution_variables)}bash {SOLUTION}/{script.name}"
    return await environment.execute(command, timeout=task.test_timeout + SETUP_TIMEOUT, max_output=LOG)


def reference_solution(folder: Path) -> Path | None:
    """Return the script of the task's own solution, where it has one."""
    return next((path for name in ("solution/solve.sh", "solution.sh") if (path := folder / name).is_file()), None)


async def _copy_file(environment: AgentEnvironment, source: Path, target: str) -> None:
    with tempfile.TemporaryDirectory() as place:
        Path(place, source.name).write_bytes(source.read_bytes())
        await environment.copy_in(Path(place), target)


def _export_commands(variables: dict[str, str]) -> str:
    return "".join(f"export {name}={shlex.quote(value)}; " for name, value in sorted(variables.items()))


class TerminalTestsConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`folder`: that of the prepared file, which the paths in its rows begin from."""

    folder: str = ""


class TerminalTestsGrader:
    """Reads what the test script said where the agent worked (`task-tests`). A record without that is judged in a new
    container: as the task begins, or after the task's own solution (`ns validate`)."""

    Config = TerminalTestsConfig

    name = "terminal_tests"
    version = "2"
    needs_sandbox = False

    def __init__(self, config: TerminalTestsConfig = TerminalTestsConfig()) -> None:  # noqa: B008 - frozen
        self._folder = Path(config.folder)

    async def grade(self, record: Row, kit: Kit) -> Score:
        """Grade by the record's report, else by that of the tests in a new container.

        Raises ConfigError, DataError, EnvironmentFailedError.
        """
        report = record.get(REPORT)
        if not isinstance(report, dict):
            report = await self._in_new_container(record, kit)
        reward = report.get("reward")
        fields = {REPORT: report}
        label = f"{self.name}@{self.version}"
        if isinstance(reward, int | float) and reward >= 1:
            return Score(outcome="correct", fields=fields, grader=label, why="all tests pass")
        why = "tests fail"
        if report.get("timed_out"):
            why = "the tests timed out"
        elif reward is None:
            why = "the test script gave no verdict"
        elif reward > 0:
            why = f"the test script gave {reward:g} of 1"
        return Score(outcome="wrong", fields=fields, grader=label, why=why, cause="model")

    async def _in_new_container(self, record: Row, kit: Kit) -> Row:
        environments = environments_of(kit)
        task = terminal_task(record, self._folder)
        environment = await environments.start(task.spec)
        try:
            before = ""
            await task.phases.begin(environment, task.instance)
            if task.steps:
                return await work_in_steps(
                    environment, task, environments, partial(_solve_step, environment, record)
                )
            if record.get(SOLVED) == task.instance:
                solved = await solve_by_reference(environment, task)
                if solved.exit_code != 0:
                    before = f"The solution ended with {format_ending(solved)}\n"
            report = await judge_task(environment, task, environments)
            return {**report, "log": before + report["log"]}
        finally:
            await environment.stop()

    def gold_reply(self, record: Row) -> Row | None:
        """Return the task's own solution as a reply; None for a task without it."""
        task = terminal_task(record, self._folder)
        folders = [task.at(step).step_folder for step in task.steps] or [task.folder]
        scripts = [script for folder in folders if (script := reference_solution(folder)) is not None]
        if len(scripts) < len(folders):
            return None
        text = "\n".join(script.read_bytes().decode("utf-8", "replace") for script in scripts)
        return {"generation": text, SOLVED: task.instance}


async def _solve_step(environment: AgentEnvironment, record: Row, task: TerminalTask) -> Row:
    """Run the own solution of a step, where the record stands for that of its task."""
    if record.get(SOLVED) == task.instance:
        solved = await solve_by_reference(environment, task)
        return {} if solved.exit_code == 0 else {"ended": format_ending(solved)}
    return {}
