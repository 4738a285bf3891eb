# SPDX-License-Identifier: Apache-2.0
"""The fake server against a plain socket client: it must break exactly what it is told to break."""

from __future__ import annotations

import email.utils
import http.client
import json
import threading
import time
from typing import Any

import pytest

from tests.server import CONTEXT_SHAPES, Answer, FakeServer, FakeServerProcess, Fault, Latency, Script

CHAT = "/v1/chat/completions"


def ask(server: Any, path: str = CHAT, prompt: str = "one two", **body: Any) -> tuple[int, Any]:
    """One request on a connection of its own: status and decoded body."""
    reply, data = raw(server, path, prompt, **body)
    return reply.status, json.loads(data)


def raw(server: Any, path: str = CHAT, prompt: str = "one two", **body: Any) -> tuple[Any, bytes]:
    headers = body.pop("headers", {})
    if "chat" in path:
        body.setdefault("messages", [{"role": "user", "content": prompt}])
    else:
        body.setdefault("input" if "responses" in path else "prompt", prompt)
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    try:
        connection.request("POST", path, json.dumps({"model": "fake", **body}), headers)
        reply = connection.getresponse()
        return reply, reply.read()
    finally:
        connection.close()


def get(server: Any, path: str) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    try:
        connection.request("GET", path)
        reply = connection.getresponse()
        return reply.status, json.loads(reply.read())
    finally:
        connection.close()


def said(body: Any) -> str:
    return body["choices"][0]["message"]["content"]


@pytest.mark.parametrize("prefix", ["/v1", "", "/any/prefix"])
def test_chat_completions_and_responses_share_one_answer(fake_server: Any, prefix: str) -> None:
    server = fake_server(Script(answer=Answer(text="six  words are  not four")))
    _, chat = ask(server, f"{prefix}/chat/completions")
    _, text = ask(server, f"{prefix}/completions")
    _, responses = ask(server, f"{prefix}/responses")
    assert said(chat) == text["choices"][0]["text"] == responses["output"][0]["content"][0]["text"]
    assert chat["usage"] == {"prompt_tokens": 2, "completion_tokens": 5, "total_tokens": 7}
    assert responses["usage"]["output_tokens"] == 5
    assert [record.prompt for record in server.records] == ["one two"] * 3
    assert [record.outcome for record in server.records] == ["200"] * 3


def test_other_routes(fake_server: Any) -> None:
    server = fake_server(Script(models=("a", "b"), context_tokens=99))
    assert get(server, "/health") == (200, {"status": "ok"})
    assert [m["id"] for m in get(server, "/v1/models")[1]["data"]] == ["a", "b"]
    ids = ask(server, "/tokenize", prompt="a b a")[1]
    assert ids["count"] == 3
    assert ids["max_model_len"] == 99
    assert ask(server, "/detokenize", tokens=ids["tokens"])[1]["prompt"] == "a b a"
    assert get(server, "/v1/nothing")[0] == 404
    server.script = Script(healthy=False)
    assert get(server, "/health")[0] == 503
    assert server.records == []


def test_answers_by_name(fake_server: Any) -> None:
    server = fake_server(Script(answer=Answer(kind="echo")))
    assert said(ask(server, prompt="say this")[1]) == "say this"
    server.script = Script(answer=Answer(kind="table", table={"apples": "7"}, text="who knows"))
    assert said(ask(server, prompt="Tom has apples")[1]) == r"The answer is \boxed{7}."
    assert said(ask(server, prompt="Tom has pears")[1]) == "who knows"
    server.script = Script(answer=Answer(kind="random", modulus=1000))
    drawn = {said(ask(server, seed=seed)[1]) for seed in (1, 2, 3, 1, 2, 3)}
    assert len(drawn) == 3
    server.script = Script(answer=Answer(kind="sequence", texts=("a", "b")))
    assert [said(ask(server, prompt=p)[1]) for p in ("x", "x", "y", "x")] == ["a", "b", "a", "b"]
    with FakeServer(answer=lambda body: body["messages"][0]["content"].upper()) as other:
        assert said(ask(other, prompt="loud")[1]) == "LOUD"


