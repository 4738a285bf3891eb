# SPDX-License-Identifier: Apache-2.0
"""NeMo Gym itself, whose program NEWSKILLS_GYM names: the same replies get the same rewards, whoever collects them.

Its servers run in the environment of that program: nothing is installed for them.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.commands.rewarding import Rewards
from tests.commands.running import ns, rows_of
from tests.environments.interactive.test_gym import ADDS
from tests.server import Answer, Script

GYM = os.environ.get("NEWSKILLS_GYM", "")
pytestmark = [
    pytest.mark.nightly,
    pytest.mark.slow,
    pytest.mark.skipif(not GYM, reason="NEWSKILLS_GYM names no program of NeMo Gym"),
]
SETTINGS = "--model-type openai_model --split validation --model fake --model-api-key none --concurrency 8"
SERVERS = ("resources_servers/mcqa", "resources_servers/sums", "responses_api_agents/simple_agent")
OTHERS = ("responses_api_models/openai_model", "environment_servers/legacy_agent")
VALIDATION = """\
config_paths: [resources_servers/mcqa/configs/mcqa.yaml]
mcqa_simple_agent:
  responses_api_agents:
    simple_agent:
      datasets:
      - {name: example, type: validation, jsonl_fpath: resources_servers/mcqa/data/example.jsonl, license: TBD}
