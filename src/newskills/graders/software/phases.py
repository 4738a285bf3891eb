# SPDX-License-Identifier: Apache-2.0
"""Who acts in a task's container, with or without the network, before the agent, while it works, and for the tests.

Source: package `harbor` 0.26.0 (`models/task/config.py`, `trial/network_policy.py`, `trial/artifact_handler.py`).
"""

from __future__ import annotations

import asyncio
import shlex
import shutil
import tempfile
from collections.abc import Awaitable, Sequence
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Literal

from msgspec import Struct, field

from newskills.base.aio import wait_until_healthy
from newskills.base.environment import AgentEnvironment, ExecutedCommand, HealthCheck
from newskills.base.errors import DataError, EnvironmentFailedError
from newskills.graders.software.task import SETUP_TIMEOUT, format_ending

ROOT = "0"
ARTIFACTS = "/logs/artifacts"
"""Where agents leave what tests in a container of their own shall see, whatever else the task names."""
MAX_ARTIFACT_BYTES = 1 << 30
PhaseName = Literal["start", "agent", "tests"]
PHASES: tuple[PhaseName, ...] = ("start", "agent", "tests")


class CollectCommand(Struct, frozen=True, kw_only=True):
    """A command that runs in the agent's container after it has ended; user '' = the image's own."""

    command: str
    timeout: float = 60.0
    user: str = ""


class Artifact(Struct, frozen=True, kw_only=True):
    """A file or folder that tests in a container of their own see; `exclude`: patterns of tar."""

    source: str
    exclude: list[str] = []


class TestContainer(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The container of the tests, where it is not the agent's. `bundled`: the image holds the tests."""

    __test__ = False
    image: str
    build: str = ""
    bundled: bool = False
    workdir: str = ""
    variables: dict[str, str] = {}
    memory_mb: int = 0
    cpus: float = 0.0
    disk_mb: int = 0
    build_timeout: float = 0.0
    closed: bool = False


class PhaseRules(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a task, or a step of it, says of its phases. `closed`: those without the network, in a task whose others
    have it; `allowed`: those of them with some hosts all the same; users '' = the image's own."""

    agent_user: str = ""
    test_user: str = ""
    closed: list[PhaseName] = []
    allowed: dict[PhaseName, list[str]] = {}
    health: HealthCheck | None = None
    collect: list[CollectCommand] = []


class TaskStep(PhaseRules, frozen=True, kw_only=True, omit_defaults=True):
    """A step of a task of several: an instruction of its own, and tests that decide whether the next one is begun.
    `min_reward`: reward by name, below which it is not. Files: `steps/NAME/{tests,workdir,solution}`."""

    name: str
    instruction: str
    agent_timeout: float = 0.0
    test_timeout: float = 600.0
    test_variables: dict[str, str] = {}
    min_reward: dict[str, float] = {}


class TaskPhases(PhaseRules, frozen=True, kw_only=True, omit_defaults=True):
    """The phases of a task, or of one of its steps."""

    artifacts: list[Artifact] = []
    container: TestContainer | None = field(default=None)

    @property
    def setup_user(self) -> str:
        """The user of what is done for the task between its phases."""
        if self.agent_user or self.test_user:
            return ROOT
        return ""

    async def enter(self, environment: AgentEnvironment, phase: PhaseName, user: str = "") -> None:
        """Begin a phase. Raises EnvironmentFailedError where the engine has no users, or cannot close its network."""
        await environment.set_phase(user=user, online=phase not in self.closed, hosts=self.allowed.get(phase, ()))

    async def begin(self, environment: AgentEnvironment, instance: str) -> None:
        """Make the container of a task ready for its agent. Raises EnvironmentFailedError, also where its health check
        fails."""
        await self.enter(environment, "start")
        if self.health is not None:
            await check_health(environment, self.health, instance)
        if self.agent_user or self.container is not None:
            await self.enter(environment, "start", self.setup_user)
            await environment.execute(f"mkdir -p {ARTIFACTS} && chmod 777 {ARTIFACTS}", timeout=SETUP_TIMEOUT)
        await self.enter(environment, "agent", self.agent_user)


async def check_health(environment: AgentEnvironment, check: HealthCheck, instance: str) -> None:
    """Wait until the check passes. Raises EnvironmentFailedError where it does not."""

    def probe(timeout: float) -> Awaitable[ExecutedCommand]:
        return environment.execute(check.command, timeout=timeout)

    failed = await wait_until_healthy(probe, check)
    if failed is not None:
        raise EnvironmentFailedError(
            f"Task {instance}: its health check fails {check.retries} times: `{check.command}`: {format_ending(failed)}"
        )


async def take_artifacts(environment: AgentEnvironment, artifacts: Sequence[Artifact], place: Path) -> list[str]:
    """Copy what the agent has left to `place`, below the paths that it has; return why each one that is refused is.

    Those that are not there are left out, as Harbor does. Raises EnvironmentFailedError.
    """
    refused: list[str] = []
    for artifact in artifacts:
        source, stage = artifact.source.rstrip("/"), "/tmp/.newskills-artifact"  # noqa: S108 - of the container
        word = shlex.quote(source)
        looked = await environment.execute(
            f"if [ -d {word} ]; then echo folder; elif [ -f {word} ]; then rm -rf {stage} && mkdir {stage} "
            f"&& cp -p {word} {stage}/ && echo file; fi",
            timeout=SETUP_TIMEOUT,
        )
        kind = looked.output.decode("utf-8", "replace").strip()
        if kind not in ("folder", "file"):
            continue
        target = place / source.lstrip("/")
        if kind != "folder":
            target = target.parent
        target.mkdir(parents=True, exist_ok=True)
        try:
            copied = source if kind == "folder" else stage
            await environment.copy_out(copied, target, max_bytes=MAX_ARTIFACT_BYTES)
        except DataError as error:
            refused.append(f"{source} cannot be taken from the agent's container: {error.message}")
            continue
        if kind == "folder":
            await asyncio.to_thread(_remove_excluded, target, artifact.exclude)
    return refused


async def bring_artifacts(environment: AgentEnvironment, artifacts: Sequence[Artifact], place: Path) -> None:
    """Copy what `take_artifacts` has put below `place` into another container, at the same paths."""
    for artifact in artifacts:
        source = PurePosixPath(artifact.source)
        kept = place / artifact.source.strip("/")
        if kept.is_dir():
            await environment.copy_in(kept, str(source))
        elif kept.is_file():
            with tempfile.TemporaryDirectory() as folder:
                shutil.copy2(kept, folder)
                await environment.copy_in(Path(folder), str(source.parent))


def _remove_excluded(folder: Path, patterns: Sequence[str]) -> None:
    """Remove what `tar --exclude` would leave out: a pattern fits a path, or its end after a slash."""
    for path in sorted(folder.rglob("*"), reverse=True):
        parts = path.relative_to(folder).parts
        ends = ["/".join(parts[number:]) for number in range(len(parts))]
        if any(fnmatch(end, pattern.removeprefix("./")) for end in ends for pattern in patterns):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
