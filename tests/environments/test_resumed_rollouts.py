# SPDX-License-Identifier: Apache-2.0
"""A rollout that a kill interrupted goes on with the steps that it had made, in a fresh container."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from tests.commands.running import rows_of
from tests.environments.images import own_containers
from tests.environments.tasks import turns_of
from tests.environments.test_bash_agent import evaluated, prepared

ONE = "++max_samples=1"
PATIENCE = 500.0


class Conversation:
    """Commands one after the other; the third is held back until the first run is killed."""

    def __init__(self, *commands: str) -> None:
        self._commands = commands
        self.released = threading.Event()
        self.turns: list[int] = []

    def __call__(self, body: dict[str, Any]) -> str:
        turn = turns_of(body)
        self.turns.append(turn)
        if turn == 2:
            self.released.wait(PATIENCE)
        return f"```bash\n{self._commands[turn]}\n```"


def killed_at_the_third(folder: Path, tasks: Path, conversation: Conversation, fake_server: Any) -> dict[str, Any]:
    """The record of the run that goes on."""
    server = fake_server(answer=conversation)
    env = prepared(folder, tasks)
    command = (
        f"-m newskills eval --benchmarks=./bugs.py ++agent=bash --server_type=vllm --model=fake --output_dir=results "
        f"++environment.engine=podman --server_address={server.base_url} {ONE}"
    )
    with (folder / "said.txt").open("wb") as said:
        words = [sys.executable, *command.split()]
        process = subprocess.Popen(words, cwd=folder, env={**os.environ, **env}, stdout=said, stderr=said)
    until = time.monotonic() + PATIENCE
    while process.poll() is None and 2 not in conversation.turns and time.monotonic() < until:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    conversation.released.set()
    evaluated(folder, env, server.base_url, ONE)
    assert own_containers() == []
    (record,) = rows_of(folder / "results/eval-results/bugs/output.jsonl")
    assert not (folder / "results/eval-results/bugs/unfinished-rollouts").exists()
    return record


@pytest.mark.slow
def test_steps_are_not_asked_for_again(agent_tasks: Path, tmp_path: Path, fake_server: Any) -> None:
    conversation = Conversation("echo x > new.txt", "cat new.txt", "echo y >> new.txt", "echo SUBMIT_CHANGES")
    record = killed_at_the_third(tmp_path, agent_tasks, conversation, fake_server)
    assert sorted(conversation.turns) == [0, 1, 2, 2, 3]
    assert record["resumed_steps"] == 2
    assert [step["command"] for step in record["steps"]][:2] == ["echo x > new.txt", "cat new.txt"]
    assert "+x\n+y" in record["model_patch"]
    assert record["exit_status"] == "submitted"


@pytest.mark.slow
def test_other_outputs_begin_anew(agent_tasks: Path, tmp_path: Path, fake_server: Any) -> None:
    conversation = Conversation("date +%s%N", "echo x > new.txt", "echo y >> new.txt", "echo SUBMIT_CHANGES")
    record = killed_at_the_third(tmp_path, agent_tasks, conversation, fake_server)
    assert sorted(conversation.turns) == [0, 0, 1, 1, 2, 2, 3]
    assert record["began_anew"] == "step 1: a command has another output than before"
    assert "resumed_steps" not in record
    assert record["num_steps"] == 4
    assert "+x\n+y" in record["model_patch"]
