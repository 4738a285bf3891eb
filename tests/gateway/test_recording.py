# SPDX-License-Identifier: Apache-2.0
"""The log of a gateway: each message once, branches apart, token ids that need no tokenizer, no key anywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.gateway.scripted import ScriptedModel, call, running

from newskills.base.errors import DataError, ServerError
from newskills.base.records import Logprobs, Reply, ReplyTokens, TokenPrices, Usage
from newskills.base.store import write_rows
from newskills.gateway.recording import LOG, LogRecorder, read_log
from newskills.gateway.segments import conversation_rows, token_segments
from newskills.gateway.tasks import GatewayTask
from newskills.view.samples import SampleFilter, iter_samples

KEY = "sk-very-secret"
TOOLS = [{"type": "function", "function": {"name": "ls", "parameters": {"type": "object", "properties": {}}}}]


def ask(url: str, messages: list[dict[str, Any]], path: str = "/t1/v1", **more: Any) -> dict[str, Any]:
    body = {"model": "m", "messages": messages, "tools": TOOLS, **more}
    answer = httpx.post(f"{url}{path}/chat/completions", json=body, headers={"Authorization": f"Bearer {KEY}"})
    message: dict[str, Any] = (
        answer.json()["choices"][0]["message"] if answer.status_code == 200 else answer.json()
    )
    return message


def told(text: str, prompt: list[int], generated: list[int]) -> Reply:
    return Reply(
        text=text,
        reasoning="hm",
        finish_reason="stop",
        usage=Usage(input_tokens=len(prompt), output_tokens=len(generated)),
        tokens=ReplyTokens(prompt=prompt, generated=generated),
        logprobs=Logprobs(tokens=["x"] * len(generated), logprobs=[-0.5] * len(generated)),
    )


def test_histories_are_stored_once_and_branches_are_conversations(tmp_path: Path) -> None:
    model = ScriptedModel(
        told("one", [1, 2], [3]),
        told(" two ", [1, 2, 3, 4], [5, 6]),
        told("other", [1, 2, 3, 7], [8]),
        told("new", [9], [1]),
    )
    recorder = LogRecorder(tmp_path)
    with running(model, recorder=recorder) as served:
        start: list[dict[str, Any]] = [
            {"role": "system", "content": "S" * 5000},
            {"role": "user", "content": "go"},
        ]
        first = ask(served.url, start)
        first.pop("reasoning_content")  # as most programs do
        second = ask(served.url, [*start, first, {"role": "user", "content": "on"}])
        assert second["content"] == " two "
        ask(served.url, [*start, first, {"role": "user", "content": "other way"}])
        ask(served.url, [{"role": "user", "content": "summary"}])
    recorder.close()
    text = (tmp_path / LOG).read_text()
    assert text.count("S" * 5000) == 1
    assert text.count('"tools":') == 1
    assert KEY not in text
    log = read_log(tmp_path / LOG)
    rows = list(conversation_rows(log))
    assert [row["id"] for row in rows] == ["t1-0", "t1-1", "t1-2"]
    assert [[m["content"] for m in row["conversation"]][1:] for row in rows[:2]] == [
        ["go", "one", "on", " two "],
        ["go", "one", "other way", "other"],
    ]
    weights = [[m.get("weight") for m in row["conversation"]] for row in rows]
    assert weights == [[None, None, 1, None, 1], [None, None, 0, None, 1], [None, 1]]
    assert rows[0]["conversation"][2]["reasoning_content"] == "hm"
    assert [(row["num_steps"], row["num_generated_tokens"]) for row in rows] == [(2, 3), (2, 2), (1, 1)]
    assert rows[0]["tools"] == TOOLS
    assert log.exchanges[1].prompt_token_ids == [4]
    assert log.exchanges[2].prompt_token_ids == [7]
    segments = list(token_segments(log))
    assert [segment.ids for segment in segments] == [[1, 2, 3, 4, 5, 6], [1, 2, 3, 7, 8], [9, 1]]
    assert segments[0].generated == [False, False, True, False, True, True]
    assert segments[0].logprobs == [0.0, 0.0, -0.5, 0.0, -0.5, -0.5]
    assert segments[1].generated == [False, False, False, False, True]  # the shared reply is trained on once


@pytest.mark.parametrize("content", [None, "", [], " "])
def test_a_call_without_text_is_the_same_call_however_its_program_says_so(tmp_path: Path, content: Any) -> None:
    calls = Reply(text="", finish_reason="tool_calls", tool_calls=[call("c1", "ls", "{}")])
    recorder = LogRecorder(tmp_path)
    with running(ScriptedModel(calls, Reply(text="done", finish_reason="stop")), recorder=recorder) as served:
        start: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
        message = ask(served.url, start)
        result = {"role": "tool", "tool_call_id": "c1", "content": "a.txt"}
        ask(served.url, [*start, {**message, "content": content}, result])
    recorder.close()
    (row,) = conversation_rows(read_log(tmp_path / LOG))
    assert [message["role"] for message in row["conversation"]] == ["user", "assistant", "tool", "assistant"]


def test_records_are_samples_that_can_be_looked_at(tmp_path: Path) -> None:
    reply = Reply(text="", tool_calls=[call("c1", "ls", "{}")], finish_reason="tool_calls")
    recorder = LogRecorder(tmp_path)
    with running(ScriptedModel(reply, Reply(text="a done")), recorder=recorder) as served:
        first = ask(served.url, [{"role": "user", "content": "where is it?"}])
        assert first["tool_calls"][0]["id"] == "c1"
        turns = [{"role": "user", "content": "where is it?"}, first]
        ask(served.url, [*turns, {"role": "tool", "tool_call_id": "c1", "content": "x"}])
    write_rows(tmp_path / "output.jsonl", conversation_rows(recorder.log.snapshot()))
    recorder.close()
    notes: list[str] = []
    samples = list(iter_samples(tmp_path, SampleFilter(search="where is it"), notes))
    assert len(samples) == 1
    assert "a done" in str(samples[0])


def test_a_log_goes_on_and_counts_what_was_used(tmp_path: Path) -> None:
    model = ScriptedModel(told("one", [1], [2, 3]), ServerError("broken", status=500))
    for _ in range(2):
        recorder = LogRecorder(tmp_path)
        with running(model, recorder=recorder) as served:
            recorder.resume(task := GatewayTask(model=model, name="t1", prices=TokenPrices(read=1e6, written=1e6)))
            served.tasks.tasks["t1"] = task
            ask(served.url, [{"role": "user", "content": "go"}])
        recorder.close()
    log = read_log(tmp_path / LOG)
    assert [(exchange.number, bool(exchange.error)) for exchange in log.exchanges] == [(1, False), (2, True)]
    assert log.exchanges[1].error["status"] == 500
    assert (task.requests, task.tokens, task.cost) == (2, 2, 3.0)
    assert len(log.messages) == 2


def test_a_file_that_is_no_log_is_refused(tmp_path: Path) -> None:
    (tmp_path / LOG).write_text('{"kind":"message","node":"a"}\n')
    with pytest.raises(DataError, match="not the log of a gateway"):
        read_log(tmp_path / LOG)
