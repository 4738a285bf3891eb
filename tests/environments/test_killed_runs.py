# SPDX-License-Identifier: Apache-2.0
"""A run of agents that is killed at any moment: the same command goes on, every task once, no container stays."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.commands.running import rows_of
from tests.environments.tasks import turns_of
from tests.environments.test_bash_agent import prepared

from newskills.environments.owners import LABEL, is_left_over

KILLS = 2
PATIENCE = 500.0


def run(folder: Path, env: dict[str, str], url: str) -> subprocess.Popen[bytes]:
    command = (
        "-m newskills eval --benchmarks=./bugs.py ++agent=bash --server_type=vllm --model=fake --output_dir=results "
        f"++environment.engine=podman --server_address={url}"
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