"""


class GatewayServed(Rewards):
    """Our gateway: Gym's model server speaks OpenAI's Responses, and reads every field of them."""

    command, told = "gateway", "Gateway at "


@pytest.fixture
def venvs(tmp_path: Path) -> Path:
    for server in (*SERVERS, *OTHERS):
        (tmp_path / "venvs" / server).mkdir(parents=True)
        (tmp_path / "venvs" / server / ".venv").symlink_to(Path(GYM).parent.parent)
    return tmp_path / "venvs"


@pytest.fixture
def model(tmp_path: Path, fake_server: Any) -> Iterator[tuple[str, str]]:
    """Addresses of a model that knows some of the answers: its own, and with Responses."""
    table = {"2 + 2": "4", "3 + 4": "8", "cystic fibrosis": "B", "Huntington": "C", "A: ": "D"}
    server = fake_server(Script(answer=Answer(kind="table", table=table, text="I do not know.")))
    words = f"--server_type=vllm --server_address={server.base_url} --model=fake"
    gateway = GatewayServed(tmp_path, *shlex.split(words))
    yield server.base_url, f"{gateway.url.split()[0]}/v1"
    gateway.stop()


def gym(words: str, folder: Path, venvs: Path) -> None:
    line = [GYM, *shlex.split(words), f"+uv_venv_dir={venvs}", "+skip_venv_if_present=true"]
    env = {**os.environ, "NEWSKILLS_PYTHON": sys.executable}
    with (folder / "gym.log").open("wb") as log:
        run = subprocess.Popen(line, cwd=folder, env=env, stdout=log, stderr=log, start_new_session=True)
    try:
        assert run.wait(600) == 0, (folder / "gym.log").read_text(errors="replace")[-5000:]
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(run.pid, signal.SIGKILL)  # reverify leaves its servers behind
        run.wait()


def said(row: dict[str, Any]) -> str:
    messages = [item for item in row["response"]["output"] if item["type"] == "message"]
    return "".join(part["text"] for message in messages for part in message["content"])


def in_order(file: Path) -> list[dict[str, Any]]:
    return sorted(rows_of(file), key=lambda row: row["_ng_task_index"])


def evaluated(benchmark: str, url: str, folder: Path, *more: str) -> list[dict[str, Any]]:
    env = {"NEWSKILLS_DATA_DIR": str(folder / "data")}
    line = f"ns eval --benchmarks={benchmark} --server_type=vllm --server_address={url} --model=fake --output_dir=ours"
    done = ns(line, *more, cwd=folder, env=env, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    (records,) = folder.glob("ours/eval-results/*/output.jsonl")
    return rows_of(records)


def test_our_run_on_a_server_of_gyms_agrees_with_gyms(tmp_path: Path, venvs: Path, model: tuple[str, str]) -> None:
    (tmp_path / "mcqa.yaml").write_text(VALIDATION)
    gym(f"eval run --config mcqa.yaml {SETTINGS} --model-url {model[1]} --output out/r.jsonl", tmp_path, venvs)
    theirs = in_order(tmp_path / "out/r.jsonl")
    made = ns("ns prepare_data gym:mcqa", cwd=tmp_path, env={"NEWSKILLS_DATA_DIR": str(tmp_path / "data")})
    assert made.returncode == 0, made.stderr
    ours = evaluated("gym:mcqa", model[0], tmp_path)
    assert len(ours) == 5
    assert [record["generation"] for record in ours] == [said(row) for row in theirs]
    assert [record["reward"] for record in ours] == [row["reward"] for row in theirs]
    assert 0 < sum(record["reward"] for record in ours) < 5
    (figures,) = tmp_path.glob("ours/eval-results/*/environment_metrics.json")
    (own,) = json.loads((tmp_path / "out/r_aggregate_metrics.json").read_text())
    assert json.loads(figures.read_text())["key_metrics"] == own["key_metrics"]


def test_gyms_run_on_our_server_agrees_with_ours(tmp_path: Path, venvs: Path, model: tuple[str, str]) -> None:
    """One answer is right, one wrong, one missing; the fourth row has none to compare with."""
    rows = [
        {"id": "a", "problem": "What is 2 + 2?", "expected_answer": "4"},
        {"id": "b", "problem": "What is 3 + 4?", "expected_answer": "7"},
        {"id": "c", "problem": "What is 9 - 9?", "expected_answer": "0"},
        {"id": "d", "problem": "What is 2 + 2, really?", "expected_answer": None},
    ]
    (tmp_path / "sums").mkdir()
    constants = 'METRICS_TYPE = "math"\nGENERATION_ARGS = "++prompt_config=generic/math"\n'
    (tmp_path / "sums/__init__.py").write_text(constants)
    (tmp_path / "sums/test.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    assert ns("ns serve_gym --benchmark=./sums --folder=.", cwd=tmp_path).returncode == 0
    config = "--config resources_servers/sums/configs/sums.yaml"
    capture = f"+observability_enabled=true +model_call_capture_dir={tmp_path}/capture"
    gym(f"eval run {config} {SETTINGS} --model-url {model[1]} --output out/r.jsonl {capture}", tmp_path, venvs)
    theirs = in_order(tmp_path / "out/r.jsonl")
    ours = evaluated("./sums", model[0], tmp_path, "++server.enable_soft_fail=true", "--accept_lost=100")
    assert [record["generation"] for record in ours] == [said(row) for row in theirs]
    assert [record["outcome"] for record in ours] == ["correct", "wrong", "no_answer", "unscored"]
    assert [(row["reward"], row["mask_sample"]) for row in theirs] == [
        (1, False),
        (0, False),
        (0, False),
        (0, True),
    ]
    (figures,) = json.loads((tmp_path / "out/r_aggregate_metrics.json").read_text())
    assert figures["key_metrics"]["mean/reward"] == pytest.approx(1 / 3)

    files = "--inputs out/r_materialized_inputs.jsonl --rollouts out/r.jsonl --output out/again.jsonl"
    policy = f"+policy_base_url={model[1]} +policy_api_key=none +policy_model_name=fake"
    gym(f"eval reverify {config} --model-type openai_model {files} {policy}", tmp_path, venvs)
    again = in_order(tmp_path / "out/again.jsonl")
    assert [(row["reward"], row["mask_sample"]) for row in again] == [
        (1, False),
        (0, False),
        (0, False),
        (0, True),
    ]
    done = ns("ns import out/r.jsonl --output_dir=imported", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (records,) = tmp_path.glob("imported/eval-results/*/output.jsonl")
    assert [record["outcome"] for record in rows_of(records)] == ["correct", "wrong", "no_answer", "unscored"]


def test_hundreds_of_sessions_at_once_keep_their_counters(tmp_path: Path, fake_server: Any) -> None:
    """The tools of Gym's `example_session_state_mgmt`, whose state hangs on a cookie."""
    from tests.environments.interactive.gym_double import counter_row

    rows = [counter_row(number) for number in range(300)]
    (tmp_path / "tasks.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    env = {"NEWSKILLS_DATA_DIR": str(tmp_path / "data")}
    made = ns("ns prepare_data gym:example_session_state_mgmt --rows=tasks.jsonl", cwd=tmp_path, env=env)
    assert made.returncode == 0, made.stderr
    url = fake_server(ADDS).base_url
    records = evaluated("gym:example_session_state_mgmt", url, tmp_path, "++max_concurrent_requests=256")
    assert [record["reward"] for record in records] == [1.0] * 300
    assert records[7]["conversation"][-2]["content"] == '{"count":12}'
