# SPDX-License-Identifier: Apache-2.0
"""Runs one job on the node where Ray has placed it. Needs the standard library only: it runs in images of others."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path

from newskills import launch
from newskills.launch.ray.files import LIFE

SUPERVISOR = Path(launch.__file__).parent / "executors" / "supervisor.py"
POLL_SECONDS = 0.2
LOOK_AT_LIFE = 2.0
SIGNALS = {"stop": signal.SIGTERM, "out of time": signal.SIGUSR2, "end": signal.SIGUSR1}
"""What a supervisor that is attached understands."""


class JobRunner:
    """One life of a job. Its methods are called from several threads."""

    def __init__(self, folder: str, logs: str, life: int) -> None:
        self.folder, self.logs, self.life = folder, logs, life
        self._process: subprocess.Popen[bytes] | None = None
        self._early: list[str] = []
        self._lock = threading.Lock()

    def node(self) -> tuple[str, str]:
        """Return name and address of the node, once the job has its place."""
        import ray

        return socket.gethostname(), ray.util.get_node_ip_address()

    def run(self, variables: Mapping[str, str]) -> None:
        """Run the job in this thread, because the kernel ends the job with it; return when nothing of the job is
        left."""
        log = Path(self.logs, "job.log")
        log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        argv = [sys.executable, "-I", "-S", str(SUPERVISOR)]
        with log.open("ab") as output, self._lock:
            # It lets signals through when it knows what to do with them: earlier ones would end it at once.
            blocked = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS.values())
            try:
                self._process = subprocess.Popen(
                    [*argv, "--attached", self.folder, str(self.life), str(os.getpid())],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    env={**node_environment(os.environ), **variables},
                    start_new_session=True,
                )
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
            for word in self._early:
                self._process.send_signal(SIGNALS[word])
        looked = time.monotonic()
        while self._process.poll() is None:
            time.sleep(POLL_SECONDS)
            if time.monotonic() - looked > LOOK_AT_LIFE:
                looked = time.monotonic()
                if life_of(self.folder) > self.life:
                    self.tell("end")

    def tell(self, word: str) -> None:
        """Send one of SIGNALS to the job."""
        with self._lock:
            if self._process is None:
                self._early.append(word)
            elif self._process.poll() is None:
                self._process.send_signal(SIGNALS[word])


def life_of(folder: str) -> int:
    """Return the life that may run in `folder`; 0 where nothing can be read."""
    try:
        return int(Path(folder, LIFE).read_text("ascii"))
    except (OSError, ValueError):
        return 0


def node_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the node's variables for the job, without those that make a process part of this Ray cluster, and with
    this Python first in PATH."""
    kept = {name: value for name, value in environ.items() if not name.startswith("RAY_")}
    folders = [os.path.dirname(sys.executable), kept.get("PATH", os.defpath)]
    return {**kept, "PATH": os.pathsep.join(folders)}
