# SPDX-License-Identifier: Apache-2.0
"""Rollouts of `ns generate` become training data: those that the tests call right, with a loss on replies alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.commands.running import ns, rows_of, write
from tests.environments.images import ENGINE, own_containers
from tests.environments.small_tasks import small_tasks, task_number
from tests.environments.tasks import turns_of

from newskills.benchmarks.agent_tasks import task_rows

PATIENCE = 500.0


def test_right_rollouts_become_rows_with_masked_outputs(
    agent_image: str, tmp_path: Path, fake_server: Any
) -> None:
    small_tasks(tmp_path, 2, agent_image)
    write(tmp_path / "tasks.jsonl", [dict(row) for row in task_rows(tmp_path / "tasks")])

    def answer(body: dict[str, Any]) -> str:
        name = "new.txt" if task_number(body) == 0 else "wrong.txt"
        commands = (f"echo x > {name}; echo printed by a tool", "echo SUBMIT_CHANGES")
        return f"```bash\n{commands[min(turns_of(body), 1)]}\n```"

    made = ns(
        "ns generate --input_file=tasks.jsonl --output_dir=rollouts ++prompt_config=agents/bash "
        f"++solver=software_agent ++agent=bash ++eval_type=software_tests ++environment.engine={ENGINE} "
        f"--server_type=vllm --server_address={fake_server(answer=answer).base_url} --model=fake",
        cwd=tmp_path,
        timeout=PATIENCE,
    )
    assert made.returncode == 0, made.stdout + made.stderr
    assert own_containers() == []
    records = rows_of(tmp_path / "rollouts" / "output.jsonl")
    assert {record["id"]: record["outcome"] for record in records} == {"task-00": "correct", "task-01": "wrong"}
    done = ns(
        "ns prepare_training_data --config_name=agent_sft ++input_files=rollouts/output*.jsonl "
        "++output_path=train.jsonl",
        cwd=tmp_path,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (row,) = rows_of(tmp_path / "train.jsonl")
    assert {message["role"] for message in row["messages"] if message.get("weight")} == {"assistant"}
    assert all(message.get("weight") == 1 for message in row["messages"] if message["role"] == "assistant")
    shown = [message for message in row["messages"] if "printed by a tool" in message["content"]]
    assert [bool(message.get("weight")) for message in shown] == [True, False]
