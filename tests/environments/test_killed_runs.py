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
from tests.commands.running import ns, rows_of
from tests.environments.small_tasks import REPLY, small_tasks
from tests.environments.tasks import turns_of
from tests.environments.test_bash_agent import prepared

from newskills.environments.owners import LABEL, is_left_over

KILLS = 2
MOMENTS = int(os.environ.get("NEWSKILLS_TEST_KILLS", "3"))
"""How often the run of many tasks is killed while it works; 50 takes minutes."""
TASKS = 20
PATIENCE = 500.0


def run(folder: Path, env: dict[str, str], url: str, benchmark: str = "bugs") -> subprocess.Popen[bytes]:
    command = (
        f"-m newskills eval --benchmarks=./{benchmark}.py ++agent=bash --server_type=vllm --model=fake "
        "--output_dir=results ++environment.engine=podman ++environment.at_once=4 "
        f"--server_address={url}"
    )
    with (folder / "said.txt").open("ab") as said:
        words = [sys.executable, *command.split()]
        return subprocess.Popen(words, cwd=folder, env={**os.environ, **env}, stdout=said, stderr=said)


def left_over() -> list[str]:
    words = ["podman", "ps", "--all", f"--filter=label={LABEL}", "--format={{.Names}}"]
    shown = subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()
    return [name for name in shown if is_left_over(name)]


@pytest.mark.slow
def test_kill_9(agent_tasks: Path, tmp_path: Path, fake_server: Any) -> None:
    moments = random.Random(16)
    commands = ("echo x > new.txt", "sleep 1", "echo SUBMIT_CHANGES")
    server = fake_server(answer=lambda body: f"```bash\n{commands[min(turns_of(body), 2)]}\n```")
    env = prepared(tmp_path, agent_tasks)
    for _ in range(KILLS):
        before = len(server.records)
        process = run(tmp_path, env, server.base_url)
        until = time.monotonic() + PATIENCE
        wanted = before + moments.randint(1, 6)
        while process.poll() is None and len(server.records) < wanted and time.monotonic() < until:
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
        process.wait()
    last = run(tmp_path, env, server.base_url)
    assert last.wait(PATIENCE) == 0, (tmp_path / "said.txt").read_text()
    records = rows_of(tmp_path / "results/eval-results/bugs/output.jsonl")
    assert len({record["id"] for record in records}) == len(records) == 3
    assert all(record["outcome"] == "wrong" and "new.txt" in record["model_patch"] for record in records)
    assert left_over() == []


@pytest.mark.slow
def test_kill_9_at_random_moments_of_twenty_tasks(agent_image: str, tmp_path: Path, fake_server: Any) -> None:
    moments = random.Random(50)
    small_tasks(tmp_path, TASKS, agent_image)
    env = {"NEWSKILLS_DATA_DIR": str(tmp_path / "data")}
    assert ns("ns prepare_data ./small.py", cwd=tmp_path, env=env).returncode == 0
    server = fake_server(answer=lambda body: REPLY.format(seconds=1))
    kills = 0
    while kills < MOMENTS:
        before = len(server.records)
        process = run(tmp_path, env, server.base_url, "small")
        until = time.monotonic() + PATIENCE
        wanted = before + moments.randint(1, 4)
        while process.poll() is None and len(server.records) < wanted and time.monotonic() < until:
            time.sleep(0.02)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(moments.uniform(0.0, 1.5))
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            process.wait()
            kills += 1
            continue
        _check_small(tmp_path)
        shutil.rmtree(tmp_path / "results")  # begin anew, so that all kills hit work
    last = run(tmp_path, env, server.base_url, "small")
    assert last.wait(PATIENCE) == 0, (tmp_path / "said.txt").read_text()
    _check_small(tmp_path)


def _check_small(folder: Path) -> None:
    records = rows_of(folder / "results/eval-results/small/output.jsonl")
    assert [record["id"] for record in records] == [f"task-{number:02}" for number in range(TASKS)]
    assert {record["outcome"] for record in records} == {"correct"}
    assert left_over() == []
