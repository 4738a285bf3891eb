# SPDX-License-Identifier: Apache-2.0
"""Conversations with a simulated user: two scripted models, and a real list of tasks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.graders.plain import plain_grader
from tests.server import FakeServer, Script

from newskills.base.aio import run
from newskills.base.errors import ConfigError
from newskills.base.protocols import Kit
from newskills.base.records import Inference, Row, Sample
from newskills.models import make_model
from newskills.models.config import ServerConfig
from newskills.prompts.renderer import Prompt, load_prompt
from newskills.solve import make_solver
from newskills.solve.calls.tau2 import GREETING, _yes_or_no
from newskills.solve.chat import ChatSolver, ChatSolverOptions
from newskills.solve.parts import SolverParts

DATA: Row = {
    "data": {
        "tasks": {"task_1": {"task_id": "task_1", "title": "T", "description": None, "status": "pending"}},
        "users": {"user_1": {"user_id": "user_1", "name": "U", "tasks": ["task_1"]}},
    },
    "user_data": {"notifications": {}},
}
UPDATE = {"name": "update_task_status", "arguments": {"task_id": "task_1", "status": "completed"}}
TASK: Row = {
    "id": "t",
    "domain": "mock",
    "policy": "Be kind.",
    "scenario": "You have done task_1.",
    "user_scenario": {"instructions": "You have done task_1."},
    "initial_state": {},
    "evaluation_criteria": {
        "actions": [UPDATE],
        "reward_basis": ["DB", "NL_ASSERTION"],
        "nl_assertions": ["It is kind."],
    },
}


class Turns:
    """Says its texts one after the other, the last one again and again."""

    def __init__(self, *texts: str) -> None:
        self.texts, self.asked = texts, 0

    def __call__(self, body: Row) -> str:
        self.asked += 1
        return self.texts[min(self.asked, len(self.texts)) - 1]


def tool_call(name: str, arguments: Row | str) -> Row:
    text = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()
    return {"id": "c1", "type": "function", "function": {"name": name, "arguments": text}}


def converse(
    folder: Path,
    task: Row,
    agent: Turns,
    customer: Turns,
    script: Script | None = None,
    load: Callable[[str], Prompt] = load_prompt,
    **config: Any,
) -> tuple[Row, list[Row], list[Row]]:
    """(fields, requests to the agent's model, requests to the user's)."""
    (folder / "mock.json").write_bytes(msgspec.json.encode(DATA))
    chat = ChatSolver(load_prompt("tau2/agent"), ChatSolverOptions(inference=Inference(tokens_to_generate=500)))
    solver = make_solver("tau2", SolverParts(chat=chat, load=load), {"data": str(folder), **config})
    sample = Sample(id="t", row=task)
    with FakeServer(script, answer=agent) as first, FakeServer(None, answer=customer) as second:

        async def main() -> Row:
            configs = {
                role: ServerConfig(server_type="vllm", model="fake", base_url=server.base_url)
                for role, server in (("main", first), ("user", second))
            }
            models = {role: make_model(config, concurrency=1, environ={}) for role, config in configs.items()}
            try:
                return (await solver.solve(sample, solver.request(sample), Kit(models=models))).fields
            finally:
                for model in models.values():
                    await model.close()

        fields = run(main)
        return fields, [record.body for record in first.records], [record.body for record in second.records]


def test_the_agent_calls_and_the_user_ends(tmp_path: Path) -> None:
    script = Script(tool_turns=([tool_call(UPDATE["name"], UPDATE["arguments"])],))
    user = Turns("I have done task_1.", "Thanks! ###STOP###", "It was.\nYes")
    fields, asked, heard = converse(tmp_path, TASK, Turns("It is marked as completed."), user, script)
    assert fields["ended"] == "user_stop"
    said = [m for m in fields["conversation"] if m["role"] != "tool" and not m.get("tool_calls")]
    assert [(m["role"], m["content"]) for m in said] == [
        ("assistant", GREETING),
        ("user", "I have done task_1."),
        ("assistant", "It is marked as completed."),
        ("user", "Thanks! ###STOP###"),
    ]
    assert fields["nl_judgements"] == [True]
    assert fields["generation"] == "It is marked as completed."
    assert "Be kind." in asked[0]["messages"][0]["content"]
    assert [m["role"] for m in asked[0]["messages"]] == ["system", "assistant", "user"]
    assert "update_task_status" in {tool["function"]["name"] for tool in asked[0]["tools"]}
    assert "You have done task_1." in heard[0]["messages"][0]["content"]
    assert [m["role"] for m in heard[1]["messages"]] == ["system", "user", "assistant", "user"]
    assert {tool["function"]["name"] for tool in heard[0]["tools"]} == {
        "check_notifications",
        "dismiss_notification",
    }
    assert "It is kind." in heard[2]["messages"][-1]["content"]
    score = plain_grader("tau2", {"data": str(tmp_path)}).grade({**TASK, **fields})
    assert score.outcome == "correct", score


def test_conversations_without_an_end(tmp_path: Path) -> None:
    user = Turns("And then?")
    fields, asked, _ = converse(tmp_path, TASK, Turns("Well."), user, max_steps=6)
    assert fields["ended"] == "max_steps"
    assert fields["nl_judgements"] == []
    assert len(asked) == 3
    wild = Script(tool_turns=([tool_call("fly", {}), tool_call(UPDATE["name"], "{")],) * 3)
    fields, _, _ = converse(tmp_path, TASK, Turns("Well."), Turns("Go!"), wild, max_errors=3)
    assert fields["ended"] == "too_many_errors"
    told = [m["content"] for m in fields["conversation"] if m["role"] == "tool"]
    assert told[0] == "Error: there is no function fly"
    assert told[1].startswith("Error: the arguments are no valid JSON")
    for record in (fields, {**fields, "ended": "user_stop"}):
        assert plain_grader("tau2", {"data": str(tmp_path)}).grade({**TASK, **record}).outcome == "wrong"


def test_a_conversation_goes_on_from_its_history(tmp_path: Path) -> None:
    history = [
        {"role": "user", "content": "Make a task."},
        {
            "role": "assistant",
            "tool_calls": [
                {"id": "call_1", "name": "create_task", "arguments": {"user_id": "user_1", "title": "New"}}
            ],
        },
        {"role": "tool", "id": "call_1", "content": '{"task_id":"task_2"}'},
        {"role": "assistant", "content": "It is task_2."},
    ]
    task = {**TASK, "initial_state": {"message_history": history}}
    script = Script(tool_turns=((), [tool_call(UPDATE["name"], {**UPDATE["arguments"], "task_id": "task_2"})]))
    fields, asked, _ = converse(tmp_path, task, Turns("Done."), Turns("Complete it.", "###STOP###", "No"), script)
    assert [m["role"] for m in asked[0]["messages"]] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
    ]
    assert fields["nl_judgements"] == [False]


def test_the_user_and_the_judge_are_worded_as_the_run_loads_prompts(tmp_path: Path) -> None:
    """Which is by their official words where these are."""
    texts = {
        "tau2/user": "Official: {scenario}",
        "tau2/assertion": "Official: {assertion} in {conversation}",
    }
    user = Turns("###STOP###", "Yes")
    _, _, heard = converse(
        tmp_path, TASK, Turns("Well."), user, load=lambda name: load_prompt({"user": texts[name]})
    )
    assert heard[0]["messages"][0] == {"role": "system", "content": "Official: You have done task_1."}
    assert heard[-1]["messages"][-1]["content"].startswith("Official: It is kind. in ")


def test_a_user_is_needed(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="role 'nobody'"):
        converse(tmp_path, TASK, Turns("Well."), Turns("Go!"), user="nobody")


@pytest.mark.parametrize(
    ("text", "verdict"),
    [("It was so.\n**Yes.**", True), ("No", False), ("Verdict: no\n", False), ("Yes and no", None), ("", None)],
)
def test_verdicts(text: str, verdict: bool | None) -> None:
    assert _yes_or_no(text) is verdict
