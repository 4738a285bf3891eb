# SPDX-License-Identifier: Apache-2.0
"""The tool loop against a scripted server that speaks the real wire."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.base.http._loopback import loopback, replies
from tests.conftest import FakeServerFactory
from tests.server import Answer, FakeServer, FakeServerProcess, Fault, Script
from tests.solve.tir import Turns

from newskills.base.aio import run
from newskills.base.errors import FatalToolError, SandboxError, ServerError, ToolError
from newskills.base.protocols import Kit, Toolbox, ToolSpec
from newskills.base.records import Inference, Message, Reply, Row, Sample
from newskills.graders.math.grader import MathGrader
from newskills.models import make_model
from newskills.models.config import ServerConfig
from newskills.prompts.renderer import load_prompt
from newskills.solve.calls.tool_calls import read_calls
from newskills.solve.calls.tool_loop import LIMIT_REACHED, UNLIMITED, ToolOptions, ToolSolver
from newskills.solve.chat import MAIN, ChatSolver, ChatSolverOptions

ADD = ToolSpec(
    name="add",
    description="Adds.",
    input_schema={"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
)


class Adder:
    """A Toolbox that adds up, each call a little slower than the next."""

    def __init__(self) -> None:
        self.calls: list[Row] = []
        self.released: list[str] = []
        self.running = self.most = 0

    def specs(self) -> Sequence[ToolSpec]:
        return [ADD]

    async def execute(self, name: str, arguments: Row, request_id: str) -> str:
        if name != "add":
            raise ToolError(f"There is no tool '{name}'; did you mean 'add'?")
        self.calls.append(arguments)
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(0.03 / len(self.calls))
        self.running -= 1
        match arguments.get("a"):
            case 13:
                raise FatalToolError("Out of order.")
            case 14:
                raise SandboxError("Gone.")
            case 15:
                await asyncio.sleep(3600)
        return f"sum {arguments.get('a')}"

    async def release(self, request_id: str) -> Row:
        self.released.append(request_id)
        return {"num_tool_errors": 0, "counted": len(self.calls)}

    async def close(self) -> None: ...


def call(number: int = 1, name: str = "add", arguments: Any = None, **more: Any) -> Row:
    text = json.dumps({"a": number}) if arguments is None else arguments
    return {"id": f"c{number}", "type": "function", "function": {"name": name, "arguments": text}, **more}


def solver_for(chat: ChatSolverOptions | None = None, **options: Any) -> ToolSolver:
    chat_solver = ChatSolver(load_prompt({"user": "{q}"}), chat or ChatSolverOptions())
    return ToolSolver(chat_solver, ToolOptions(specs=(ADD,), **options))


def solve(
    server: FakeServer | FakeServerProcess,
    chat: ChatSolverOptions | None = None,
    *,
    tools: Adder | None = None,
    server_type: str = "vllm",
    patience: float = 60,
    **options: Any,
) -> Row:
    solver = solver_for(chat, **options)
    sample = Sample(id="1", row={"q": "Add it"})
    box = tools or Adder()
    assert isinstance(box, Toolbox)

    async def main() -> Row:
        config = ServerConfig(server_type=server_type, model="fake", base_url=server.base_url)
        model = make_model(config, concurrency=1, environ={})
        try:
            kit = Kit(models={MAIN: model}, tools=box)
            attempt = await asyncio.wait_for(solver.solve(sample, solver.request(sample), kit), patience)
        finally:
            await model.close()
            assert len(set(box.released)) == len(box.released) == 1
        assert (attempt.sample_id, attempt.key) == ("1", solver.request(sample).key())
        return attempt.fields

    return run(main)


def test_the_whole_loop_and_its_record(fake_server: FakeServerFactory) -> None:
    turns = ((call(1), call(2)), (call(3),))
    server = fake_server(Script(answer=Answer(text="It is 3."), reasoning="hm hm", tool_turns=turns))
    tools = Adder()
    fields = solve(server, tools=tools)
    start, end = fields.pop("generation_start_time"), fields.pop("generation_end_time")
    assert fields.pop("generation_time") == pytest.approx(end - start)
    assert [record.body["tools"] for record in server.records] == [fields["tools"]] * 3
    assert fields.pop("tools") == [
        {
            "type": "function",
            "function": {"name": "add", "description": "Adds.", "parameters": ADD.input_schema},
        }
    ]
    assistant = {
        "role": "assistant",
        "content": "It is 3.",
        "reasoning_content": "hm hm",
        "reasoning": "hm hm",
    }
    said = [
        {"role": "user", "content": "Add it"},
        {**assistant, "tool_calls": [call(1, arguments='{"a":1}'), call(2, arguments='{"a":2}')]},
        {"role": "tool", "content": "sum 1", "name": "add", "tool_call_id": "c1"},
        {"role": "tool", "content": "sum 2", "name": "add", "tool_call_id": "c2"},
        {**assistant, "tool_calls": [call(3, arguments='{"a":3}')]},
        {"role": "tool", "content": "sum 3", "name": "add", "tool_call_id": "c3"},
    ]
    assert fields.pop("conversation") == [*said, assistant]
    assert server.records[2].body["messages"] == said
    assert fields == {
        "generation": "It is 3.\nIt is 3.\nIt is 3.",
        "reasoning_content": ["hm hm"] * 3,
        "num_generated_tokens": 15,
        "num_input_tokens": sum(len(record.prompt.split()) for record in server.records),
        "num_reasoning_tokens": 6,
        "num_answer_tokens": 9,
        "finish_reason": "stop",
        "num_tool_calls": 3,
        "tool_metrics": {"num_tool_errors": 0, "counted": 3},
    }
    assert tools.most == 2


def test_reasoning_that_a_turn_leaves_open_hides_no_later_turn() -> None:
    script = Script(tool_turns=((call(1),),))
    grader = MathGrader()
    with FakeServer(script, answer=Turns(r"[THINK]Maybe \boxed{2}, I add.", r"So \boxed{3}.")) as server:
        fields = solve(server)
    assert grader.grade({**fields, "expected_answer": "3"}).outcome == "correct"
    assert fields["conversation"][1]["content"] == r"[THINK]Maybe \boxed{2}, I add."
    with FakeServer(script, answer=Turns(r"[THINK]Maybe \boxed{2}, I add.", r"[THINK]So \boxed{3}?")) as server:
        fields = solve(server)
    assert grader.grade({**fields, "expected_answer": "3"}).outcome == "no_answer"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("endpoint", ["chat", "responses"])
def test_all_wires_carry_calls_and_results(fake_server: FakeServerFactory, endpoint: Any, stream: bool) -> None:
    server = fake_server(Script(tool_turns=((call(7),), (call(8), call(9))), reasoning="so", usage="none"))
    inference = Inference(endpoint_type=endpoint, stream=stream, tokens_to_generate=1000)
    fields = solve(server, ChatSolverOptions(inference=inference))
    assert fields["num_tool_calls"] == 3
    assert [row["role"] for row in fields["conversation"]] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "tool",
        "tool",
        "assistant",
    ]
    body = server.records[-1].body
    if endpoint == "responses":
        kinds = [item.get("type", item.get("role")) for item in body["input"]]
        once = ["reasoning", "assistant", "function_call"]
        outputs = ["function_call_output"]
        assert kinds == ["user", *once, *outputs, *once, "function_call", *outputs, *outputs]
        assert body["input"][-1] == {"type": "function_call_output", "call_id": "c9", "output": "sum 9"}
    limits = [record.body.get("max_tokens", record.body.get("max_output_tokens")) for record in server.records]
    assert limits[0] == 1000
    assert limits[0] > limits[1] > limits[2] > 900


@pytest.mark.parametrize(
    ("wrong", "told", "shown"),
    [
        (call(arguments='{"a": '), "no valid JSON", "add"),
        (call(arguments="[1, 2]"), "must be a JSON object. They were: [1, 2]", "add"),
        (call(arguments='"x"'), "must be a JSON object", "add"),
        (call(arguments="x" * 100_000), "no valid JSON", "add"),
        (call(name="ad"), "did you mean 'add'", "ad"),
        (call(name="Robert'); DROP\n" + "é" * 100), "There is no tool", "Robert____DROP_" + "_" * 49),
        (call(name=""), "names no tool", "tool"),
        ({"id": "c1", "type": "function"}, "names no tool", "tool"),
        ({"function": None}, "names no tool", "tool"),
    ],
)
def test_mistakes_of_the_model_are_answered(
    fake_server: FakeServerFactory, wrong: Row, told: str, shown: str
) -> None:
    server = fake_server(Script(tool_turns=((wrong, call(2)),)))
    fields = solve(server)
    _, turn, refused, result = server.records[-1].body["messages"]
    assert refused["content"].startswith("Error: ")
    assert told in refused["content"]
    assert len(refused["content"]) < 1000
    assert result["content"] == "sum 2"
    echoed = turn["tool_calls"][0]
    assert echoed["function"]["name"] == refused["name"] == shown
    assert echoed["id"] == refused["tool_call_id"] != ""
    assert isinstance(json.loads(echoed["function"]["arguments"]), dict)
    assert fields["num_tool_calls"] == 2
    unreadable = "JSON" in told or ("no tool" in told and "There" not in told)
    assert fields["tool_metrics"]["num_tool_errors"] == unreadable


def test_arguments_that_are_an_object_already_or_nothing(fake_server: FakeServerFactory) -> None:
    tools = Adder()
    first = call(1)
    first["function"]["arguments"] = {"a": 5}
    solve(
        fake_server(Script(tool_turns=((first, call(2, arguments=""), call(3, arguments=" {} ")),))), tools=tools
    )
    assert tools.calls == [{"a": 5}, {}, {}]


@pytest.mark.parametrize(
    ("limit", "turns", "done", "reason"),
    [
        (0, [1], 0, LIMIT_REACHED),
        (2, [1, 1], 2, "stop"),
        (2, [1, 1, 1], 2, LIMIT_REACHED),
        (2, [5], 2, "stop"),
        (3, [2, 5, 1], 3, LIMIT_REACHED),
    ],
)
def test_the_limit_of_calls(
    fake_server: FakeServerFactory, limit: int, turns: list[int], done: int, reason: str
) -> None:
    tools = Adder()
    script = Script(tool_turns=tuple(tuple(call(n) for n in range(count)) for count in turns))
    fields = solve(fake_server(script), tools=tools, max_calls=limit)
    assert (fields["num_tool_calls"], len(tools.calls), fields["finish_reason"]) == (done, done, reason)
    answers = [row["content"] for row in fields["conversation"] if row["role"] == "tool"]
    assert sum("limit of tool calls" in answer for answer in answers) == len(answers) - done


def test_no_limit_has_an_end(fake_server: FakeServerFactory) -> None:
    tools = Adder()
    fields = solve(fake_server(Script(tool_calls=tuple(call(n) for n in range(20, 120)))), tools=tools)
    assert (fields["num_tool_calls"], fields["finish_reason"]) == (UNLIMITED, LIMIT_REACHED)
    assert len(tools.calls) == UNLIMITED


def test_a_thousand_calls_in_one_message(fake_server: FakeServerFactory) -> None:
    tools = Adder()
    fields = solve(fake_server(Script(tool_turns=(tuple(call(n) for n in range(20, 1520)),))), tools=tools)
    assert (fields["num_tool_calls"], fields["finish_reason"], tools.most) == (1000, "stop", 16)
    answers = [row["content"] for row in fields["conversation"] if row["role"] == "tool"]
    assert answers[:1000] == [f"sum {n}" for n in range(20, 1020)]
    assert len(answers) == 1500


def test_the_budget_of_tokens_ends_the_loop(fake_server: FakeServerFactory) -> None:
    answer = Answer(text=" ".join(["word"] * 40))
    chat = ChatSolverOptions(inference=Inference(tokens_to_generate=100))
    server = fake_server(Script(answer=answer, tool_calls=(call(1),)))
    fields = solve(server, chat)
    assert fields["finish_reason"] == "length"
    # 40 generated and 2 for "sum 1" (a token for three characters) a turn: the third is cut, and its call is not run.
    assert [record.body["max_tokens"] for record in server.records] == [100, 58, 16]
    assert (fields["num_tool_calls"], fields["num_generated_tokens"]) == (2, 96)


def test_a_conversation_that_fills_the_context_is_cut_off(fake_server: FakeServerFactory) -> None:
    fields = solve(fake_server(Script(tool_calls=(call(1),), context_tokens=40)))
    assert fields["finish_reason"] == "length"
    assert fields["num_tool_calls"] > 1


def test_trouble_of_the_instrument_ends_the_sample(fake_server: FakeServerFactory) -> None:
    for number, error in ((13, FatalToolError), (14, SandboxError)):
        with pytest.raises(error):
            solve(fake_server(Script(tool_turns=((call(1), call(number), call(2)),))))
    with pytest.raises(ServerError):
        solve(fake_server(Script(tool_turns=((call(1),),), faults=(Fault(kind="status", after=1),))))


def test_a_sample_that_is_given_up_leaves_nothing(fake_server: FakeServerFactory) -> None:
    tools = Adder()
    with pytest.raises(TimeoutError):
        solve(fake_server(Script(tool_turns=((call(15),),))), tools=tools, patience=0.5)
    assert len(tools.released) == 1


def test_without_tools() -> None:
    solver = solver_for()
    sample = Sample(id="1", row={"q": "x"})
    with pytest.raises(FatalToolError, match="no tools"):
        run(lambda: solver.solve(sample, solver.request(sample), Kit()))


def test_what_decides_is_in_the_key() -> None:
    sample = Sample(id="1", row={"q": "x"})
    keys = [
        solver_for(**options).request(sample).key()
        for options in ({}, {"max_calls": 3}, {"settings": {"modules": ["a"]}})
    ]
    assert len(set(keys)) == 3
    assert keys[0] == solver_for().request(sample).key()


def test_images_as_data_are_not_stored() -> None:
    solver = solver_for(dropped_parts=frozenset({"input_audio"}))
    parts: list[Row] = [
        {"type": "text", "text": "look"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
        {"type": "input_audio", "input_audio": {"data": "AAAA"}},
    ]
    request = solver.request(Sample(id="1", row={"q": "x"}))
    request.messages = [Message(role="user", content=parts)]
    (row,) = solver._recorded_messages(request)
    assert row["content"] == [parts[0], parts[2]]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
)


@given(
    st.lists(
        JSON
        | st.fixed_dictionaries(
            {"id": JSON, "function": JSON | st.fixed_dictionaries({"name": JSON, "arguments": JSON})}
        ),
        max_size=4,
    )
)
def test_whatever_comes_is_read(items: list[Any]) -> None:
    calls = read_calls(Reply(text="", tool_calls=items), 0)
    assert len(calls) == len(items)
    assert len({call.id for call in calls}) == len(calls)
    for found in calls:
        row = found.row()
        assert 0 < len(row["function"]["name"]) <= 64
        assert isinstance(json.loads(row["function"]["arguments"]), dict)


def hosted(server_type: str, answers: list[Row], **chat: Any) -> tuple[Row, list[Any]]:
    """The record, and the bodies that the API was sent."""
    solver = solver_for(ChatSolverOptions(inference=Inference(tokens_to_generate=500, **chat), timing=False))
    sample = Sample(id="1", row={"q": "Add it"})

    async def main() -> tuple[Row, list[Any]]:
        async with loopback(replies(*answers)) as place:
            config = ServerConfig(server_type=server_type, model="m", base_url=place.url)
            environ = {"ANTHROPIC_API_KEY": "a", "GEMINI_API_KEY": "g"}
            model = make_model(config, concurrency=1, environ=environ)
            try:
                kit = Kit(models={MAIN: model}, tools=Adder())
                attempt = await solver.solve(sample, solver.request(sample), kit)
            finally:
                await model.close()
            return attempt.fields, [heard.json for heard in place.heard]

    return run(main)


def test_anthropic_gets_its_thinking_back_beside_the_results() -> None:
    blocks = [
        {"type": "thinking", "thinking": "hm", "signature": "sig"},
        {"type": "text", "text": "Adding."},
        *({"type": "tool_use", "id": f"t{n}", "name": "add", "input": {"a": n}} for n in (1, 2)),
    ]
    usage = {"input_tokens": 10, "output_tokens": 20}
    turn = {"content": blocks, "stop_reason": "tool_use", "usage": usage}
    end = {"content": [{"type": "text", "text": "Done."}], "stop_reason": "end_turn", "usage": usage}
    fields, bodies = hosted("anthropic", [turn, end])
    assert bodies[1]["tools"] == [{"name": "add", "description": "Adds.", "input_schema": ADD.input_schema}]
    assert bodies[1]["messages"][1:] == [
        {"role": "assistant", "content": blocks},
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": f"t{n}", "content": [{"type": "text", "text": f"sum {n}"}]}
                for n in (1, 2)
            ],
        },
    ]
    assert bodies[1]["max_tokens"] < bodies[0]["max_tokens"] - 20
    assert (fields["generation"], fields["finish_reason"]) == ("Adding.\nDone.", "stop")
    assert (fields["num_tool_calls"], fields["num_generated_tokens"]) == (2, 40)
    assert fields["conversation"][1]["content"] == "Adding."


def test_gemini_gets_its_signatures_back_beside_the_results() -> None:
    parts: list[Row] = [
        {"text": "hm", "thought": True},
        *({"functionCall": {"name": "add", "args": {"a": n}}, "thoughtSignature": f"s{n}"} for n in (1, 2)),
    ]
    turn = {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]}
    end = {"candidates": [{"content": {"role": "model", "parts": [{"text": "Done."}]}, "finishReason": "STOP"}]}
    fields, bodies = hosted("gemini", [turn, turn, end])
    results = [{"functionResponse": {"name": "add", "response": {"result": f"sum {n}"}}} for n in (1, 2)]
    once = [{"role": "model", "parts": parts}, {"role": "user", "parts": results}]
    assert bodies[2]["contents"][1:] == [*once, *once]
    assert (fields["generation"], fields["finish_reason"], fields["num_tool_calls"]) == ("Done.", "stop", 4)
    assert fields["reasoning_content"] == ["hm", "hm"]
