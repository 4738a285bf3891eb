# SPDX-License-Identifier: Apache-2.0
"""Our agent against an endpoint that plays a solver, from the command line to the score."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.commands.running import ns, rows_of
from tests.environments import small_tasks as small
from tests.environments.images import ENGINE, own_containers
from tests.environments.small_tasks import prepared_small_tasks, records_of, task_number
from tests.environments.tasks import BUGS, texts_of, turns_of
from tests.server.script import Script

NAMED = f"++environment.engine={ENGINE} ++environment.container_formatter"
TASKS = """
from newskills.benchmarks.agent_tasks import task_set

BENCHMARK = task_set("bugs", {folder!r})
"""


def prepared(folder: Path, tasks: Path) -> dict[str, str]:
    """A benchmark of `tasks` in `folder`, prepared; the environment that finds it."""
    (folder / "bugs.py").write_text(TASKS.format(folder=str(tasks)))
    env = {"NEWSKILLS_DATA_DIR": str(folder / "data")}
    made = ns("ns prepare_data ./bugs.py", cwd=folder, env=env)
    assert made.returncode == 0, made.stderr
    return env


def solver(tasks: Path) -> Callable[[dict[str, Any]], str]:
    """An endpoint that knows the fix of each issue: looks, changes, submits."""
    fixes = {bug.issue: (tasks / bug.name / "solution.patch").read_text() for bug in BUGS}

    def answer(body: dict[str, Any]) -> str:
        text = texts_of(body)
        fix = next(fix for issue, fix in fixes.items() if issue in text)
        commands = (
            "ls src/marshmallow && yes | head -c 50000",
            f"git apply - <<'EOF'\n{fix}EOF\nfalse",
            "git diff --stat; echo SUBMIT_CHANGES",
            "echo SUBMIT_CHANGES",
        )
        turn = turns_of(body)
        return f"Next step.\n\n```bash\n{commands[min(turn, 3)]}\n```" if turn != 2 else "I think it is done."

    return answer


def evaluated(folder: Path, env: dict[str, str], url: str, *more: str) -> str:
    line = (
        f"ns eval --benchmarks=./bugs.py ++agent=bash --server_type=vllm --server_address={url} --model=fake "
        f"--output_dir=results ++environment.engine={ENGINE}"
    )
    done = ns(line, *more, cwd=folder, env=env, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_an_endpoint_that_knows_the_fixes_resolves_all(
    agent_tasks: Path, tmp_path: Path, fake_server: Any
) -> None:
    server = fake_server(answer=solver(agent_tasks))
    env = prepared(tmp_path, agent_tasks)
    evaluated(tmp_path, env, server.base_url)
    assert own_containers() == []
    records = rows_of(tmp_path / "results/eval-results/bugs/output.jsonl")
    assert [(record["id"], record["outcome"]) for record in records] == [(bug.name, "correct") for bug in BUGS]
    first = records[0]
    assert (first["exit_status"], first["agent"], first["num_steps"]) == ("submitted", "bash@2", 3)
    assert [step["exit_code"] for step in first["steps"]] == [0, 1, 0]
    assert first["model_patch"].startswith("diff --git a/src/marshmallow/")
    assert [message["role"] for message in first["conversation"][:4]] == ["system", "user", "assistant", "user"]
    shown = first["conversation"][3]["content"]
    assert "bytes are left out here" in shown
    assert len(shown) < 11_000
    assert "There was no command" in first["conversation"][7]["content"]
    assert first["num_generated_tokens"] > 0
    assert first["agent_seconds"] > 0
    metrics = json.loads((tmp_path / "results/eval-results/bugs/metrics.json").read_text())
    assert metrics["bugs"]["pass@1"]["issues_resolved"] == 100.0
    before = len(server.records)
    evaluated(tmp_path, env, server.base_url)
    assert len(server.records) == before


def test_tool_calls(agent_image: str, tmp_path: Path, fake_server: Any) -> None:
    def call(name: str, **arguments: str) -> tuple[dict[str, Any], ...]:
        return ({"id": "c", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}},)

    turns = (
        call("python", code="1"),
        call("bash", command="echo x > other.txt"),
        call("bash", command="echo SUBMIT_CHANGES"),
    )
    env = prepared_small_tasks(tmp_path, 1, agent_image)
    small.evaluated(tmp_path, env, fake_server(Script(tool_turns=turns)).base_url)
    (record,) = records_of(tmp_path)
    assert (record["outcome"], record["why"], record["exit_status"]) == ("wrong", "tests fail", "submitted")
    assert "other.txt" in record["model_patch"]
    told = [message["content"] for message in record["conversation"] if message["role"] == "tool"]
    assert told[0] == "Error: there is no tool 'python'; the only tool is bash"
    assert record["tools"][0]["function"]["name"] == "bash"


def test_a_model_that_never_acts_and_one_that_never_submits(
    agent_image: str, tmp_path: Path, fake_server: Any
) -> None:
    def answer(body: dict[str, Any]) -> str:
        return "Let me think about it." if task_number(body) == 0 else "```bash\nsleep 600\n```"

    env = prepared_small_tasks(tmp_path, 2, agent_image)
    more = ("++agent_max_turns=3", "++agent_config.command_timeout=1")
    small.evaluated(tmp_path, env, fake_server(answer=answer).base_url, *more)
    silent, endless = records_of(tmp_path)
    assert (silent["outcome"], silent["why"]) == ("no_answer", "the patch is empty")
    assert (silent["exit_status"], silent["num_steps"]) == ("no_command", 0)
    assert (endless["exit_status"], endless["outcome"]) == ("steps", "no_answer")
    assert [step["status"] for step in endless["steps"]] == ["timeout"] * 3


def test_without_an_image_a_sample_is_unscored(agent_image: str, tmp_path: Path, fake_server: Any) -> None:
    env = prepared_small_tasks(tmp_path, 1, agent_image)
    server = fake_server(answer=lambda body: "```bash\necho SUBMIT_CHANGES\n```")
    more = ("++environment.image=localhost/no-such-image:1", "++server.enable_soft_fail=true", "--accept_lost=100")
    small.evaluated(tmp_path, env, server.base_url, *more)
    (record,) = records_of(tmp_path)
    assert (record["outcome"], record["outcome_cause"]) == ("unscored", "environment")
    assert "no-such-image" in record["detailed_error"]
    assert server.records == []


def test_what_is_refused_before_the_first_request(agent_image: str, tmp_path: Path, fake_server: Any) -> None:
    env = prepared_small_tasks(tmp_path, 1, agent_image)
    server = fake_server()
    line = f"ns eval --benchmarks=./small.py --server_type=vllm --server_address={server.base_url} --model=fake"
    for more, sentence in (
        ("", "Name one: ++agent=bash"),
        ("++agent=bush", "Unknown agent 'bush'; did you mean 'bash'?"),
        ("++agent=bash ++agent_config.step=3", "has no key 'step'"),
        ("++agent=bash ++environment.engine=enroot", "enroot is not installed here"),
        (f"++agent=bash {NAMED}=/images/all.sif", "names one image for all tasks. Put {instance_id} where"),
        (f"++agent=bash {NAMED}=/images/{{instance_idd}}.sif", "'instance_idd'; did you mean 'instance_id'?"),
        (f"++agent=bash {NAMED}=/images/{{instance_id}}.sif", "apptainer for .sif files"),
    ):
        done = ns(f"{line} --output_dir=refused {more}", cwd=tmp_path, env=env)
        assert done.returncode == 2, done.stdout + done.stderr
        assert sentence in " ".join((done.stdout + done.stderr).split())
    assert server.records == []
