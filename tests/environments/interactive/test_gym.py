# SPDX-License-Identifier: Apache-2.0
"""Tasks of NeMo Gym, from the command line to scores, on a server that keeps a counter for each session."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.commands.running import ns, rows_of
from tests.environments.interactive.gym_double import counter_row, counter_server
from tests.server import Answer, Script


def call(number: int, name: str, arguments: str) -> dict[str, Any]:
    return {"id": f"c{number}", "type": "function", "function": {"name": name, "arguments": arguments}}


ADDS = Script(
    answer=Answer(text="Done."),
    tool_turns=(
        (call(1, "increment_counter", '{"count": 2}'), call(2, "increment_counter", '{"count": 3}')),
        (call(3, "get_counter_value", "{}"),),
    ),
)


class Place:
    """A folder with tasks for the server at `url`, and a model at `model`."""

    def __init__(self, folder: Path, url: str, model: str) -> None:
        self.folder, self.url, self.model = folder, url, model
        self.env = {"NEWSKILLS_DATA_DIR": str(folder / "data")}

    def prepare(self, rows: list[Any]) -> Any:
        (self.folder / "tasks.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        return ns(f"ns prepare_data gym:{self.url} --rows=tasks.jsonl", cwd=self.folder, env=self.env)

    def eval(self, *more: str, samples: int = 0) -> Any:
        model = f"--server_type=vllm --server_address={self.model} --model=fake --output_dir=results"
        return ns(f"ns eval --benchmarks=gym:{self.url}:{samples} {model}", *more, cwd=self.folder, env=self.env)

    @property
    def records(self) -> list[dict[str, Any]]:
        (file,) = self.folder.glob("results/eval-results/*/output.jsonl")
        return rows_of(file)


def test_each_session_has_its_own_cookies(tmp_path: Path, fake_server: Any) -> None:
    with counter_server() as server:
        place = Place(tmp_path, server.url, fake_server(ADDS).base_url)
        made = place.prepare([counter_row(number) for number in range(60)])
        assert made.returncode == 0, made.stderr
        done = place.eval("++max_concurrent_requests=32")
        assert done.returncode == 0, done.stdout + done.stderr
        assert len(server.counters) == 60
        (body,) = (body for body in server.verified if body["initial_count"] == 7)
    assert [record["outcome"] for record in place.records] == ["correct"] * 60
    record = place.records[7]
    assert (record["num_tool_calls"], record["exit_status"], record["reward"]) == (3, "completed", 1.0)
    assert record["conversation"][-2]["content"] == '{"count": 12}'
    kinds = [item["type"] for item in body["response"]["output"]]
    turn = ["message", "function_call", "function_call", "function_call_output", "function_call_output"]
    assert kinds == [*turn, "message", "function_call", "function_call_output", "message"]
    assert body["response"]["output"][1]["arguments"] == '{"count": 2}'
    assert body["response"]["status"] == "completed"
    assert body["responses_create_params"]["tools"][0]["strict"] is True


def test_mistakes_of_the_model_are_told_as_gym_tells_them(tmp_path: Path, fake_server: Any) -> None:
    """It must not reach /verify as a tool, which would tell it its reward."""
    turns = (
        (call(1, "verify", "{}"), call(2, "increment_counter", "{count: 5}"), call(3, "increment_counter", "")),
    )
    with counter_server() as server:
        place = Place(
            tmp_path, server.url, fake_server(Script(answer=Answer(text="Hm."), tool_turns=turns)).base_url
        )
        place.prepare([counter_row(0)])
        assert place.eval().returncode == 0
        assert len(server.verified) == 1
    (record,) = place.records
    told = [message["content"] for message in record["conversation"] if message["role"] == "tool"]
    assert told[0] == '{"detail":"Not Found"}'
    why = "JSONDecodeError('Expecting property name enclosed in double quotes: line 1 column 2 (char 1)')"
    assert told[1] == json.dumps({"error": f"Invalid tool call arguments: {why}"})
    assert "Expecting value: line 1 column 1 (char 0)" in told[2]
    assert (record["outcome"], record["reward"]) == ("wrong", 0.0)


def test_what_the_server_cannot_measure_is_unscored(tmp_path: Path, fake_server: Any) -> None:
    masked = {"mask_sample": True, "failure_kind": "judge_failed", "failure_reason": "the judge is away"}
    rows = [
        counter_row(0, answer=masked),
        counter_row(1, status=500),
        counter_row(2, answer={"reward": None}),
        counter_row(3),
    ]
    with counter_server() as server:
        place = Place(tmp_path, server.url, fake_server(ADDS).base_url)
        place.prepare(rows)
        done = place.eval("++server.enable_soft_fail=true", "--accept_lost=100")
    assert done.returncode == 0, done.stdout + done.stderr
    lost = place.records[:3]
    assert [(record["outcome"], record["outcome_cause"]) for record in lost] == [("unscored", "environment")] * 3
    assert "judge_failed: the judge is away" in lost[0]["detailed_error"]
    assert "status 500" in lost[1]["detailed_error"]
    assert "not a number" in lost[2]["detailed_error"]
    assert place.records[3]["outcome"] == "correct"
    (figures,) = tmp_path.glob("results/eval-results/*/environment_metrics.json")
    assert json.loads(figures.read_text())["key_metrics"] == {"mean/reward": 1.0, "tasks": 1}
    (metrics,) = tmp_path.glob("results/eval-results/*/metrics.json")
    ((_, modes),) = json.loads(metrics.read_text()).items()
    assert modes["pass@1"]["accuracy"] == 100.0


def test_a_server_that_dies_loses_no_task(tmp_path: Path, fake_server: Any) -> None:
    """What it could not answer is asked of the next one."""
    with counter_server(dies_after=22) as server:
        place = Place(tmp_path, server.url, fake_server(ADDS).base_url)
        place.prepare([counter_row(number) for number in range(8)])
        first = place.eval("++max_concurrent_requests=2")
        port = server.server_port
    assert first.returncode == 1
    assert "did not answer" in first.stdout + first.stderr
    assert "does it still run?" in first.stdout + first.stderr
    with counter_server(port) as server:
        second = place.eval("++max_concurrent_requests=2")
        assert 0 < len(server.verified) < 8
    assert second.returncode == 0, second.stdout + second.stderr
    assert [record["outcome"] for record in place.records] == ["correct"] * 8


def test_figures_of_the_server_stand_beside_ours(tmp_path: Path, fake_server: Any) -> None:
    with counter_server() as server:
        place = Place(tmp_path, server.url, fake_server(ADDS).base_url)
        place.prepare([counter_row(0), counter_row(1, expected_count=0)])
        done = place.eval(samples=2)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "by its environment: mean/reward 0.5, tasks 2 (results/eval-results/" in " ".join(done.stdout.split())
    (figures,) = tmp_path.glob("results/eval-results/*/environment_metrics.json")
    seen = ["_ng_rollout_index", "_ng_task_index", "expected_count", "initial_count", "response", "reward"]
    assert json.loads(figures.read_text())["agent_metrics"]["seen"] == seen


def test_what_is_refused(tmp_path: Path) -> None:
    def refused(done: Any) -> str:
        assert done.returncode in (1, 2), done.stdout
        return " ".join((done.stdout + done.stderr).split())

    place = Place(tmp_path, "http://127.0.0.1:9", "")
    rows = [counter_row(1), {"question": "2+2?", "expected_answer": "4"}]
    said = refused(place.prepare(rows))
    assert "tasks.jsonl, line 2 is no task of NeMo Gym: it has no `responses_create_params`" in said
    assert "expected_answer, question" in said
    assert "input: items of type 'nonsense'" in refused(
        place.prepare([{"responses_create_params": {"input": [{"type": "nonsense"}]}}])
    )
    assert place.prepare([counter_row(1)]).returncode == 0
    assert "2 rows" in place.prepare([counter_row(1), counter_row(2)]).stdout  # a changed file is prepared again
    without = ns("ns prepare_data gym:http://127.0.0.1:9", cwd=tmp_path, env=place.env)
    assert "--rows=FILE" in refused(without)


@pytest.mark.nightly
@pytest.mark.local_model
def test_a_policy_is_rewarded_by_the_server(tmp_path: Path, small_model: Path) -> None:
    """The policy calls no tool: it is right where nothing was to be added."""
    rows = [counter_row(0, expected_count=0), counter_row(1, answer={"mask_sample": True})]
    for row in rows:
        del row["responses_create_params"]["tools"]  # the small model's template has none
    small = "++steps=1 ++batch_size=2 ++group_size=2 ++max_tokens=4 ++trainer.threads=1 ++held_out=0"
    with counter_server() as server:
        place = Place(tmp_path, server.url, "")
        assert place.prepare(rows).returncode == 0
        line = f"ns grpo --model={small_model} --benchmark=gym:{server.url} --split=test --allow_overlap"
        done = ns(f"{line} --output_dir=out {small}", cwd=tmp_path, env=place.env)
    assert done.returncode == 0, done.stdout + done.stderr
    responses = [reply for row in rows_of(tmp_path / "out/samples.jsonl") for reply in row["responses"]]
    assert sorted(str(reply["reward"]) for reply in responses) == ["1.0", "1.0", "None", "None"]


def test_generations_are_kept_with_their_rewards(tmp_path: Path, fake_server: Any) -> None:
    with counter_server() as server:
        place = Place(tmp_path, server.url, fake_server(ADDS).base_url)
        place.prepare([counter_row(0), counter_row(1, expected_count=0)])
        (prepared,) = tmp_path.glob("data/*/test.jsonl")
        words = f"--input_file={prepared} --output_dir=out --server_type=vllm --server_address={place.model}"
        solver = "--model=fake ++solver=nemo_gym ++prompt_format=openai ++eval_type=environment_reward"
        done = ns(f"ns generate {words} {solver}", cwd=tmp_path, env=place.env)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [record["outcome"] for record in rows_of(tmp_path / "out/output.jsonl")] == ["correct", "wrong"]
