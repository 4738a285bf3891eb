# SPDX-License-Identifier: Apache-2.0
"""`ns serve_gym`: what NeMo Gym posts to it, and the folder that Gym starts it from."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.commands.rewarding import Rewards
from tests.commands.running import ns, rows_of
from tests.server import Answer, Script

TASKS = [
    {"id": "a", "problem": "What is 2 + 2?", "expected_answer": "4"},
    {"id": "b", "problem": "What is 3 + 4?", "expected_answer": "7"},
    {"id": "c", "problem": "What is 9 - 9?", "expected_answer": "0"},
]


class GymServed(Rewards):
    command, told = "serve_gym", "resources server at "


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GymServed]:
    server = GymServed(tmp_path_factory.mktemp("gym"), "--grader=math", "--workers=1")
    try:
        yield server
    finally:
        assert server.stop() == 0


def said(text: str, **fields: Any) -> dict[str, Any]:
    """A response as Gym's agents send it, after a call of a tool."""
    output = [
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": r"\boxed{1}?"}]},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "no"},
        {"type": "reasoning", "content": [{"type": "reasoning_text", "text": r"\boxed{2}"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]},
    ]
    return {"output": output, "usage": {"output_tokens": 7}, **fields}


def verified(served: GymServed, row: Any, prefix: str = "") -> dict[str, Any]:
    status, body, _ = served.call(f"{prefix}/verify", row)
    assert status == 200
    assert isinstance(body, dict)
    return body


def test_verdicts_are_those_of_the_grader(served: GymServed) -> None:
    row = {"responses_create_params": {"input": "?"}, "expected_answer": "4", "_ng_task_index": 3}
    right = verified(served, {**row, "response": said(r"So \boxed{4}.")})
    assert (right["reward"], right["mask_sample"], right["outcome"]) == (1.0, False, "correct")
    assert right["_ng_task_index"] == 3  # rows come back whole
    assert right["response"]["usage"] == {"output_tokens": 7}
    wrong = verified(served, {**row, "response": said(r"\boxed{5}")})
    assert (wrong["reward"], wrong["mask_sample"], wrong["predicted_answer"]) == (0.0, False, "5")


def test_what_cannot_be_graded_is_masked_and_never_an_error(served: GymServed) -> None:
    lost = verified(served, {"responses_create_params": {"input": "?"}, "response": said(r"\boxed{4}")})
    assert (lost["reward"], lost["mask_sample"], lost["failure_kind"]) == (0.0, True, "verifier_error")
    assert "expected_answer" in lost["failure_reason"]
    bodies: list[Any] = [
        {},
        {"response": None},
        {"response": {"output": [None, 3]}},
        [],
        b"no JSON",
        b"[" * 100_000,
    ]
    for body in bodies:
        answer = verified(served, body)
        assert answer["mask_sample"] is True, body
        assert answer["failure_reason"], body


def test_addresses_of_gym_are_answered(served: GymServed) -> None:
    row = {"response": said(r"\boxed{4}"), "expected_answer": "4"}
    assert verified(served, row, "/ng-rollout/3-0")["reward"] == 1.0
    assert verified(served, row, "/ng-rollout/3-0-a1/training-token-capture")["reward"] == 1.0
    assert served.call("/ng-rollout/3-0/seed_session", row)[:2] == (200, {})
    assert served.call("/close_session", {"resources_session_id": "x", "episode_id": "y"})[1] == {
        "resources_session_id": "x"
    }
    assert served.call("/reverify_mode")[:2] == (200, "stateless")
    assert served.call("/")[:2] == (200, {"status": "ok"})
    assert served.call("/some_tool", {})[:2] == (404, {"detail": "Not Found"})
    assert served.call("/verify", row, Origin="http://evil.example")[0] == 403


def test_masked_rows_do_not_count(served: GymServed) -> None:
    def row(task: int, reward: float, outcome: str, **fields: Any) -> dict[str, Any]:
        return {"_ng_task_index": task, "reward": reward, "outcome": outcome, "mask_sample": False, **fields}

    masked = {"mask_sample": True, "failure_kind": "verifier_error"}
    responses = [
        row(0, 1.0, "correct"),
        row(0, 0.0, "wrong"),
        row(1, 1.0, "correct"),
        row(1, 0.0, "unscored", **masked),
        row(2, 0.0, "unscored", **masked),
    ]
    status, body, _ = served.call("/aggregate_metrics", {"verify_responses": responses})
    assert status == 200
    metrics = body["agent_metrics"]
    assert metrics["mean/reward"] == pytest.approx(2 / 3)
    assert metrics["pass@1[avg-of-2]/accuracy"] == pytest.approx(75)  # of two problems, one and a half
    assert (metrics["num_scored"], metrics["num_masked"], metrics["masked/verifier_error"]) == (3, 2, 2)
    assert body["key_metrics"]["num_masked"] == 2
    assert body["group_level_metrics"][2] == {"_ng_task_index": 2}
    assert served.call("/aggregate_metrics", {"verify_responses": []})[0] == 200


@pytest.fixture
def lesson(tmp_path: Path) -> Path:
    """A benchmark of three sums in a folder."""
    (tmp_path / "sums").mkdir()
    (tmp_path / "sums/__init__.py").write_text(
        'METRICS_TYPE = "math"\nGENERATION_ARGS = "++prompt_config=generic/math"\n'
    )
    (tmp_path / "sums/test.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in TASKS))
    return tmp_path


def test_gym_starts_the_folder_and_we_agree_with_ourselves(lesson: Path, fake_server: Any) -> None:
    """The same replies, graded in an evaluation of ours and by way of Gym's protocol."""
    table = {"2 + 2": "4", "3 + 4": "8"}
    model = fake_server(Script(answer=Answer(kind="table", table=table, text="I do not know.")))
    shown = ns("ns serve_gym --benchmark=./sums --folder=gym --dry_run", cwd=lesson)
    assert "gym/resources_servers/sums" in shown.stdout, shown.stderr
    assert not (lesson / "gym").exists()
    done = ns("ns serve_gym --benchmark=./sums --folder=gym", cwd=lesson)
    assert done.returncode == 0, done.stderr
    assert "3 rows" in done.stdout
    folder = lesson / "gym/resources_servers/sums"
    config = yaml.safe_load((folder / "configs/sums.yaml").read_text())
    assert config["sums"]["resources_servers"]["sums"]["entrypoint"] == "app.py"
    rows = rows_of(folder / "data/test.jsonl")
    assert rows[0]["newskills_row"] == TASKS[0]
    assert "2 + 2" in rows[0]["responses_create_params"]["input"][0]["content"]

    env = {"NEWSKILLS_DATA_DIR": str(lesson / "data")}
    model_words = f"--server_type=vllm --server_address={model.base_url} --model=fake"
    with started(folder, config) as url:
        made = ns(f"ns prepare_data gym:{url} --rows={folder}/data/test.jsonl", cwd=lesson, env=env)
        assert made.returncode == 0, made.stderr
        by_gym = ns(f"ns eval --benchmarks=gym:{url} {model_words} --output_dir=gymmed", cwd=lesson, env=env)
    ours = ns(f"ns eval --benchmarks=./sums {model_words} --output_dir=ours", cwd=lesson, env=env)
    assert (by_gym.returncode, ours.returncode) == (0, 0), by_gym.stderr + ours.stderr
    (one,) = lesson.glob("gymmed/eval-results/*/output.jsonl")
    (other,) = lesson.glob("ours/eval-results/*/output.jsonl")
    assert [record["reward"] for record in rows_of(one)] == [1.0, 0.0, 0.0]
    assert [record["outcome"] for record in rows_of(other)] == ["correct", "wrong", "no_answer"]
    assert [record["generation"] for record in rows_of(one)] == [record["generation"] for record in rows_of(other)]


def test_tools_keep_a_state_for_each_session(lesson: Path, fake_server: Any) -> None:
    """The model sets x to its own number, and prints it in a later call: what others set must not be there."""
    name = "stateful_python_code_exec"

    def calls(*codes: str) -> tuple[dict[str, Any], ...]:
        return tuple(
            {
                "id": f"c{place}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps({"code": code})},
            }
            for place, code in enumerate(codes)
        )

    turns = (calls("x = x + 1 if 'x' in globals() else 3"), calls("print(x + 1)"))
    model = fake_server(Script(answer=Answer(text=r"So \boxed{4}."), tool_turns=turns))
    tools = "++tool_modules=[python]"
    assert ns(f"ns serve_gym --benchmark=./sums --folder=gym {tools}", cwd=lesson).returncode == 0
    rows = lesson / "gym/resources_servers/sums/data/test.jsonl"
    assert [tool["name"] for tool in rows_of(rows)[0]["responses_create_params"]["tools"]] == [name]
    env = {"NEWSKILLS_DATA_DIR": str(lesson / "data")}
    server = GymServed(lesson, "--benchmark=./sums", "--workers=1", tools)
    try:
        made = ns(f"ns prepare_data gym:{server.url} --rows={rows}", cwd=lesson, env=env)
        assert made.returncode == 0, made.stderr
        words = f"--server_type=vllm --server_address={model.base_url} --model=fake --output_dir=out"
        done = ns(f"ns eval --benchmarks=gym:{server.url} {words}", cwd=lesson, env=env)
    finally:
        assert server.stop() == 0
    assert done.returncode == 0, done.stdout + done.stderr
    (records,) = lesson.glob("out/eval-results/*/output.jsonl")
    assert [record["reward"] for record in rows_of(records)] == [1.0, 0.0, 0.0]
    for record in rows_of(records):
        results = [message["content"] for message in record["conversation"] if message["role"] == "tool"]
        assert [result.strip() for result in results] == ["", "4"], results


class started:
    """The folder's app.py, started with what Gym sets, by a Python that has nothing but its standard library."""

    def __init__(self, folder: Path, config: dict[str, Any]) -> None:
        self.folder, self.config = folder, config

    def __enter__(self) -> str:
        from newskills.run.hosting.servers import free_port

        port = free_port()
        own = {**self.config["sums"]["resources_servers"]["sums"], "host": "127.0.0.1", "port": port}
        whole = {**self.config, "sums": {"resources_servers": {"sums": own}}}
        gym = {"NEMO_GYM_CONFIG_PATH": "sums", "NEMO_GYM_CONFIG_DICT": yaml.safe_dump(whole)}
        env = {**os.environ, **gym, "NEWSKILLS_PYTHON": sys.executable}
        with (self.folder / "log").open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-I", "-S", "app.py"], cwd=self.folder, env=env, stdout=log, stderr=log
            )
        url = f"http://127.0.0.1:{port}"
        while True:
            assert self.process.poll() is None, (self.folder / "log").read_text()
            try:
                urllib.request.urlopen(url, timeout=10).close()
                return url
            except OSError:
                time.sleep(0.05)

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        assert self.process.wait(300) == 0, (self.folder / "log").read_text()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("", "Give either --benchmark or --grader"),
        ("--grader=math --folder=out", "--folder writes the rows of a benchmark"),
        ("--benchmark=tau2-bench.retail", "in NeMo Gym an agent does that"),
        ("--grader=math --gym_address", "NEMO_GYM_CONFIG_PATH name no server"),
        ("--grader=math --host=0.0.0.0", "Give --open to serve everybody"),
    ],
)
def test_what_is_refused(tmp_path: Path, words: str, why: str) -> None:
    done = ns(f"ns serve_gym {words}", cwd=tmp_path)
    assert done.returncode == 2
    assert why in " ".join((done.stdout + done.stderr).split())
