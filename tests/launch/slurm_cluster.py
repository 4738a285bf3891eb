# SPDX-License-Identifier: Apache-2.0
"""The real cluster that the tests of Slurm use, and short ways to run jobs on it."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.launch.needs import lacking, require_ssh

from newskills.base.plan import Command, CommandGroup, Job, Ref, Script, Word
from newskills.launch.clusters.config import ClusterConfig
from newskills.launch.executors.slurm import Slurm
from newskills.launch.executors.slurm_status import WAITING_STATES
from newskills.launch.place import PendingJob, Site

TRIES = 6
MANY = 4
"""Nodes that the tests need."""
PATIENCE = 240.0
"""Seconds until a test gives up; it passes as soon as what it waits for is there. Time in the queue does not count."""


def require_cluster() -> None:
    """Skips the test where there is no cluster (CI: fails it), says which program or variable is missing."""
    if why := unusable():
        lacking("SLURM", why)


@functools.cache
def unusable() -> str:
    """Why there is no cluster for tests here; empty where there is one."""
    if not shutil.which("sinfo"):
        return "no Slurm here: sinfo is not in PATH"
    named = os.environ.get("SLURM_CONF", "")
    conf = f"SLURM_CONF={named}"
    why = ""
    for _ in range(TRIES if named else 1):  # a busy machine's controller may leave a question without an answer
        try:
            seen = subprocess.run(["sinfo", "-h", "-N", "-o", "%N"], capture_output=True, text=True, timeout=20)
        except subprocess.TimeoutExpired:
            why = f"no Slurm cluster answers within 20 s ({conf})"
            continue
        if seen.returncode == 0:
            break
        why = f"no Slurm cluster answers ({conf}): {seen.stderr[:200]}"
    else:
        return why
    nodes = len(set(seen.stdout.split()))
    return "" if nodes >= MANY else f"the Slurm cluster has {nodes} nodes; {MANY} are needed"


def login() -> Path:
    """ssh config of the cluster's own login node, whose first line names it; it stands beside SLURM_CONF."""
    require_cluster()
    require_ssh()
    config = Path(os.environ.get("SLURM_CONF", "/nonexistent")).parent / "ssh" / "config"
    if not config.is_file():
        lacking("SLURM", f"the Slurm cluster cannot be reached by ssh: there is no {config}")
    return config


def slurm(folder: Path | str, *, environ: Mapping[str, str] | None = None, **cluster: object) -> Slurm:
    keys = {"executor": "slurm", "name": "real", "default_timeout": "00:10:00", **cluster}
    environ = {"PATH": os.environ["PATH"]} if environ is None else environ
    return Slurm(Site(cluster=ClusterConfig(**keys), folder=str(folder), environ=environ))


def ended(executor: Slurm, handles: Sequence[str], patience: float = PATIENCE) -> dict[str, str]:
    """Waits for the end of all; their states."""
    deadline = time.monotonic() + patience
    while True:
        seen = executor.state(handles)
        if not any(state.startswith((*WAITING_STATES, "running")) for state in seen.values()):
            return dict(seen)
        if queued(seen):
            deadline = time.monotonic() + patience
        assert time.monotonic() < deadline, f"waited {patience} s in vain for the end of {seen}"
        time.sleep(0.1)


def printed(folder: Path) -> str:
    """What the command `main` of the job in `folder` has printed, without what srun says between its lines."""
    lines = (folder / "logs" / "main.log").read_text().splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("srun: "))


def queued(states: Mapping[str, str]) -> bool:
    """Whether none runs and some wait for jobs of others, which other tests may have submitted."""
    waits = ("pending (Priority)", "pending (Resources)")
    return any(state in waits for state in states.values()) and "running" not in states.values()


def finished(
    executor: Slurm, work: Job, *, after: Sequence[str] = (), patience: float = PATIENCE
) -> tuple[str, Path]:
    """Runs a job to its end: its state and folder."""
    handle = executor.submit(work, after=after)
    state = ended(executor, [handle], patience)[handle]
    return state, Path(executor._site.folder, work.name)


def submitted(executor: Slurm, *jobs: Job) -> dict[str, str]:
    """All at once, each after those that it depends on."""
    return executor.submit_all([PendingJob(one, (), one.depends_on) for one in jobs])


def until(true: Callable[[], object], what: str | Callable[[], str], patience: float = PATIENCE) -> None:
    deadline = time.monotonic() + patience
    while not true():
        said = what if isinstance(what, str) else what()
        assert time.monotonic() < deadline, f"waited {patience} s in vain: {said}"
        time.sleep(0.1)


def story(folder: Path) -> str:
    """All logs of a job, for messages of failing tests and for looking into."""
    return "".join(f"== {file.name}\n{file.read_text(errors='replace')}" for file in sorted(folder.glob("logs/*")))


def bash(name: str, code: str, *words: Word, **more: object) -> Command:
    """A client that any user can run on any node; it starts in the job's folder."""
    argv = ("bash", "-c", f'cd -- "$1" && shift || exit 1\n{code}', name, Ref(name, "folder"), *words)
    return Command(name=name, script=Script(argv=argv, **more))


def grouped(name: str, *groups: CommandGroup, **more: object) -> Job:
    return Job(name=name, groups=groups, **more)


def scontrol(*words: str) -> str:
    return subprocess.run(["scontrol", *words], capture_output=True, text=True, check=True, timeout=60).stdout


def field(text: str, name: str) -> str:
    """Of what `scontrol show` prints."""
    return next(word.partition("=")[2] for word in text.split() if word.startswith(f"{name}="))
