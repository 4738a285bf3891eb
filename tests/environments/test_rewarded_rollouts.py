# SPDX-License-Identifier: Apache-2.0
"""`ns serve_rewards` judges what agents did: tests run in containers, rewards of environments are taken as they are."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Any

from tests.commands.rewarding import rewards
from tests.environments.images import by_first_engine, own_containers
from tests.environments.small_tasks import small_tasks

from newskills.benchmarks.agent_tasks import task_rows

PATIENCE = 500.0


def judged(folder: Path, grader: str, items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The verdicts of a server, in order."""
    with rewards(folder, f"--grader={grader}") as server:
        body = json.dumps({"items": items}).encode()
        request = urllib.request.Request(f"{server.url}/v1/rewards", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=PATIENCE) as reply:
            verdicts: list[dict[str, Any]] = json.loads(reply.read())["items"]
    return verdicts


@by_first_engine
def test_patches_are_rewarded_by_their_tests(agent_image: str, tmp_path: Path) -> None:
    small_tasks(tmp_path, 1, agent_image)
    row = next(task_rows(tmp_path / "tasks"))
    gold = row.pop("patch")
    items = [
        {**row, "generation": "Done.", "model_patch": gold},
        {**row, "generation": f"The change:\n```diff\n{gold}```"},
        {**row, "generation": "I cannot.", "model_patch": ""},
    ]
    verdicts = judged(tmp_path, "software_tests", items)
    assert [(item["outcome"], item["reward"]) for item in verdicts] == [
        ("correct", 1.0),
        ("correct", 1.0),
        ("no_answer", 0.0),
    ]
    assert own_containers() == []


def test_rewards_of_environments(tmp_path: Path) -> None:
    items: list[dict[str, Any]] = [
        {"generation": "a", "reward": 1.0},
        {"generation": "b", "reward": 0.25},
        {"generation": "c", "reward": None, "exit_status": "context"},
    ]
    verdicts = judged(tmp_path, "environment_reward", items)
    assert [item["outcome"] for item in verdicts] == ["correct", "wrong", "no_answer"]
