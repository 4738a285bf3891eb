# SPDX-License-Identifier: Apache-2.0
"""Jobs and places that the tests of this room share."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from newskills.base.plan import Command, CommandGroup, Job, Ready, Ref, Script, Word
from newskills.launch.clusters.config import ClusterConfig
from newskills.launch.executors.none import Processes
from newskills.launch.place import JobFolder, Site, Variable


class TwoGroups:
    """A place with something in each slot of the job script, as Slurm has."""

    cluster = ClusterConfig(name="two")

    def header(self, job: Job, folder: JobFolder) -> Sequence[str]:
        return ("#SBATCH --job-name=" + job.name, "#SBATCH --open-mode=append")

    def prologue(self, job: Job, folder: JobFolder) -> Sequence[str]:
        return ("export NODE_0=n1", "export NODE_1=n2")

    def step(self, job: Job, group: int, command: Command, folder: JobFolder) -> Sequence[str | Variable]:
        return ("srun", f"--het-group={group}", "--nodelist", Variable(f"NODE_{group}"), "--chdir=/with space")

    def environment(self, command: Command) -> Mapping[str, str]:
        return {"HF_HOME": "/hf", "GREETING": "it's fine"}

    def workdir(self, command: Command, folder: JobFolder) -> str:
        return command.workdir or "/nemo_run/code"

    def host(self, job: Job, group: int) -> str | Variable:
        return Variable("SLURMD_NODENAME")

    def first_node(self, job: Job, group: int) -> str | Variable:
        return Variable(f"NODE_{group}")

    def inside(self, command: Command, folder: JobFolder) -> Sequence[str]:
        return ('echo "$SLURM_JOB_ID.$SLURM_STEP_ID" >"$job_folder/$job_command.step"',)

    def signal(self, job: Job, folder: JobFolder) -> Sequence[str]:
        return ('scancel --signal="$1" "$(<"$job_folder/$2.step")"',)

    def out_of_time(self, job: Job, folder: JobFolder) -> Sequence[str]:
        return ('scontrol requeue "$SLURM_JOB_ID"',)


def python(code: str, *words: Word) -> tuple[Word, ...]:
    """argv of a small program; `-S` and `-E` make it start fast."""
    return (sys.executable, "-S", "-E", "-c", code, *words)


SERVER = """
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/health" else 404)
        self.end_headers()
    def log_message(self, *args): pass
print("serving", flush=True)
http.server.ThreadingHTTPServer((sys.argv[1], int(sys.argv[2])), Handler).serve_forever()
"""
"""argv: host, port."""


def server(
    name: str = "server", code: str = SERVER, *, patience: float = 20.0, port: int = 0, **more: object
) -> Command:
    argv = python(code, Ref(name, "host"), Ref(name, "port"))
    ready = Ready(path="/health", patience=patience)
    return Command(name=name, role="server", script=Script(argv=argv, port=port, ready=ready, **more))


def client(name: str, code: str, *words: Word, **more: object) -> Command:
    return Command(name=name, script=Script(argv=python(code, *words), **more))


def job(name: str, *commands: Command) -> Job:
    return Job(name=name, groups=(CommandGroup(name="all", commands=commands),))


def processes(folder: Path, *, environ: Mapping[str, str] | None = None, **cluster: object) -> Processes:
    site = Site(
        cluster=ClusterConfig(**cluster), folder=str(folder), environ=os.environ if environ is None else environ
    )
    return Processes(site)


def finished(executor: Processes, work: Job, after: Sequence[str] = ()) -> tuple[str, Path]:
    """Runs a job to its end: its state and folder."""
    handle = executor.submit(work, after=after)
    return executor.wait([handle])[handle], Path(handle)


def until(true: Callable[[], bool], what: str, patience: float = 240.0) -> None:
    deadline = time.monotonic() + patience
    while not true():
        assert time.monotonic() < deadline, f"waited {patience} s in vain: {what}"
        time.sleep(0.02)
