# SPDX-License-Identifier: Apache-2.0
"""Rollouts of NeMo Gym 0.7.0 become records of ours. Those in the folder nemo_gym are of `gym eval run` on a server of
`ns serve_gym`; failures have the fields that its `_agent_request_failure_row` writes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.commands.running import rows_of, write
from tests.exchange.imported import imported, only

from newskills.base.errors import DataError

FOLDER = Path(__file__).parent / "nemo_gym"
FAILED = {
    "_ng_failure_class": "agent_request_failed",
    "_ng_failure_type": "ClientResponseError",
    "_ng_failure_message": "503, message='Service Unavailable'",
    "_ng_failure_http_status": 503,
    "_ng_failure_response_body": None,
    "_ng_task_index": 4,
    "_ng_rollout_index": 0,
    "agent_ref": {"name": "gsm8k_simple_agent"},
}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run of five tasks: right, wrong, masked, failed twice, never collected."""
    shutil.copytree(FOLDER, tmp_path / "run")
    write(tmp_path / "run/rollouts_failures.jsonl", [{**FAILED, "_ng_failure_class": "cancelled"}, FAILED])
    return tmp_path / "run"


def test_a_run_becomes_records(run: Path, tmp_path: Path) -> None:
    metrics = imported(run, tmp_path / "out")
    ((_, modes),) = metrics.items()
    assert modes["pass@1"]["accuracy"] == 50.0
    right, wrong, masked, failed, absent = rows_of(tmp_path / "out/eval-results/gsm8k/output.jsonl")
    assert (right["id"], right["outcome"], right["reward"]) == ("gsm8k-test-0", "correct", 1.0)
    assert right["expected_answer"] == "18"
    assert right["generation"] == r"The answer is \boxed{18}."
    assert [message["role"] for message in right["conversation"]] == ["user", "assistant"]
    assert (right["num_generated_tokens"], right["problem"][:12]) == (4, "Janet’s duck")
    assert wrong["outcome"] == "no_answer"
    assert (masked["outcome"], masked["outcome_cause"]) == ("unscored", "environment")
    assert "the record has no expected_answer" in masked["why"]
    assert failed["why"] == "agent_request_failed: 503, message='Service Unavailable'"
    assert failed["id"] == "gsm8k-test-4"
    assert failed["problem"].startswith("Every day, Wendi")
    assert (absent["id"], absent["outcome_cause"]) == ("gsm8k-test-7", "harness")


def rollout(task: int, repeat: int, reward: float, **fields: Any) -> dict[str, Any]:
    text = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": f"{reward}"}]}
    return {
        "responses_create_params": {"input": f"Task {task}?"},
        "response": {"model": "m", "output": [text], "incomplete_details": {"reason": "max_output_tokens"}},
        "reward": reward,
        "_ng_task_index": task,
        "_ng_rollout_index": repeat,
        "agent_ref": {"name": "sums_agent"},
        **fields,
    }


def test_repeats_become_seeds_and_rewards_partial_credit(tmp_path: Path) -> None:
    rows = [
        rollout(task, repeat, reward) for task, repeat, reward in ((0, 0, 0.25), (0, 1, 3), (1, 1, -1), (1, 0, 1))
    ]
    write(tmp_path / "x.jsonl", rows)
    made = only(tmp_path / "x.jsonl")
    assert made.benchmark == "sums"
    assert made.origin["model"] == "m"
    assert [[row["is_correct"] for row in made.seeds[seed]] for seed in (0, 1)] == [[0.25, True], [True, False]]
    assert made.seeds[1][1]["reward"] == -1
    assert made.seeds[0][0]["finish_reason"] == "length"


def test_files_of_seeds_become_seeds(tmp_path: Path) -> None:
    for seed in (2, 5):
        write(tmp_path / f"run/rollouts-rs{seed}.jsonl", [rollout(0, 0, seed == 5)])
    made = only(tmp_path / "run")
    assert {seed: rows[0]["is_correct"] for seed, rows in made.seeds.items()} == {2: False, 5: True}


def test_rollouts_that_name_no_task_are_repeats_where_they_ask_the_same(tmp_path: Path) -> None:
    rows = [rollout(task, 0, task) for task in (0, 1, 0)]
    for row in rows:
        del row["_ng_task_index"], row["_ng_rollout_index"]
    write(tmp_path / "x.jsonl", rows)
    made = only(tmp_path / "x.jsonl")
    assert {seed: [row["id"] for row in made.seeds[seed]] for seed in made.seeds} == {0: ["0", "1"], 1: ["0", "1"]}
    assert made.seeds[1][1]["outcome"] == "unscored"


def test_trajectories_add_sub_agents_and_what_failed_rollouts_did(tmp_path: Path) -> None:
    def invocation(name: str, text: str) -> dict[str, Any]:
        return {"invocation_id": name, "conversation": [{"role": "user", "content": text}]}

    trajectory = {
        "schema_version": "1.0",
        "invocations": [invocation("root", "Plan it."), invocation("child", "Do it.")],
        "tool_calls": [{"tool_name": "f", "status": "completed"}],
    }
    failed = rollout(1, 0, 0, ng_trajectory=trajectory, _ng_failure_class="judge_failed", failure_reason="away")
    del failed["response"]
    write(tmp_path / "x.jsonl", [rollout(0, 0, 1, ng_trajectory=trajectory)])
    write(tmp_path / "x_failures.jsonl", [failed])
    ((whole, lost),) = only(tmp_path / "x.jsonl").seeds.values()
    assert whole["conversation"][0]["content"] == "Task 0?"
    assert whole["subagents"] == [[{"role": "user", "content": "Do it."}]]
    assert whole["num_tool_calls"] == 1
    assert lost["conversation"] == [{"role": "user", "content": "Plan it."}]
    assert (lost["outcome_cause"], lost["why"]) == ("judge", "judge_failed: away")


def test_bad_rollouts(tmp_path: Path) -> None:
    write(tmp_path / "x.jsonl", [rollout(0, 0, 1), {"reward": 1}])
    with pytest.raises(DataError, match="a row has no `responses_create_params`"):
        only(tmp_path / "x.jsonl")
    write(tmp_path / "x.jsonl", [rollout(0, 0, 1), rollout(0, 0, 0)])
    with pytest.raises(DataError, match="two different records of sample '0'"):
        only(tmp_path / "x.jsonl")
    odd = {"output": [{"type": "hologram"}]}
    write(tmp_path / "x.jsonl", [rollout(0, 0, float("nan"), response=odd)])
    made = only(tmp_path / "x.jsonl")
    assert made.notes == ["Conversations are left out: input: items of type 'hologram' are not supported."]
    assert made.seeds[None][0]["outcome"] == "unscored"
    with (tmp_path / "x.jsonl").open("w") as file:
        file.write(f"{json.dumps(rollout(0, 0, 1))}\n" + '{"responses_create_params": {')
    assert "incomplete" in only(tmp_path / "x.jsonl").notes[0]
