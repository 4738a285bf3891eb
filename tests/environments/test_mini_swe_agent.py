# SPDX-License-Identifier: Apache-2.0
"""The real mini-swe-agent by our endpoint and our containers: the same command, the same records."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import minisweagent.agents.default as real
import pytest
from tests.commands.running import ns, rows_of
from tests.environments.images import ENGINE, own_containers
from tests.environments.small_tasks import prepared_small_tasks
from tests.environments.tasks import BUGS
from tests.environments.test_bash_agent import prepared
from tests.server.script import Script
from tests.solve.test_agents import Model, Shell

from newskills.base.errors import BadRequestError
from newskills.base.records import Message, Request
from newskills.solve.agents.mini_swe_agent import MiniSweAgent, MiniSweAgentConfig
from newskills.solve.agents.options import AgentOptions

SUBMIT = "git diff > /tmp/p; echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && cat /tmp/p"


def calls(*commands: str) -> Script:
    def call(number: int, command: str) -> tuple[dict[str, Any], ...]:
        function = {"name": "bash", "arguments": json.dumps({"command": command})}
        return ({"id": f"c{number}", "type": "function", "function": function},)

    return Script(tool_turns=tuple(call(number, command) for number, command in enumerate(commands)))


def solved(folder: Path, env: dict[str, str], benchmark: str, url: str, *more: str) -> dict[str, Any]:
    line = (
        f"ns eval --benchmarks=./{benchmark}.py ++agent=mini-swe-agent --server_type=vllm --model=fake "
        f"--server_address={url} --output_dir=results ++environment.engine={ENGINE} ++max_samples=1"
    )
    done = ns(line, *more, cwd=folder, env=env, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
    assert own_containers() == []
    (record,) = rows_of(folder / f"results/eval-results/{benchmark}/output.jsonl")
    return record


@pytest.mark.nightly
def test_it_resolves_a_task(agent_tasks: Path, tmp_path: Path, fake_server: Any) -> None:
    assert real.DefaultAgent.__module__ == "minisweagent.agents.default"
    fix = (agent_tasks / BUGS[0].name / "solution.patch").read_text()
    server = fake_server(calls("ls", f"git apply - <<'EOF'\n{fix}EOF", SUBMIT))
    record = solved(tmp_path, prepared(tmp_path, agent_tasks), "bugs", server.base_url)
    assert (record["outcome"], record["exit_status"]) == ("correct", "submitted")
    assert record["agent"].startswith("mini-swe-agent@2.")
    assert [step["exit_code"] for step in record["steps"]] == [0, 0, 0]
    assert record["num_generated_tokens"] > 0
    roles = [message["role"] for message in record["conversation"]]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "tool", "assistant", "exit"]


def test_without_a_submission_there_is_no_patch(agent_image: str, tmp_path: Path, fake_server: Any) -> None:
    server = fake_server(calls(*["echo x >> new.txt"] * 9))
    env = prepared_small_tasks(tmp_path, 1, agent_image)
    record = solved(tmp_path, env, "small", server.base_url, "++agent_max_turns=2")
    assert (record["outcome"], record["why"]) == ("no_answer", "the patch is empty")
    assert (record["exit_status"], record["num_steps"]) == ("steps", 2)
    assert record["finish_reason"] == "steps", "no reply was truncated"


def test_an_endpoint_without_tool_calls_is_told_which_agent_it_can_have() -> None:
    agent = MiniSweAgent(AgentOptions(agent="mini-swe-agent", max_turns=3), MiniSweAgentConfig())
    request = agent.prepared(Request(messages=[Message(role="user", content="Do it.")]))
    work = agent.work(request, Model("", tools=False), Shell(), {"problem_statement": "Do it."})
    with pytest.raises(BadRequestError, match=r"is refused: tools are not supported\. .* needs \+\+agent=bash"):
        asyncio.run(work)
