# SPDX-License-Identifier: Apache-2.0
"""Nodes that die and jobs that must make room, on a real Slurm cluster."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from tests.launch.needs import lacking
from tests.launch.slurm_cluster import bash, ended, field, grouped, require_cluster, scontrol, slurm, story, until

from newskills.base.plan import CommandGroup, HardwareConfig, Job

pytestmark = pytest.mark.usefixtures("cluster")

LIVES = """
echo "${SLURM_RESTART_COUNT:-0} $SLURMD_NODENAME" >>lives
if [[ ${SLURM_RESTART_COUNT:-0} -eq 0 ]]; then exec sleep 600; fi
"""
"""Ends well in its second life."""


@pytest.fixture(scope="module", autouse=True)
def cluster() -> None:
    require_cluster()


def one(name: str, command: str, **hardware: object) -> Job:
    group = CommandGroup(name="all", commands=(bash("main", command),), hardware=HardwareConfig(**hardware))
    return grouped(name, group)


@contextmanager
def dead(node: str) -> Iterator[None]:
    """The node's daemon does not answer and its jobs' processes are gone, as if somebody had pulled the plug."""
    if os.geteuid() != 0:
        lacking("SLURM", "only root can stop a node's daemon")
    pattern = next(
        line.split("=")[1].strip() for line in scontrol("show", "config").splitlines() if "SlurmdPidFile" in line
    )
    pid_file = Path(pattern.replace("%n", node))
    if "%n" not in pattern or not pid_file.is_file():
        lacking("SLURM", f"the daemon of {node} does not run on this machine ({pid_file})")
    pid = int(pid_file.read_text())
    os.kill(pid, signal.SIGSTOP)
    try:
        for other in subprocess.run(["ps", "-eo", "pid="], capture_output=True, text=True).stdout.split():
            if int(other) != pid and on_node(int(other), pid):
                with suppress(ProcessLookupError):
                    os.kill(int(other), signal.SIGKILL)
        scontrol("update", f"nodename={node}", "state=down", "reason=no_answer")
        yield
    finally:
        os.kill(pid, signal.SIGCONT)
        bring_back(node)


def bring_back(node: str) -> None:
    """Its daemon may be faster than this: Slurm refuses to resume a node that is not down any more."""

    def state() -> str:
        return field(scontrol("show", "node", node), "State")

    def is_up() -> bool:
        subprocess.run(["scontrol", "update", f"nodename={node}", "state=resume"], check=False, timeout=60)
        return "DOWN" not in state() and "*" not in state()

    until(is_up, lambda: f"{node} is {state()}")


def on_node(pid: int, daemon: int) -> bool:
    """Whether a process lives in the same name spaces as a node's daemon."""
    try:
        return os.readlink(f"/proc/{pid}/ns/uts") == os.readlink(f"/proc/{daemon}/ns/uts")
    except OSError:
        return False


def test_a_job_goes_on_elsewhere_when_its_node_dies(tmp_path: Path) -> None:
    executor = slurm(tmp_path)
    handle = executor.submit(one("j", LIVES, exclusive=True))  # jobs of other tests must not be on that node
    lives = tmp_path / "j" / "lives"
    until(lambda: lives.exists() and lives.read_text().endswith("\n"), "the first life")
    node = lives.read_text().split()[1]
    with dead(node):
        until(lambda: not executor.state([handle])[handle].startswith("running"), "the loss of the node")
        state = executor.state([handle])[handle]
        assert state.startswith(("requeued", "completed")), state
        # Slurm lets a job wait for two minutes before its next life
        scontrol("update", f"jobid={handle}", "starttime=now")
        assert ended(executor, [handle]) == {handle: "completed"}, story(tmp_path / "j")
    rows = [line.split() for line in lives.read_text().splitlines()]
    assert [row[0] for row in rows] == ["0", "1"]
    assert rows[1][1] != node
    log = (tmp_path / "j" / "logs" / f"j_{handle}_sbatch.log").read_text()
    assert log.count("job starts on") == 2
    assert "(restart 1)" in log


def test_a_job_makes_room_and_goes_on(tmp_path: Path) -> None:
    names = subprocess.run(["sinfo", "-h", "-o", "%R"], capture_output=True, text=True).stdout.split()
    if "preemptible" not in names:
        lacking("SLURM", f"this cluster has no partition 'preemptible' (there are {', '.join(names)})")
    nodes = subprocess.run(["sinfo", "-h", "-N", "-o", "%N", "-p", "preemptible"], capture_output=True, text=True)
    there = {"exclusive": True, "sbatch_kwargs": {"nodelist": nodes.stdout.split()[-1]}}
    executor = slurm(tmp_path)
    first = one("first", LIVES, partition="preemptible", **there)
    handle = executor.submit(first)
    lives = tmp_path / "first" / "lives"
    until(lives.exists, "the first job")
    second = executor.submit(one("second", "true", **there))
    until(lambda: executor.state([handle])[handle].startswith("requeued"), "preemption")
    until(lambda: "preempted" in executor.state([handle])[handle], "its reason, from accounting")
    assert ended(executor, [second]) == {second: "completed"}
    assert field(scontrol("show", "job", handle), "Restarts") == "1"
    scontrol("update", f"jobid={handle}", "starttime=now")
    assert ended(executor, [handle]) == {handle: "completed"}, story(tmp_path / "first")
    assert [line.split()[0] for line in lives.read_text().splitlines()] == ["0", "1"]
