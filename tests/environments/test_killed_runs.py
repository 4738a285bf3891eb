# SPDX-License-Identifier: Apache-2.0
"""A run of agents that is killed at any moment: the same command goes on, every task once, no container stays."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.environments.images import ENGINE
from tests.environments.small_tasks import prepared_small_tasks, records_of
from tests.environments.tasks import turns_of

from newskills.environments.owners import LABEL

MOMENTS = int(os.environ.get("NEWSKILLS_TEST_KILLS", "50"))
"""How often the run is killed while it works; 50 takes minutes."""
TASKS = 20 if MOMENTS > 9 else 5
PATIENCE = 500.0
COMMANDS = ("echo x > new.txt", "sleep 0.2; cat new.txt", "echo SUBMIT_CHANGES")


class Run:
    """`ns eval` in a process of its own."""

    def __init__(self, folder: Path, env: dict[str, str], url: str) -> None:
        command = (
            "-m newskills eval --benchmarks=./small.py ++agent=bash --server_type=vllm --model=fake "
            f"--output_dir=results ++environment.engine={ENGINE} ++environment.at_once=4 "
            f"--server_address={url}"
        )
        with (folder / "said.txt").open("ab") as said:
            words = [sys.executable, *command.split()]
            self.process = subprocess.Popen(words, cwd=folder, env={**os.environ, **env}, stdout=said, stderr=said)

    def kill(self) -> bool:
        """Whether it was still at work."""
        if self.process.poll() is not None:
            return False
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        return True

    def containers(self) -> list[str]:
        """Names of its containers that are there."""
        words = [ENGINE, "ps", "--all", f"--filter=label={LABEL}", "--format={{.Names}}"]
        shown = subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()
        return [name for name in shown if f".{self.process.pid}." in name]


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.timeout(600 + 60 * MOMENTS)
def test_kill_9_at_random_moments(agent_image: str, tmp_path: Path, fake_server: Any) -> None:
    moments = random.Random(50)
    env = prepared_small_tasks(tmp_path, TASKS, agent_image)
    server = fake_server(answer=lambda body: f"```bash\n{COMMANDS[min(turns_of(body), 2)]}\n```")
    runs: list[Run] = []
    kills = 0
    while kills < MOMENTS:
        wanted = len(server.records) + moments.randint(1, 6)
        run = Run(tmp_path, env, server.base_url)
        runs.append(run)
        until = time.monotonic() + PATIENCE
        while run.process.poll() is None and len(server.records) < wanted and time.monotonic() < until:
            time.sleep(0.02)
        with contextlib.suppress(subprocess.TimeoutExpired):
            run.process.wait(moments.uniform(0.0, 1.0))
        if run.kill():
            kills += 1
            continue
        _check(tmp_path, runs)
        shutil.rmtree(tmp_path / "results")  # begin anew, so that all kills hit work
    last = Run(tmp_path, env, server.base_url)
    assert last.process.wait(PATIENCE) == 0, (tmp_path / "said.txt").read_text()
    _check(tmp_path, [*runs, last])


def _check(folder: Path, runs: list[Run]) -> None:
    records = records_of(folder)
    assert [record["id"] for record in records] == [f"task-{number:02}" for number in range(TASKS)]
    assert {record["outcome"] for record in records} == {"correct"}
    assert all(record["num_steps"] == len(COMMANDS) and "new.txt" in record["model_patch"] for record in records)
    assert [run.containers() for run in runs] == [[] for _ in runs]