def test_limits_stops_choices_and_reasoning(fake_server: Any) -> None:
    server = fake_server(Script(answer=Answer(text="a b STOP c")))
    choice = ask(server, max_tokens=2)[1]["choices"][0]
    assert (choice["message"]["content"], choice["finish_reason"]) == ("a b", "length")
    choice = ask(server, stop=["STOP", "zzz"])[1]["choices"][0]
    assert (choice["message"]["content"], choice["stop_reason"]) == ("a b ", "STOP")
    assert len(ask(server, n=3)[1]["choices"]) == 3
    server.script = Script(reasoning="hm well", answer=Answer(text="yes"), finish_reason="length")
    body = ask(server)[1]
    assert body["choices"][0]["message"] == {"role": "assistant", "content": "yes", "reasoning_content": "hm well"}
    assert body["choices"][0]["finish_reason"] == "length"
    assert body["usage"]["completion_tokens_details"] == {"reasoning_tokens": 2}


def test_usage_can_lie(fake_server: Any) -> None:
    server = fake_server(Script(usage="none"))
    assert "usage" not in ask(server)[1]
    server.script = Script(usage="wrong")
    assert ask(server)[1]["usage"]["prompt_tokens"] == 1002
    server.script = Script(usage="zero")
    assert ask(server)[1]["usage"]["total_tokens"] == 0


def test_logprobs_in_both_shapes(fake_server: Any) -> None:
    server = fake_server(Script(answer=Answer(text="a b")))
    content = ask(server, logprobs=True, top_logprobs=2)[1]["choices"][0]["logprobs"]["content"]
    assert [entry["token"] for entry in content] == ["a", " b"]
    assert len(content[0]["top_logprobs"]) == 2
    assert content[0]["top_logprobs"][0]["logprob"] == content[0]["logprob"] <= 0
    flat = ask(server, "/v1/completions", logprobs=2)[1]["choices"][0]["logprobs"]
    assert flat["tokens"] == ["a", " b"]
    assert flat["text_offset"] == [0, 1]
    assert flat["token_logprobs"][0] == content[0]["logprob"]
    assert set(flat["top_logprobs"][1]) == {" b", " b~1"}


@pytest.mark.parametrize("path", [CHAT, "/v1/completions"])
def test_streams_tokens(fake_server: Any, path: str) -> None:
    server = fake_server(Script(answer=Answer(text="a b c"), reasoning="" if "chat" not in path else "hm"))
    data = raw(server, path, stream=True, stream_options={"include_usage": True})[1].decode()
    lines = [line.removeprefix("data: ") for line in data.split("\n\n") if line]
    assert lines[-1] == "[DONE]"
    events = [json.loads(line) for line in lines[:-1]]
    choices = [choice for event in events for choice in event["choices"]]
    text = "".join(c.get("text", "") + (c.get("delta", {}).get("content") or "") for c in choices)
    assert text == "a b c"
    assert choices[-1]["finish_reason"] == "stop"
    assert events[-1]["usage"]["completion_tokens"] >= 3


def test_streams_responses(fake_server: Any) -> None:
    server = fake_server(Script(answer=Answer(text="a b c")))
    data = raw(server, "/v1/responses", stream=True)[1].decode()
    events = [json.loads(line[6:]) for line in data.split("\n") if line.startswith("data: ")]
    assert "".join(e["delta"] for e in events if e["type"] == "response.output_text.delta") == "a b c"
    assert events[-1]["type"] == "response.completed"


def test_conditions_of_faults(fake_server: Any) -> None:
    def statuses(script: Script, prompts: str = "aaaaaa") -> list[int]:
        server.script = script
        return [ask(server, prompt=prompt)[0] for prompt in prompts]

    server = fake_server()
    assert statuses(Script(faults=(Fault(kind="status", every=3),))) == [200, 200, 500, 200, 200, 500]
    assert statuses(Script(faults=(Fault(kind="status", status=503, first=2),))) == [503, 503, 200, 200, 200, 200]
    assert statuses(Script(faults=(Fault(kind="status", status=422, after=4),)))[3:] == [200, 422, 422]
    assert statuses(Script(faults=(Fault(kind="status", status=404, marker="b"),)), "aba") == [200, 404, 200]
    assert statuses(Script(faults=(Fault(kind="status", first_per_prompt=1),)), "abab") == [500, 500, 200, 200]
    shared = Script(faults=(Fault(kind="status", share=0.5),), seed=1)
    drawn = statuses(shared)
    assert set(drawn) == {200, 500}
    assert statuses(shared) == drawn


