# SPDX-License-Identifier: Apache-2.0
"""A rollout that a kill interrupted goes on with the steps that it had made, in a fresh container."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from tests.environments.images import own_containers
from tests.environments.small_tasks import evaluated, prepared_small_tasks, records_of, task_number
from tests.environments.tasks import turns_of
from tests.environments.test_killed_runs import PATIENCE, Run
from tests.server.script import Fault, Script

HELD = "second"
"""What the second command prints; requests that show it have no reply until the first run is killed."""
SAME = ("echo x > new.txt", f"cat new.txt; echo {HELD}", "echo y >> new.txt", "echo SUBMIT_CHANGES")
DIFFERENT = ("date +%s%N", f"echo x > new.txt; echo {HELD}", "echo y >> new.txt", "echo SUBMIT_CHANGES")


@pytest.mark.nightly
@pytest.mark.slow
def test_the_same_outputs_go_on_and_others_begin_anew(agent_image: str, tmp_path: Path, fake_server: Any) -> None:
    commands = (SAME, DIFFERENT)
    answered: list[list[int]] = [[], []]

    def answer(body: dict[str, Any]) -> str:
        number, turn = task_number(body), turns_of(body)
        answered[number].append(turn)
        return f"```bash\n{commands[number][turn]}\n```"

    server = fake_server(Script(faults=(Fault(kind="hang", marker=HELD),)), answer=answer)
    env = prepared_small_tasks(tmp_path, 2, agent_image)
    run = Run(tmp_path, env, server.base_url)
    until = time.monotonic() + PATIENCE
    while run.process.poll() is None and time.monotonic() < until:
        if sum(HELD in record.prompt for record in server.records) == 2:
            break
        time.sleep(0.05)
    assert run.kill(), (tmp_path / "said.txt").read_text()
    server.script = Script()
    evaluated(tmp_path, env, server.base_url)
    assert own_containers() == run.containers() == []
    assert not (tmp_path / "results/eval-results/small/unfinished-rollouts").exists()
    same, different = records_of(tmp_path)
    assert answered == [[0, 1, 2, 3], [0, 1, 0, 1, 2, 3]]
    assert [step["command"] for step in same["steps"]] == list(SAME)
    assert same["resumed_steps"] == 2
    assert different["began_anew"] == "step 1: a command has another output than before"
    assert "resumed_steps" not in different
    assert different["num_steps"] == 4
    for record in (same, different):
        assert "+x\n+y" in record["model_patch"]
        assert record["exit_status"] == "submitted"
