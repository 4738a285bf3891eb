# SPDX-License-Identifier: Apache-2.0
"""`ns nemo_evaluator`: each task a job; the model and the judge run already, or are served beside it."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest
import yaml
from tests.commands.running import ns
from tests.conftest import FakeServerFactory
from tests.exchange.evaluated import ANSWERS, BENCHMARK

TASKS = """
evaluation:
  nemo_evaluator_config:
    config:
      params:
        max_new_tokens: 64
        extra:
          judge:
            api_key: JUDGE_KEY
  tasks:
    - name: gsm8k
      nemo_evaluator_config:
        config:
          params:
            task: SUMS
            limit_samples: 5
    - name: mmlu
      container: registry.example.com/evaluator:1
"""
COMMON = "ns nemo_evaluator --nemo_evaluator_config=tasks.yaml --output_dir=out --server_model=my-model"


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "sums.py").write_text(BENCHMARK)
    (tmp_path / "tasks.yaml").write_text(TASKS.replace("SUMS", str(tmp_path / "sums.py")))
    return tmp_path


@pytest.mark.nightly
@pytest.mark.skipif(importlib.util.find_spec("nemo_evaluator") is None, reason="no nemo-evaluator here")
def test_a_task_is_evaluated_here(here: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(ANSWERS)
    config = yaml.safe_load((here / "tasks.yaml").read_text())
    del config["evaluation"]["tasks"][1]
    (here / "tasks.yaml").write_text(yaml.safe_dump(config))
    done = ns(f"{COMMON} --server_base_url={server.url}", cwd=here, env={"NEMO_EVALUATOR_TELEMETRY_LEVEL": "0"})
    assert done.returncode == 0, done.stdout + done.stderr
    (found,) = (here / "out").glob("*/results.yml")
    scores = yaml.safe_load(found.read_text())["results"]["tasks"]["own-sums"]["metrics"]["pass@1"]["scores"]
    assert scores["symbolic_correct"]["value"] == 80.0
    assert scores["num_entries"]["value"] == 5
    assert len(server.records) == 5


@pytest.mark.parametrize(
    ("options", "groups"),
    [
        ("--server_base_url=http://localhost:8000", ["main"]),
        ("--server_type=vllm --server_gpus=4", ["main", "server"]),
        (
            "--server_base_url=http://localhost:8000 --judge_server_type=vllm --judge_server_model=/j "
            "--judge_server_gpus=1",
            ["main", "judge"],
        ),
        (
            "--server_type=vllm --server_gpus=4 --server_health_path=/ready --judge_server_type=sglang "
            "--judge_server_model=/j --judge_server_gpus=1 --job_gpus=1",
            ["main", "server", "judge"],
        ),
    ],
    ids=["no server", "model", "judge", "both"],
)
def test_servers_have_groups_of_their_own(here: Path, options: str, groups: list[str]) -> None:
    shown = ns(f"{COMMON} {options} --dry_run --show_scripts", cwd=here, env={"JUDGE_KEY": "s3cret"})
    assert shown.returncode == 0, shown.stderr
    shown_as = {"main": "client main:", "server": "server server:", "judge": "server judge:"}
    assert [name for name, text in shown_as.items() if text in shown.stdout] == groups
    assert "s3cret" not in shown.stdout + shown.stderr
    assert ("--model_url=" in shown.stdout) == ("server" in groups)
    assert ("config.params.extra.judge.url=" in shown.stdout) == ("judge" in groups)
    assert ("/ready" in shown.stdout) == ("/ready" in options)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("", "No server is given."),
        ("--server_gpus=1", "give its server type"),
        ("--server_base_url=http://h ++evaluation.tasks.0.pre_cmd=ls", "pre_cmd"),
        ("--server_base_url=http://h ++evaluation.taks=3", "taks"),
        ("--server_base_url=http://h --nemo_evaluator_config=none.yaml", "none.yaml"),
    ],
)
def test_what_is_missing_or_wrong_is_said_before_anything_runs(here: Path, options: str, said: str) -> None:
    done = ns(f"{COMMON} {options}", cwd=here)
    assert done.returncode in (1, 2)
    assert said in done.stderr
    assert not (here / "out").exists()


def test_both_spellings(here: Path) -> None:
    done = ns(
        f"{COMMON.replace('nemo_evaluator ', 'nemo-evaluator ')} --server_base_url=http://h --dry_run", cwd=here
    )
    assert done.returncode == 0, done.stderr
    assert json.dumps("gsm8k") not in done.stderr