def test_retry_after_in_both_forms(fake_server: Any) -> None:
    fault = {"kind": "status", "status": 429, "retry_after": 7}
    server = fake_server(Script(faults=(Fault(**fault, first=1), Fault(**fault, http_date=True))))
    assert raw(server)[0].getheader("Retry-After") == "7"
    moment = email.utils.parsedate_to_datetime(raw(server)[0].getheader("Retry-After")).timestamp()
    assert 3 < moment - time.time() < 9


def test_broken_connections(fake_server: Any) -> None:
    server = fake_server(Script(faults=(Fault(kind="reset"),)))
    with pytest.raises((ConnectionResetError, http.client.RemoteDisconnected)):
        ask(server)
    for stream in (False, True):
        server.script = Script(faults=(Fault(kind="reset_mid_body"),))
        with pytest.raises(ConnectionResetError):
            raw(server, stream=stream)
        server.script = Script(faults=(Fault(kind="truncate"),))
        with pytest.raises(http.client.IncompleteRead):
            raw(server, stream=stream)
    assert [record.outcome for record in server.records[:3]] == ["reset", "reset_mid_body", "truncate"]


def test_broken_bodies(fake_server: Any) -> None:
    server = fake_server(Script(faults=(Fault(kind="malformed"),)))
    reply, data = raw(server)
    assert reply.status == 200
    with pytest.raises(json.JSONDecodeError):
        json.loads(data)
    server.script = Script(faults=(Fault(kind="empty_choices"),))
    assert ask(server)[1]["choices"] == []
    assert ask(server, "/v1/responses")[1]["output"] == []
    server.script = Script(faults=(Fault(kind="no_content"),))
    assert said(ask(server)[1]) is None
    server.script = Script(
        faults=(Fault(kind="status", status=200, body="<p>proxy</p>", content_type="text/html"),)
    )
    assert raw(server)[1] == b"<p>proxy</p>"


def test_slow_replies(fake_server: Any) -> None:
    def seconds(script: Script) -> float:
        server.script, start = script, time.monotonic()
        assert ask(server)[0] == 200
        return time.monotonic() - start

    server = fake_server()
    assert seconds(Script(latency=Latency(fixed=0.1))) >= 0.1
    assert seconds(Script(latency=Latency(tail=0.1, tail_share=1.0))) >= 0.1
    assert seconds(Script(faults=(Fault(kind="delay", seconds=0.1),))) >= 0.1
    assert seconds(Script(faults=(Fault(kind="drip", seconds=0.0005),))) >= 0.1
    assert Latency(jitter=1.0).draw(3, 5) == Latency(jitter=1.0).draw(3, 5) < 1.0


def test_hang_ends_when_the_client_leaves(fake_server: Any) -> None:
    server = fake_server(Script(faults=(Fault(kind="hang"),)))
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=0.2)
    connection.request("POST", CHAT, json.dumps({"messages": []}))
    with pytest.raises(TimeoutError):
        connection.getresponse()
    connection.close()
    until(lambda: server.records[0].ended is not None)
    server.script = Script(faults=(Fault(kind="hang", seconds=0.05),))
    with pytest.raises((ConnectionResetError, http.client.RemoteDisconnected)):
        ask(server)


