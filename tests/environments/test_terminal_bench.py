# SPDX-License-Identifier: Apache-2.0
"""Terminal-Bench 1 and Harbor's tasks: prepared from a folder, worked on in containers, judged by their own scripts."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.commands.running import ns, rows_of
from tests.environments.images import ENGINE, by_first_engine, own_containers
from tests.environments.shell_model import ShellModel, serving
from tests.environments.tasks import texts_of, turns_of
from tests.environments.terminal import harbor_tasks, phased_tasks, terminal_bench_tasks
from tests.environments.test_declared_agents import agent as standin

MINE = """
from newskills.benchmarks.terminal_tasks import terminal_task_set

BENCHMARK = terminal_task_set("mine", {folder!r})
"""
CLOSED = (f"++environment.engine={ENGINE}", "++environment.network=false")


@pytest.fixture
def images() -> Iterator[None]:
    """Removes what the tasks of a test had built."""
    yield
    words = [
        ENGINE,
        "images",
        "--format={{.Repository}}:{{.Tag}}",
        "--filter=reference=localhost/newskills-task*",
    ]
    names = subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()
    if names:
        subprocess.run([ENGINE, "rmi", *names], check=False, capture_output=True)


def worker(body: dict[str, Any]) -> str:
    """Does what the instruction says, but for `number`, where it writes something else."""
    if turns_of(body):
        return "```bash\necho SUBMIT_CHANGES\n```"
    words = texts_of(body).partition("Write ")[2].split()
    name = words[2].removesuffix(".")
    return f"```bash\necho {'7' if 'number' in name else words[0]} > {name}\n```"


def typist(body: dict[str, Any]) -> str:
    """Types the line of the instruction that is a command."""
    lines = texts_of(body).splitlines()
    command = next(line for line in lines if line.startswith(("sleep ", "grep ", "echo ", "true")))
    return f"```bash\n{'echo SUBMIT_CHANGES' if turns_of(body) else command}\n```"


def evaluated(
    folder: Path, fake_server: Any, *words: str, answer: Callable[[dict[str, Any]], str] = worker
) -> dict[str, dict[str, Any]]:
    """id → record."""
    env = {"NEWSKILLS_DATA_DIR": str(folder / "data")}
    address = fake_server(answer=answer).base_url
    line = f"ns eval ++agent=bash --server_type=vllm --model=fake --output_dir=results --server_address={address}"
    done = ns(line, *CLOSED, *words, cwd=folder, env=env, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
    assert own_containers() == []
    return {
        row["id"]: row for file in folder.glob("results/eval-results/*/output*.jsonl") for row in rows_of(file)
    }


def prepared(folder: Path, *words: str) -> str:
    made = ns("ns prepare_data", *words, cwd=folder, env={"NEWSKILLS_DATA_DIR": str(folder / "data")})
    assert made.returncode == 0, made.stderr
    return made.stdout + made.stderr


def test_terminal_bench_1(agent_image: str, tmp_path: Path, fake_server: Any, images: None) -> None:
    tasks = terminal_bench_tasks(tmp_path / "tasks", agent_image)
    shown = prepared(tmp_path, "terminal-bench", f"--tasks={tasks}")
    assert "docker-compose.yaml has the field `services.db.privileged`, which is not understood" in shown
    records = evaluated(tmp_path, fake_server, "--benchmarks=terminal-bench")
    assert {name: (row["outcome"], row["why"]) for name, row in records.items()} == {
        "greeting": ("correct", "all tests pass"),
        "number": ("wrong", "tests fail"),
        "two": ("correct", "all tests pass"),
    }
    assert records["greeting"]["exit_status"] == "submitted"
    assert "PASSED" in records["greeting"]["task-tests"]["log"]
    assert "Do this task" in records["greeting"]["conversation"][1]["content"]
    metrics = json.loads((tmp_path / "results/eval-results/terminal-bench/metrics.json").read_text())
    row = metrics["terminal-bench"]["pass@1"]
    assert (round(row["tasks_resolved"], 2), row["tests_timed_out"], row["no_verdict"]) == (66.67, 0.0, 0.0)
    assert (row["environment_failed"], row["avg_steps"]) == (0.0, 2.0)


def test_a_program_by_a_file_works_on_whole_machines(agent_image: str, tmp_path: Path, images: None) -> None:
    tasks = terminal_bench_tasks(tmp_path / "tasks", agent_image)
    prepared(tmp_path, "terminal-bench", f"--tasks={tasks}")
    standin(tmp_path)
    env = {"NEWSKILLS_DATA_DIR": str(tmp_path / "data")}
    with serving(ShellModel("echo hello > greeting.txt; echo hello > number.txt; pwd")) as model:
        line = f"ns eval --benchmarks=terminal-bench ++agent=./standin.yaml --server_type=vllm --model=fake {CLOSED[1]}"
        more = (f"--server_address={model.url}", "--output_dir=results", CLOSED[0])
        done = ns(line, *more, cwd=tmp_path, env=env, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
    assert own_containers() == []
    records = {row["id"]: row for row in rows_of(tmp_path / "results/eval-results/terminal-bench/output.jsonl")}
    outcomes = {"greeting": "correct", "number": "wrong", "two": "wrong"}
    assert {name: row["outcome"] for name, row in records.items()} == outcomes
    assert "Do this task" in records["greeting"]["conversation"][0]["content"]
    assert records["greeting"]["conversation"][2]["content"] == "/app\n"
    logs = [tmp_path / "results/eval-results/terminal-bench" / row["agent_log"] for row in records.values()]
    assert len(set(logs)) == 3
    assert all((folder / "1-steps.log").is_file() for folder in logs)


@pytest.mark.nightly
def test_harbor_tasks_of_ones_own(agent_image: str, tmp_path: Path, fake_server: Any, images: None) -> None:
    tasks = harbor_tasks(tmp_path / "tasks", agent_image)
    (tmp_path / "mine.py").write_text(MINE.format(folder=str(tasks)))
    prepared(tmp_path, "./mine.py")
    records = evaluated(tmp_path, fake_server, "--benchmarks=./mine.py")
    assert {name: (row["outcome"], row["why"]) for name, row in records.items()} == {
        "copy": ("correct", "all tests pass"),
        "count": ("correct", "all tests pass"),
        "slow": ("wrong", "the tests timed out"),
        "silent": ("wrong", "the test script gave no verdict"),
    }


def test_phases_of_harbor_have_users_networks_and_containers(
    agent_image: str, tmp_path: Path, fake_server: Any
) -> None:
    tasks = phased_tasks(tmp_path / "tasks", agent_image)
    (tmp_path / "mine.py").write_text(MINE.format(folder=str(tasks)))
    prepared(tmp_path, "./mine.py")
    words = (
        "--benchmarks=./mine.py",
        "++environment.network=true",
        "++environment.at_once=1",
        "++server.enable_soft_fail=true",
        "--accept_lost=30",
    )
    records = evaluated(tmp_path, fake_server, *words, answer=typist)
    assert {
        name: (row["outcome"], row["task-tests"]["log"])
        for name, row in records.items()
        if "steps" not in row.get("task-tests", {"steps": []})
    } == {
        "closed": ("correct", ""),
        "users": ("correct", ""),
        "apart": ("correct", ""),
    }
    assert records["sick"]["outcome"] == "unscored"
    stepped, gated = records["stepped"], records["gated"]
    assert (stepped["outcome"], gated["outcome"], gated["why"]) == ("correct", "wrong", "tests fail")
    assert [step["name"] for step in stepped["task-tests"]["steps"]] == ["one", "two"]
    assert [step["rewards"] for step in gated["task-tests"]["steps"]] == [{"reward": 0.0}], "its reward is too low"
    first, last = stepped["task-tests"]["steps"][0]["conversation"], stepped["conversation"]
    assert ("/tmp/one.txt" in str(first[1]), "cat /tests" in str(last[1])) == (True, True)
    assert (len(first), len(last), stepped["num_steps"]) == (6, 6, 4)


@by_first_engine
def test_solutions_pass_and_doing_nothing_does_not(
    agent_image: str, tmp_path: Path, fake_server: Any, images: None
) -> None:
    tasks = harbor_tasks(tmp_path / "tasks", agent_image)
    for name in ("slow", "silent"):
        (tasks / name / "task.toml").unlink()
    (tmp_path / "mine.py").write_text(MINE.format(folder=str(tasks)))
    prepared(tmp_path, "./mine.py")
    done = ns(
        "ns validate ./mine.py --json found.json",
        cwd=tmp_path,
        env={"NEWSKILLS_DATA_DIR": str(tmp_path / "data")},
        timeout=500,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert own_containers() == []
    shares = json.loads((tmp_path / "found.json").read_text())[0]["shares"]
    assert (shares["gold"]["right"], shares["shuffled"]["right"]) == (2, 0), "a solution is that of its own task"


def test_without_a_network_a_folder_can_be_given(tmp_path: Path) -> None:
    done = ns("ns prepare_data terminal-bench-2 --offline", cwd=tmp_path, env={"NEWSKILLS_MIRROR": ""})
    assert done.returncode == 1
    assert "or give the rows: --tasks=FOLDER" in done.stderr


def test_sessions_of_the_sandbox_are_refused(tmp_path: Path, fake_server: Any) -> None:
    """They counted as wrong: nothing was where the script looks for it."""
    prepared(tmp_path, "terminal-bench", f"--tasks={terminal_bench_tasks(tmp_path / 'tasks', 'none')}")
    line = "ns eval --benchmarks=terminal-bench ++agent=bash --server_type=vllm --model=fake --output_dir=results"
    words = ("++environment.engine=sandbox", f"--server_address={fake_server(answer=worker).base_url}")
    done = ns(line, *words, cwd=tmp_path, env={"NEWSKILLS_DATA_DIR": str(tmp_path / "data")})
    assert done.returncode != 0
    assert "Tasks in a terminal need a container" in done.stderr
