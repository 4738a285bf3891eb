# SPDX-License-Identifier: Apache-2.0
"""Rules of agents, ours and one of another distribution, from the command line to the record."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.commands.running import ns, rows_of
from tests.environments.images import ENGINE, own_containers
from tests.environments.small_tasks import SOLUTION, prepared_small_tasks
from tests.environments.tasks import texts_of
from tests.plugins.installed import variables

from newskills.base.registry import fold
from newskills.solve.agents.rollout import AGENTS

SOLVED = {
    "bash": "```bash\necho x > new.txt; echo SUBMIT_CHANGES\n```",
    "one-patch": f"Here it is:\n\n```diff\n{SOLUTION}```\n",
}
"""Agent → the reply with which it solves any of the small tasks."""

pytestmark = pytest.mark.usefixtures("plugged")


@pytest.mark.parametrize("name", SOLVED)
def test_a_task_is_solved_recorded_and_not_asked_twice(
    name: str, agent_image: str, tmp_path: Path, fake_server: Any, example: Path
) -> None:
    env = {**prepared_small_tasks(tmp_path, 2, agent_image), **variables(example)}
    server = fake_server(answer=lambda body: SOLVED[name])
    line = (
        f"ns eval --benchmarks=./small.py ++agent={fold(name)} --server_type=vllm --server_address={server.base_url} "
        f"--model=fake --output_dir=results ++environment.engine={ENGINE}"
    )
    done = ns(line, cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    assert own_containers() == []
    records = rows_of(tmp_path / "results/eval-results/small/output.jsonl")
    assert [record["outcome"] for record in records] == ["correct"] * 2
    for record in records:
        assert record["agent"] == f"{name}@{AGENTS.get(name).version}"
        assert record["exit_status"] == "submitted"
        assert (record["num_steps"], record["steps"][0]["exit_code"]) == (1, 0)
        assert record["model_patch"] == SOLUTION.replace(
            "new file mode 100644\n", "new file mode 100644\nindex 0000000..587be6b\n"
        )
        assert "new.txt is missing" in json.dumps(record["conversation"][:2])
        assert record["num_generated_tokens"] > 0
    asked = len(server.records)
    assert asked == 2
    assert "new.txt is missing" in texts_of(server.records[0].body)
    again = ns(line, cwd=tmp_path, env=env)
    assert again.returncode == 0, again.stderr
    assert len(server.records) == asked


@pytest.mark.parametrize("name", SOLVED)
def test_its_settings_are_checked_before_any_request(
    name: str, agent_image: str, tmp_path: Path, fake_server: Any, example: Path
) -> None:
    env = {**prepared_small_tasks(tmp_path, 1, agent_image), **variables(example)}
    server = fake_server(answer=lambda body: SOLVED[name])
    line = (
        f"ns eval --benchmarks=./small.py ++agent={name} --server_type=vllm --server_address={server.base_url} "
        f"--model=fake --output_dir=results ++environment.engine={ENGINE} ++agent_config.no_such_key=1"
    )
    done = ns(line, cwd=tmp_path, env=env)
    assert done.returncode != 0
    assert f"agent_config of agent '{name}'" in done.stderr
    assert "no_such_key" in done.stderr
    assert server.records == []


def test_names_are_those_of_the_table_and_of_the_distribution() -> None:
    assert set(SOLVED) | {"mini-swe-agent", "swe-agent", "openhands"} == set(AGENTS.names())
