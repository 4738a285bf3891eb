# SPDX-License-Identifier: Apache-2.0
"""Rows that bring their own tools, against a scripted server."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.conftest import FakeServerFactory
from tests.server import Answer, FakeServer, FakeServerProcess, Script

from newskills.base.aio import run
from newskills.base.errors import DataError
from newskills.base.protocols import Kit
from newskills.base.records import Row, Sample
from newskills.models import make_model
from newskills.models.config import ServerConfig
from newskills.prompts.renderer import PromptOverrides, load_prompt
from newskills.solve import make_solver
from newskills.solve.calls.function_calls import MORE_TOOLS, MOST_STEPS
from newskills.solve.chat import MAIN, ChatSolver, ChatSolverOptions
from newskills.solve.parts import SolverParts


def tool(name: str) -> Row:
    return {"type": "function", "function": {"name": name, "description": "", "parameters": {"type": "object"}}}


def call(name: str, arguments: Any = None) -> Row:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
    return {"id": "c1", "type": "function", "function": {"name": name, "arguments": text}}


ROW: Row = {"messages": [{"role": "user", "content": "Begin."}], "tools": [tool("mkdir"), tool("pwd")]}
TALK: Row = {
    **ROW,
    "question": [ROW["messages"], [], [{"role": "user", "content": "And now?"}]],
    "late_tools": {"1": [tool("cd")]},
    "involved_classes": ["GorillaFileSystem"],
    "initial_config": {"GorillaFileSystem": {"root": {"home": {"type": "directory", "contents": {}}}}},
}


def solve(server: FakeServer | FakeServerProcess, name: str, row: Row) -> Row:
    chat = ChatSolver(load_prompt(None, PromptOverrides(prompt_format="openai")), ChatSolverOptions())
    solver = make_solver(name, SolverParts(chat=chat), {})
    sample = Sample(id="multi_turn_base_1", row=row)

    async def main() -> Row:
        config = ServerConfig(server_type="vllm", model="fake", base_url=server.base_url)
        model = make_model(config, concurrency=1, environ={})
        try:
            return (await solver.solve(sample, solver.request(sample), Kit(models={MAIN: model}))).fields
        finally:
            await model.close()

    return run(main)


def test_calls_are_recorded_and_not_run(fake_server: FakeServerFactory) -> None:
    server = fake_server(
        Script(
            answer=Answer(text="I will."), tool_calls=(call("mkdir", {"dir_name": "a"}), call("pwd", "{broken"))
        )
    )
    fields = solve(server, "function_calls", ROW)
    assert fields["tool_calls"] == [
        {"name": "mkdir", "arguments": {"dir_name": "a"}},
        {"name": "pwd", "arguments": "{broken"},
    ]
    assert len(server.records) == 1
    assert server.records[0].body["tools"] == ROW["tools"]


def test_no_calls(fake_server: FakeServerFactory) -> None:
    fields = solve(fake_server(Script(answer=Answer(text="No."))), "function_calls", ROW)
    assert (fields["tool_calls"], fields["generation"]) == ([], "No.")


def test_no_tools_are_sent_as_none(fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(answer=Answer(text="No.")))
    solve(server, "function_calls", {**ROW, "tools": []})
    assert "tools" not in server.records[0].body


def test_a_row_without_a_list_of_tools_is_refused(fake_server: FakeServerFactory) -> None:
    with pytest.raises(DataError, match="no list of tools"):
        solve(fake_server(Script()), "function_calls", {"messages": ROW["messages"]})


def test_a_conversation(fake_server: FakeServerFactory) -> None:
    pytest.importorskip("bfcl_eval", reason="needs the simulated services of bfcl-eval")
    turns = ((call("mkdir", {"dir_name": "a"}),), (call("pwd"), call("ls", "[]")), ())
    server = fake_server(Script(answer=Answer(text="Done."), tool_turns=turns))
    fields = solve(server, "conversation_calls", TALK)
    assert fields["tool_call_turns"] == [
        [
            [{"name": "mkdir", "arguments": {"dir_name": "a"}}],
            [{"name": "pwd", "arguments": {}}, {"name": "ls", "arguments": "[]"}],
        ],
        [],
        [],
    ]
    assert fields["num_tool_calls"] == 3
    asked = [record.body for record in server.records]
    assert len(asked) == 5
    assert [len(body["tools"]) for body in asked] == [2, 2, 2, 3, 3]
    last = asked[-1]["messages"]
    assert [message["role"] for message in last].count("tool") == 3
    shown = [message["content"] for message in last if message["role"] == "tool"]
    assert "/home" in shown[1]
    assert shown[2].startswith("Error: the arguments must be a JSON object")
    assert [message["content"] for message in last if message["role"] == "user"] == [
        "Begin.",
        MORE_TOOLS,
        "And now?",
    ]


def test_a_conversation_that_goes_in_circles_ends(fake_server: FakeServerFactory) -> None:
    pytest.importorskip("bfcl_eval", reason="needs the simulated services of bfcl-eval")
    server = fake_server(Script(tool_calls=(call("pwd"),)))
    fields = solve(server, "conversation_calls", TALK)
    assert fields["tool_call_turns"] == []
    assert fields["finish_reason"] == "tool_call_limit_reached"
    assert len(server.records) == MOST_STEPS


def memory_row(number: int) -> Row:
    return {
        "id": f"memory_kv_{number}",
        "messages": [{"role": "system", "content": "Answer."}, {"role": "user", "content": f"Question {number}?"}],
        "tools": [tool("core_memory_add")],
        "scenario": "customer",
        "setting": "You work in a shop.",
        "sessions": [["I am Ann.", "I like tea."], ["Now I live in Rome."]],
    }


def test_memory_outlasts_conversations(fake_server: FakeServerFactory) -> None:
    turns = (
        (call("core_memory_add", {"key": "name", "value": "Ann"}), call("core_memory_add", {"key": "B"})),
        (call("core_memory_remove", {"key": "gone"}), call("core_memory_add", {"key": "drink", "value": "tea"})),
    )  # of each conversation
    server = fake_server(Script(answer=Answer(text="Done."), tool_turns=turns))
    chat = ChatSolver(load_prompt(None, PromptOverrides(prompt_format="openai")), ChatSolverOptions())
    solver = make_solver("memory_calls", SolverParts(chat=chat), {})

    async def main() -> list[Row]:
        config = ServerConfig(server_type="vllm", model="fake", base_url=server.base_url)
        model = make_model(config, concurrency=1, environ={})
        samples = [Sample(id=f"memory_kv_{number}", row=memory_row(number)) for number in (0, 1)]
        try:
            return [
                (await solver.solve(sample, solver.request(sample), Kit(models={MAIN: model}))).fields
                for sample in samples
            ]
        finally:
            await model.close()

    first, second = run(main)
    asked = [record.body["messages"] for record in server.records]
    assert [[message["role"] for message in messages].count("system") for messages in asked] == [1] * len(asked)
    assert "(nothing yet)" in asked[0][0]["content"]
    assert [message["role"] for message in asked[3]] == [
        "system", "user", "assistant", "tool", "tool", "assistant", "tool", "tool", "assistant", "user",
    ]  # fmt: skip
    assert asked[3][-1]["content"] == "I like tea."
    second_session, question = asked[4], asked[7]
    assert [message["role"] for message in second_session] == ["system", "user"]
    assert '"name": "Ann"' in second_session[0]["content"]
    assert '"drink": "tea"' in second_session[0]["content"]
    assert question[-1]["content"] == "Question 0?"
    assert "Answer." in question[0]["content"]
    assert (first["num_tool_calls"], first["generation"], second["num_tool_calls"]) == (4, "Done.", 4)
    assert "num_session_tokens" in first
    assert "num_session_tokens" not in second
    assert first["memory_digest"] == second["memory_digest"]
    assert asked[10][0]["content"] == question[0]["content"], "what a question changes is its own"
    assert len(asked) == 13
