# SPDX-License-Identifier: Apache-2.0
"""Agents that are data files, as the programs themselves: three tasks, solved without a network, by a scripted model.

They are those that NEWSKILLS_AGENT_PROGRAMS, a folder made by `ns agents install --folder=…`, has; others are skipped.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
from tests.commands.running import ns, rows_of
from tests.environments.images import ENGINE, own_containers
from tests.environments.shell_model import ShellModel, serving
from tests.launch.needs import lacking

from newskills.agents.definition import library_files, read_definition
from newskills.agents.installing import find_installed
from newskills_sandbox.probes import run_probes, strongest_level

FOLDER = os.environ.get("NEWSKILLS_AGENT_PROGRAMS", "")
NAMES = sorted(library_files())
BENCHMARK = """
from newskills.benchmarks.agent_tasks import task_set

BENCHMARK = task_set("three", {folder!r})
"""
TASKS = {
    "write": {
        "task.yaml": "image: {image}\ntest_command: sh tests/try.sh\n",
        "tests/tests/try.sh": "grep -qx hello made.txt\n",
        "issue.md": "Write hello into made.txt.\n",
        "repository/old.txt": "old\n",
    },
    "repair": {
        "task.yaml": "image: {image}\ntest_command: sh tests/try.sh\n",
        "tests/tests/try.sh": "test $(sh add.sh 2 3) = 5\n",
        "issue.md": "sh check.sh fails; repair add.sh.\n",
        "repository/add.sh": "echo $(($1 + $2 + 1))\n",
        "repository/check.sh": "test $(sh add.sh 2 2) = 4\n",
    },
    "output": {
        "task.yaml": "image: {image}\ntest_command: sh tests/try.sh\n",
        "tests/tests/try.sh": "grep -qx 7919 answer.txt\n",
        "issue.md": "Write the number that sh secret.sh prints into answer.txt.\n",
        "repository/secret.sh": "echo the number is $((7920 - 1))\n",
    },
}


def _number(said: str) -> str:
    match = re.search(r"the number is (\d+)", said)
    return f"echo {match[1] if match else 'lost'} > answer.txt"


def _whole(file: str, text: str) -> str:
    return f"{file}\n```\n{text}\n```\n"


def _number_edit(said: str) -> str:
    match = re.search(r"the number is (\d+)", said)
    return _whole("answer.txt", match[1] if match else "lost")


TURNS: dict[str, tuple[Any, ...]] = {
    "write": ("printf 'hello\\n' > made.txt",),
    "repair": ("sh check.sh; cat add.sh", "echo 'echo $(($1 + $2))' > add.sh && sh check.sh"),
    "output": ("sh secret.sh", _number),
}
EDITS: dict[str, tuple[Any, ...]] = {
    "write": (_whole("made.txt", "hello"),),
    "repair": (_whole("add.sh", "echo $(($1 + $2))"),),
    "output": (_number_edit, _number_edit),
}


def prepared(folder: Path, image: str, *names: str) -> dict[str, str]:
    """`folder/three.py`, prepared; the environment that finds it."""
    for name in names:
        for place, text in TASKS[name].items():
            path = folder / "tasks" / name / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text.replace("{image}", image))
    (folder / "three.py").write_text(BENCHMARK.format(folder=str(folder / "tasks")))
    env = {"NEWSKILLS_DATA_DIR": str(folder / "data"), "NEWSKILLS_AGENTS": FOLDER}
    made = ns("ns prepare_data ./three.py", cwd=folder, env=env, timeout=500)
    assert made.returncode == 0, made.stderr
    return env


def evaluated(
    folder: Path, env: dict[str, str], agent: str, url: str, *more: str, engine: str = ENGINE, code: int = 0
) -> list[dict[str, Any]]:
    line = (
        f"ns eval --benchmarks=./three.py ++agent={agent} --server_type=vllm --server_address={url} --model=fake "
        f"--output_dir=results ++environment.engine={engine} ++agent_config.time_limit=400"
    )
    done = ns(line, *more, cwd=folder, env=env, timeout=900)
    assert done.returncode == code, done.stdout + done.stderr
    return rows_of(folder / "results/eval-results/three/output.jsonl")


@pytest.fixture(params=NAMES)
def agent(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    definition = read_definition(library_files()[name])
    if not FOLDER or find_installed(definition, Path(FOLDER)) is None:
        pytest.skip(f"{name} is not here: set NEWSKILLS_AGENT_PROGRAMS to a folder and install it there")
    return name


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("task", TASKS)
def test_a_program_solves_a_task_in_a_container(agent: str, task: str, agent_image: str, tmp_path: Path) -> None:
    _solves(agent, task, agent_image, ENGINE, tmp_path)
    assert own_containers() == []


def _solves(agent: str, task: str, image: str, engine: str, folder: Path) -> None:
    env = prepared(folder, image, task)
    more = []
    if agent == "aider" and task == "output":  # it runs no command but this
        more = ["++agent_config.arguments=[--auto-test,--test-cmd,sh secret.sh; grep -qx 7919 answer.txt]"]
    with serving(ShellModel(*TURNS[task], edits=EDITS[task])) as model:
        (record,) = evaluated(folder, env, agent, model.url, *more, engine=engine)
    assert (record["outcome"], record["exit_status"]) == ("correct", "submitted"), record
    definition = read_definition(library_files()[agent])
    assert record["agent"] == f"{agent}@{definition.install.version}"
    assert record["num_generated_tokens"] > 0
    roles = [message["role"] for message in record["conversation"]]
    assert roles[-1] == "assistant"
    assert TASKS[task]["issue.md"].strip() in str(record["conversation"])
    if agent != "aider":
        assert record["steps"][0]["command"] == TURNS[task][0]
        assert record["num_steps"] == len(TURNS[task])
    logs = folder / "results/eval-results/three" / record["agent_log"]
    assert (logs / "gateway.jsonl").stat().st_size > 0
    assert [file for file in logs.iterdir() if file.name[0].isdigit()], sorted(logs.iterdir())
    patch = record["model_patch"]
    assert (
        re.findall(r"^diff --git a/(\S+)", patch, re.MULTILINE)
        == {
            "write": ["made.txt"],
            "repair": ["add.sh"],
            "output": ["answer.txt"],
        }[task]
    ), patch


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("task", TASKS)
def test_a_program_solves_a_task_in_a_session(agent: str, task: str, tmp_path: Path) -> None:
    if strongest_level(run_probes()) != "a":
        lacking("CONTAINERS", "this machine does not give sessions folders of their own")
    _solves(agent, task, "none", "sandbox", tmp_path)
