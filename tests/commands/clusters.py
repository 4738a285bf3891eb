# SPDX-License-Identifier: Apache-2.0
"""What the tests of `ns` on clusters share: configs, a benchmark, and waiting for experiments."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from pathlib import Path

from tests.commands.running import ns
from tests.launch.slurm_cluster import queued
from tests.server import Answer, FakeServerProcess, Latency, Script

from newskills.launch.experiments import Experiment, ExperimentRecords, has_ended
from newskills.launch.submit import executor_of

SUMS = [{"id": f"s{n}", "problem": f"Add {n} and {n}.", "expected_answer": str(2 * n)} for n in range(10)]
RIGHT = {row["problem"]: row["expected_answer"] for row in SUMS}
BENCHMARK = """
from newskills.base.benchmark import Benchmark

def rows(split):
    for n in range(10):
        yield {"id": f"s{n}", "problem": f"Add {n} and {n}.", "expected_answer": str(2 * n)}

BENCHMARK = Benchmark(
    name="own-sums", category="math-natural", title="Sums", generate_rows=rows, prompt="generic/math",
    grader="math", metric="math", samples=0,
)
"""
SERVED = Path(__file__).with_name("served.py")


class Place:
    """A folder with a benchmark, `cluster_configs/`, and records of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env = {
            "NEWSKILLS_EXPERIMENTS_DIR": str(folder / "experiments"),
            "NEWSKILLS_DATA_DIR": str(folder / "data"),
        }
        (folder / "sums.py").write_text(BENCHMARK)
        done = self.ns("ns prepare_data ./sums.py")
        assert done.returncode == 0, done.stderr

    def config(self, name: str, text: str) -> None:
        (self.folder / "cluster_configs").mkdir(exist_ok=True)
        (self.folder / "cluster_configs" / f"{name}.yaml").write_text(f"{text}\njob_dir: {self.folder}/jobs\n")

    def ns(self, line: str, *more: str, **options: object) -> subprocess.CompletedProcess[str]:
        return ns(line, *more, cwd=self.folder, env=self.env, **options)

    def experiments(self, name: str) -> list[Experiment]:
        """The latest first."""
        return ExperimentRecords(self.env).all_of(name)

    def ended(self, name: str, patience: float = 240.0) -> dict[str, str]:
        """Job → state, once all have ended."""
        experiment = self.experiments(name)[0]
        executor = executor_of(experiment, {**os.environ, **self.env})
        deadline = time.monotonic() + patience
        while True:
            states = executor.state(experiment.handles)
            if all(map(has_ended, states.values())):
                return {job.name: states[job.handle] for job in experiment.jobs}
            if queued(states):
                deadline = time.monotonic() + patience
            assert time.monotonic() < deadline, (states, self.logs(name))
            time.sleep(0.2)

    def logs(self, name: str) -> str:
        """Of all its jobs, for messages of failing tests."""
        folders = [Path(job.logs) for job in self.experiments(name)[0].jobs]
        files = [file for folder in folders for file in sorted(folder.glob("*.log"))]
        return "".join(f"== {file}\n{file.read_text(errors='replace')}" for file in files)


def answers(latency: float = 0.0) -> Script:
    """Right ones."""
    return Script(answer=Answer(kind="table", table=RIGHT), latency=Latency(fixed=latency))


def own_address() -> str:
    """Of this machine, as nodes of the Slurm cluster reach it."""
    shown = subprocess.run(["scontrol", "show", "node", "-o"], capture_output=True, text=True, check=True).stdout
    node = next(word.partition("=")[2] for word in shown.split() if word.startswith("NodeAddr="))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((node, 1))
        address: str = probe.getsockname()[0]
        return address


def reachable_server(script: Script) -> FakeServerProcess:
    return FakeServerProcess(script, host=own_address())
