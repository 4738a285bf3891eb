# SPDX-License-Identifier: Apache-2.0
"""Samples whose agent does its worst: each says what happened, and none costs the others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.environments.images import FLOOD_MB, own_containers
from tests.environments.small_tasks import evaluated, prepared_small_tasks, records_of, task_number
from tests.environments.tasks import turns_of

Hostile = tuple[tuple[str, str, str], ...]
"""What the agent does first, how that command ends, and what becomes of the sample."""
ENDLESS: Hostile = (
    ("sleep 600", "timeout", "correct"),
    ("f() { f | f & }; f; sleep 600", "timeout", "correct"),
)
ENDING: Hostile = (
    ("dd if=/dev/zero of=/big bs=1M count=100000; sleep 600", "disk_full", "correct"),
    ("kill -9 -1; sleep 600", "completed", "correct"),
    (f"yes 0123456789 | dd bs=1M count={FLOOD_MB} iflag=fullblock 2>/dev/null", "completed", "correct"),
    ("rm -rf /bin", "completed", "no_answer"),
    ("true", "completed", "correct"),
)
LIMITS = ("++environment.disk_mb=128", "++environment.memory_mb=512", "++environment.processes=64")


def ended(folder: Path, image: str, fake_server: Any, hostile: Hostile, *more: str) -> list[dict[str, Any]]:
    """The records of samples that begin with the commands of `hostile`, which end as these say. Then the agent solves
    the task, as often as the machine is too slow for it."""

    def answer(body: dict[str, Any]) -> str:
        commands = (hostile[task_number(body)][0], "echo x > new.txt; echo SUBMIT_CHANGES")
        return f"```bash\n{commands[min(turns_of(body), 1)]}\n```"

    env = prepared_small_tasks(folder, len(hostile), image)
    evaluated(folder, env, fake_server(answer=answer).base_url, *LIMITS, *more)
    assert own_containers() == []
    records = records_of(folder)
    ends = [(record["steps"][0]["command"], record["steps"][0]["status"], record["outcome"]) for record in records]
    assert ends == list(hostile)
    return records


@pytest.mark.nightly
@pytest.mark.slow
def test_commands_that_never_end_cost_only_themselves(agent_image: str, tmp_path: Path, fake_server: Any) -> None:
    ended(tmp_path, agent_image, fake_server, ENDLESS, "++agent_config.command_timeout=4", "++agent_max_turns=40")


@pytest.mark.nightly
@pytest.mark.slow
def test_each_sample_says_what_happened_and_the_others_go_on(
    agent_image: str, tmp_path: Path, fake_server: Any
) -> None:
    records = ended(tmp_path, agent_image, fake_server, ENDING, "++agent_max_turns=3")
    assert records[2]["steps"][0]["output_bytes"] == FLOOD_MB << 20
    assert "git does not work any more" in records[3]["no_patch_because"]