def until(holds: Any, seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "did not happen in time"
        time.sleep(0.01)


def test_keys_models_and_bad_requests(fake_server: Any) -> None:
    server = fake_server(Script(api_key="secret", strict_model=True))
    assert ask(server)[0] == 401
    assert get(server, "/v1/models")[0] == 401
    assert ask(server, headers={"Authorization": "Bearer secret"})[0] == 200
    status, body = ask(server, model="gpt", headers={"Authorization": "Bearer secret"})
    assert (status, body["error"]["code"]) == (404, "model_not_found")
    server.script = Script()
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    connection.request("POST", CHAT, b"{no json")
    assert connection.getresponse().status == 400
    connection.close()


@pytest.mark.parametrize("shape", CONTEXT_SHAPES)
def test_context_limits(fake_server: Any, shape: str) -> None:
    server = fake_server(Script(context_tokens=10, context_shape=shape))
    assert ask(server, prompt="a b c", max_tokens=7)[0] == 200
    status, body = ask(server, prompt="a b c", max_tokens=8)
    assert status == 400
    assert body["error"]["message"]
    server.script = Script(faults=(Fault(kind="context_limit", context_shape=shape, marker="far"),))
    assert [ask(server, prompt=p)[0] for p in ("far", "near")] == [400, 200]


def test_context_numbers_are_told(fake_server: Any) -> None:
    server = fake_server(Script(context_tokens=10, context_shape="openai"))
    error = ask(server, prompt="a b c", max_tokens=8)[1]["error"]
    assert "you requested 11 tokens (3 in the messages, 8 in the completion)" in error["message"]
    assert error["code"] == "context_length_exceeded"


@pytest.mark.parametrize("process", [False, True])
def test_goes_down_and_comes_back_on_the_same_port(fake_server: Any, process: bool) -> None:
    server = fake_server(process=process)
    server.down(3.0)
    until(lambda: not reachable(server))
    until(lambda: reachable(server))
    assert ask(server)[0] == 200


def test_down_by_script(fake_server: Any) -> None:
    server = fake_server(Script(faults=(Fault(kind="down", marker="now", seconds=0.3),)))
    with pytest.raises((ConnectionResetError, http.client.RemoteDisconnected)):
        ask(server, prompt="now")
    with pytest.raises(ConnectionRefusedError):
        ask(server)
    until(lambda: reachable(server))


def reachable(server: Any) -> bool:
    try:
        return get(server, "/health")[0] == 200
    except OSError:  # refused, reset, or accepted by nobody in the very moment in which it closes
        return False


@pytest.mark.parametrize("process", [False, True])
def test_counts_requests_in_flight(fake_server: Any, process: bool) -> None:
    server = fake_server(Script(latency=Latency(fixed=0.3)), process=process)
    threads = [threading.Thread(target=ask, args=(server,)) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert server.max_in_flight == 5
    assert sorted(record.in_flight for record in server.records) == [1, 2, 3, 4, 5]
    assert len(server.log.records) == 5


def test_keeps_connections_alive(fake_server: Any) -> None:
    server = fake_server(Script(faults=(Fault(kind="status", every=2),)))
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    statuses = []
    for _ in range(4):
        connection.request("POST", CHAT, iter([b'{"messages"', b": []}"]), {}, encode_chunked=True)
        reply = connection.getresponse()
        statuses.append(reply.status)
        reply.read()
    connection.close()
    assert statuses == [200, 500, 200, 500]
    assert {record.connection for record in server.records} == {1}


def test_process_takes_a_new_script() -> None:
    with FakeServerProcess(Script(answer=Answer(text="old"))) as server:
        assert said(ask(server)[1]) == "old"
        server.script = Script(answer=Answer(text="new"))
        assert said(ask(server)[1]) == "new"
        assert server.script.answer.text == "new"
        assert [record.outcome for record in server.records] == ["200", "200"]
    assert not reachable(server)


def test_stop_refuses_and_leaves_no_thread() -> None:
    before = threading.active_count()
    server = FakeServer()
    server.stop()
    server.stop()
    assert not reachable(server)
    assert threading.active_count() == before


def test_tool_calls(fake_server: Any) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    server = fake_server(Script(tool_calls=(call,), answer=Answer(text="")))
    choice = ask(server)[1]["choices"][0]
    assert (choice["finish_reason"], choice["message"]["tool_calls"]) == ("tool_calls", [call])
    assert ask(server, "/v1/responses")[1]["output"][-1]["call_id"] == "c1"
