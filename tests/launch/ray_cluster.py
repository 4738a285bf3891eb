# SPDX-License-Identifier: Apache-2.0
"""A real Ray cluster of several nodes on this machine, each with resources of its own."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.launch.places import until

import newskills
from newskills.base.errors import RemoteError
from newskills.launch.clusters.config import from_keys
from newskills.launch.executors.ray import RayJobs
from newskills.launch.executors.supervisor import PR_SET_PDEATHSIG
from newskills.launch.machines.shell import LocalMachine
from newskills.launch.place import Site
from newskills.launch.ray.api import RayApi
from newskills.launch.ray_node import PATIENCE, agent_ports

TOKEN = "a-token-of-these-tests-only"
SOURCES = str(Path(newskills.__file__).parents[1])
LIBRARIES = str(Path(SOURCES).parent / "libs")
"""What links in the folder of sources point to."""
TRIES = 3
"""Ray gives up when its processes do not see each other in time, as on a loaded machine."""
ANY_PORTS = ("--min-worker-port=0", "--max-worker-port=0")
LESS = ("--include-log-monitor=false", "--object-store-memory=80000000")


class RayCluster:
    """Started with a head; `add` starts further nodes. `stop` ends all of its processes."""

    def __init__(self, *, cpus: int = 1) -> None:
        self.nodes: dict[str, subprocess.Popen[bytes]] = {}
        self.environ = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": TOKEN,
            "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
            "RAY_USAGE_STATS_ENABLED": "0",
            **PATIENCE,
            "RAY_health_check_initial_delay_ms": "0",
        }
        self._folder = Path(tempfile.mkdtemp(prefix="nsray", dir="/tmp"))  # short: sockets are in it
        self.port = self.dashboard = 0
        self._start("head", cpus=cpus, gpus=0)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.dashboard}"

    def add(self, name: str, *, cpus: int = 1, gpus: int = 0) -> None:
        """A node that has one of the resource `name`, and nobody else has."""
        self._start(name, cpus=cpus, gpus=gpus)

    def api(self) -> RayApi:
        return RayApi(self.address, self.environ, LocalMachine())

    def kill(self, name: str) -> None:
        """As a machine that loses its power: nothing of the node can say goodbye."""
        process = self.nodes.pop(name)
        for pid in [process.pid, *children(process.pid)]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()

    def stop(self) -> None:
        for name in list(self.nodes):
            self.kill(name)
        for pid in processes_with(str(self._folder)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _start(self, name: str, *, cpus: int, gpus: int) -> None:
        log = self._folder / f"{name}.log"
        for left in reversed(range(TRIES)):
            self._run(name, log, cpus=cpus, gpus=gpus)
            try:
                until(lambda: self._is_up(name, log), f"node {name}", patience=400)
                return
            except AssertionError:
                self.kill(name)
                if not left:
                    raise

    def _run(self, name: str, log: Path, *, cpus: int, gpus: int) -> None:
        if name == "head":
            self.port, client, self.dashboard = free_ports(3)
            ports = [
                f"--port={self.port}",
                f"--ray-client-server-port={client}",
                f"--dashboard-port={self.dashboard}",
            ]
            place = ["--head", *ports, f"--temp-dir={self._folder}"]
        else:
            place = [f"--address=127.0.0.1:{self.port}"]
        with log.open("wb") as output:
            self.nodes[name] = subprocess.Popen(
                [
                    *(str(Path(sys.executable).with_name("ray")), "start", "--block", "--disable-usage-stats"),
                    *(f"--num-cpus={cpus}", f"--num-gpus={gpus}", f"--resources={json.dumps({name: 1})}"),
                    *(*LESS, *ANY_PORTS, *agent_ports(), *place),
                ],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=self.environ,
                start_new_session=True,
                preexec_fn=end_with_us,
            )

    def _is_up(self, name: str, log: Path) -> bool:
        """Asked twice a second: each answer costs the dashboard of a busy machine CPU time that Ray then lacks."""
        process = self.nodes[name]
        ended = process.poll() is not None or any(map(is_dead_raylet, children(process.pid)))
        assert not ended, log.read_text(errors="replace")[-2000:]
        time.sleep(0.5)
        try:
            return any(name in node.resources for node in self.api().nodes())
        except RemoteError:
            return False


def end_with_us() -> None:
    """Where the tests are killed, Ray is told to stop."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def ray_jobs(
    cluster: RayCluster, folder: Path, *, environ: Mapping[str, str] | None = None, **keys: object
) -> RayJobs:
    """The executor with an experiment in `folder`. `keys`: of the cluster config; those of `ray` stand in `ray`."""
    ray = {"address": cluster.address, **keys.pop("ray", {})}
    own = {"executor": "ray", "job_dir": str(folder), "default_timeout": "01:00:00", "ray": ray, **keys}
    environ = {**cluster.environ, **(environ or {})}
    return RayJobs(
        Site(
            cluster=from_keys(own, "test", environ),
            folder=str(folder),
            code=SOURCES,
            environ=environ,
            experiment="e",
        )
    )


def ended(executor: RayJobs, handles: Sequence[str]) -> dict[str, str]:
    """States when all have ended."""
    states: dict[str, str] = {}

    def over() -> bool:
        states.update(executor.state(handles))
        return all(
            state.partition(" (")[0] in ("completed", "failed", "cancelled", "timeout")
            for state in states.values()
        )

    until(over, f"the end of {handles}", patience=600)
    return states


def free_ports(count: int) -> list[int]:
    probes = [socket.socket() for _ in range(count)]
    try:
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]
    finally:
        for probe in probes:
            probe.close()


def is_dead_raylet(pid: int) -> bool:
    """One that has given up: `ray start` goes on waiting for it."""
    with contextlib.suppress(OSError):
        return "(raylet) Z" in Path(f"/proc/{pid}/stat").read_text(errors="replace")
    return False


def children(pid: int) -> list[int]:
    """Direct ones."""
    return [other for other, (parent, _) in _processes().items() if parent == pid]


def processes_with(word: str) -> list[int]:
    """Of which the command line has `word` in it."""
    return [pid for pid, (_, line) in _processes().items() if word in line and pid != os.getpid()]


def _processes() -> dict[int, tuple[int, str]]:
    """Process id → parent and command line."""
    seen = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                stat = (entry / "stat").read_text(errors="replace")
                seen[int(entry.name)] = (int(stat.rpartition(")")[2].split()[1]), line)
    return seen


def wait_for(path: Path, patience: float = 240.0) -> None:
    until(path.exists, str(path), patience)
