# SPDX-License-Identifier: Apache-2.0
"""A command plans its evaluation once and reads its configuration once, whatever way it takes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.commands.clusters import BENCHMARK
from tests.commands.running import ns
from tests.conftest import FakeServerFactory
from tests.server import Answer, Script

COUNTING = """
import sys
from pathlib import Path
from newskills.cli import main
from newskills.run import evaluate

report, *words = sys.argv[1:]
plans, opened, original = [], [], evaluate._plan_answers

def answers(spec):
    plans.append(spec)
    return original(spec)

def hear(event, arguments):
    if event == "open" and str(arguments[0]).endswith("asked.yaml"):
        opened.append(arguments[0])

evaluate._plan_answers = answers
sys.addaudithook(hear)
code = main(words)
Path(report).write_text(f"{len(plans)} {len(opened)}")
sys.exit(code)
"""
TASKS = "deployment: {type: none}\nevaluation: {tasks: [{name: gsm8k}]}"


def counts(folder: Path, line: str) -> tuple[int, int]:
    """(plans, how often asked.yaml was opened) in the process of the command."""
    report = folder / "counts"
    words = [sys.executable, "-c", COUNTING, str(report), *line.split()[1:]]
    environ = os.environ | {"NEWSKILLS_EXPERIMENTS_DIR": str(folder / "experiments")}
    done = subprocess.run(words, cwd=folder, env=environ, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    plans, opened = report.read_text().split()
    return int(plans), int(opened)


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "sums.py").write_text(BENCHMARK)
    (tmp_path / "cluster_configs").mkdir()
    (tmp_path / "cluster_configs/mine.yaml").write_text("executor: none")
    done = ns("ns prepare_data ./sums.py --data_dir data", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    return tmp_path


@pytest.mark.parametrize("options", ["", "--dry_run", "--explain", "--cluster=mine --num_jobs=2 --dry_run"])
def test_an_evaluation_is_planned_once(here: Path, fake_server: FakeServerFactory, options: str) -> None:
    server = fake_server(Script(answer=Answer(text="2")))
    line = f"ns eval --server_type=vllm --model=fake --server_address={server.url} --output_dir=out"
    assert counts(here, f"{line} --benchmarks=./sums.py:2 --data_dir=data {options}")[0] == 1


@pytest.mark.parametrize(
    "command", ["evaluate --config=asked.yaml", "nemo_evaluator --nemo_evaluator_config=asked.yaml"]
)
def test_a_configuration_is_read_once(tmp_path: Path, command: str) -> None:
    (tmp_path / "asked.yaml").write_text(TASKS)
    where = {
        "evaluate": "execution.type=local execution.output_dir=out "
        "target.api_endpoint.url=http://127.0.0.1:9 target.api_endpoint.model_id=m",
        "nemo_evaluator": "--output_dir=out --server_model=m --server_base_url=http://127.0.0.1:9",
    }
    assert counts(tmp_path, f"ns {command} --dry_run {where[command.split()[0]]}")[1] == 1
