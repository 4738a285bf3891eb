# SPDX-License-Identifier: Apache-2.0
"""Environments behind a server of the real package `openenv-core`, from the command line to scores."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.commands.running import ns, rows_of

pytest.importorskip("openenv", reason="no openenv here: pip install -e '.[openenv]'")

SERVER = """
import sys

import uvicorn
from openenv.core.env_server.http_server import create_fastapi_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import Action, Observation, State


class Guess(Action):
    number: int


class Hint(Observation):
    hint: str


class Numbers(Environment):
    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self):
        super().__init__()
        self.secret, self.tries = 0, 0

    def reset(self, seed=None, episode_id=None, **kwargs):
        self.secret, self.tries = 3 + (seed or 0), 0
        return Hint(hint="a number from 1 to 8")

    def step(self, action, timeout_s=None, **kwargs):
        self.tries += 1
        if action.number == 99:
            raise RuntimeError("the board fell off the table")
        if action.number == self.secret:
            return Hint(hint="right", done=True, reward=1.0)
        return Hint(hint="higher" if action.number < self.secret else "lower", reward=-0.1, done=self.tries >= 4)

    @property
    def state(self):
        return State(step_count=self.tries)


app = create_fastapi_app(Numbers, Guess, Hint, max_concurrent_envs=4)
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
"""


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """A server of that environment."""
    (tmp_path / "server.py").write_text(SERVER)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = (tmp_path / "server.log").open("wb")
    process = subprocess.Popen([sys.executable, str(tmp_path / "server.py"), str(port)], stdout=log, stderr=log)
    try:
        while process.poll() is None:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=10).close()
                break
            except OSError:
                time.sleep(0.2)
        assert process.poll() is None, (tmp_path / "server.log").read_text()
        yield f"127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()
        log.close()


def evaluated(folder: Path, address: str, url: str, *more: str) -> list[dict[str, Any]]:
    env = {"NEWSKILLS_DATA_DIR": str(folder / "data")}
    made = ns(f"ns prepare_data openenv:{address} --seeds=2", cwd=folder, env=env)
    assert made.returncode == 0, made.stdout + made.stderr
    line = (
        f"ns eval --benchmarks=openenv:http://{address} --server_type=vllm --server_address={url} --model=fake "
        "--output_dir=results"
    )
    done = ns(line, *more, cwd=folder, env=env, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
    name = "openenv-" + address.replace(".", "-").replace(":", "-")
    return rows_of(folder / f"results/eval-results/{name}/output.jsonl")


def last(body: dict[str, Any]) -> str:
    return str(body["messages"][-1]["content"])


def test_rewards_of_steps_become_scores(address: str, tmp_path: Path, fake_server: Any) -> None:
    def answer(body: dict[str, Any]) -> str:
        if "higher" in last(body):
            return 'I try four.\n\n```json\n{"number": 4}\n```'
        return '{"number": 3}' if "Error" in last(body) else "three"

    server = fake_server(answer=answer)
    first, second = evaluated(tmp_path, address, server.base_url, "++solver_config.sessions=2")
    assert (first["outcome"], first["reward"], first["exit_status"]) == ("correct", 1.0, "done")
    assert [step["action"] for step in second["steps"]] == [{"number": 3}, {"number": 4}]
    assert second["reward"] == pytest.approx(0.9)
    assert second["outcome"] == "wrong"
    assert '"number"' in first["conversation"][0]["content"]
    assert first["conversation"][3]["content"].startswith("Error: the reply holds no JSON object")
    (metrics,) = (tmp_path / "results/eval-results").glob("*/metrics.json")
    ((_, modes),) = json.loads(metrics.read_text()).items()
    assert modes["pass@1"]["accuracy"] == pytest.approx(95.0)


def test_a_model_without_actions(address: str, tmp_path: Path, fake_server: Any) -> None:
    server = fake_server(answer=lambda body: '{"colour": "red"}' if len(body["messages"]) > 3 else "Hm.")
    (record, _) = evaluated(tmp_path, address, server.base_url)
    assert (record["exit_status"], record["outcome"], record["reward"]) == ("no_action", "wrong", 0.0)
    assert "VALIDATION_ERROR" in record["conversation"][-1]["content"]


def test_an_environment_that_fails_is_unscored(address: str, tmp_path: Path, fake_server: Any) -> None:
    server = fake_server(answer=lambda body: '{"number": 99}')
    more = ("++server.enable_soft_fail=true", "--accept_lost=100")
    (record, _) = evaluated(tmp_path, address, server.base_url, *more)
    assert (record["outcome"], record["outcome_cause"]) == ("unscored", "environment")
    assert "the board fell off the table" in record["detailed_error"]


def test_what_is_refused(tmp_path: Path) -> None:
    env = {"NEWSKILLS_DATA_DIR": str(tmp_path / "data")}
    done = ns("ns prepare_data openenv:openenv/echo-env", cwd=tmp_path, env=env)
    assert done.returncode == 2
    assert "--benchmarks=openenv:http://127.0.0.1:8000" in " ".join((done.stdout + done.stderr).split())


@pytest.mark.local_model
def test_a_policy_is_rewarded_by_the_environment(address: str, tmp_path: Path, small_model: Path) -> None:
    """A model that says no number: three turns each, in which what the environment says is not learnt."""
    env = {"NEWSKILLS_DATA_DIR": str(tmp_path / "data")}
    assert ns(f"ns prepare_data openenv:{address} --seeds=2", cwd=tmp_path, env=env).returncode == 0
    line = f"ns grpo --model={small_model} --benchmark=openenv:http://{address} --split=test --allow_overlap"
    small = (
        "++steps=1",
        "++batch_size=2",
        "++group_size=2",
        "++max_tokens=4",
        "++trainer.threads=1",
        "++held_out=0",
    )
    turns = ("--output_dir=out", "++solver_config.sessions=4", "++solver_config.max_turns=3", "++turn_weight=0.5")
    done = ns(line, *turns, *small, cwd=tmp_path, env=env, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = rows_of(tmp_path / "out/samples.jsonl")
    assert [reply["reward"] for row in rows for reply in row["responses"]] == [0.0] * 4
    (metrics,) = rows_of(tmp_path / "out/metrics.jsonl")
    assert 4 < metrics["completion_tokens"] <= 12
