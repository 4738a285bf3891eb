# SPDX-License-Identifier: Apache-2.0
"""Tasks: told apart by address and key, closed to others, and ended by their limits."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.gateway.scripted import ScriptedModel, running

from newskills.agents.forwarder import IN_PYTHON
from newskills.base.errors import AuthError, ConfigError, NewskillsError
from newskills.base.records import Inference, Reply, Request, TokenPrices, Usage
from newskills.gateway.recording import LogRecorder, read_log
from newskills.gateway.server import RunGateway
from newskills.gateway.tasks import GatewayTask, TaskLimits

USED = Usage(input_tokens=10, output_tokens=5)
DONE = Reply(text="ok", finish_reason="stop", usage=USED)
BODY = {"model": "m", "messages": [{"role": "user", "content": "a"}]}


def post(url: str, key: str = "x", body: Any = BODY, **headers: str) -> httpx.Response:
    return httpx.post(url, json=body, headers={"Authorization": f"Bearer {key}", **headers}, timeout=60)


def test_names_in_addresses_and_keys() -> None:
    with running(ScriptedModel(DONE)) as served:
        end = "v1/chat/completions"
        assert post(f"{served.url}/{end}").status_code == 200
        assert post(f"{served.url}/a/{end}").status_code == 200
        assert post(f"{served.url}/{end}", key="x:b").status_code == 200
        assert post(f"{served.url}/b/{end}", key="x:b").status_code == 200
        assert {name: task.answered for name, task in served.tasks.tasks.items()} == {"default": 1, "a": 1, "b": 2}
        other = post(f"{served.url}/a/{end}", key="x:b")
        assert (other.status_code, other.json()["error"]["type"]) == (403, "permission_error")
        assert post(f"{served.url}/a%20b/{end}").status_code == 404
        assert post(f"{served.url}/a/b/{end}").status_code == 404
        assert httpx.get(f"{served.url}/a/{end}").status_code == 405


def test_a_token_is_needed_where_one_is_set() -> None:
    with running(ScriptedModel(DONE), token="secret") as served:
        url = f"{served.url}/v1/chat/completions"
        assert [post(url, key).status_code for key in ("x", "secretx", "x:secret", ":secret")] == [401] * 4
        assert [post(url, key).status_code for key in ("secret", "secret:a")] == [200, 200]
        gemini = f"{served.url}/v1beta/models/m:generateContent"
        contents = {"contents": [{"parts": [{"text": "a"}]}]}
        assert httpx.post(f"{gemini}?key=secret", json=contents).status_code == 200
        assert httpx.post(f"{gemini}?key=x", json=contents).json()["error"]["status"] == "UNAUTHENTICATED"


def test_pages_in_a_browser_may_not_ask() -> None:
    with running(ScriptedModel(DONE)) as served:
        url = f"{served.url}/v1/chat/completions"
        assert post(url, Origin="http://evil.example").status_code == 403
        assert post(url, Host="evil.example").status_code == 421


LIMITS = [
    (TaskLimits(requests=2), "2 requests"),
    (TaskLimits(tokens=10), "10 generated tokens"),
    (TaskLimits(cost=30.0), "30 cost"),
]


@pytest.mark.parametrize(("limits", "words"), LIMITS)
def test_limits_end_one_task_and_no_other(limits: TaskLimits, words: str) -> None:
    model = ScriptedModel(DONE)
    with running(model, limits=limits, prices=TokenPrices(read=1e6, written=1e6)) as served:
        answers = [post(f"{served.url}/a/v1/chat/completions") for _ in range(4)]
        assert [answer.status_code for answer in answers] == [200, 200, 400, 400]
        assert answers[2].json()["error"]["code"] == "task_limit"
        assert words in answers[2].json()["error"]["message"]
        assert answers[2].headers["x-should-retry"] == "false"
        assert post(f"{served.url}/b/v1/chat/completions").status_code == 200
    assert len(model.requests) == 3


def test_the_time_of_a_task_ends_a_request_at_work() -> None:
    with running(ScriptedModel(DONE, delay=30.0), limits=TaskLimits(seconds=0.3)) as served:
        began = time.monotonic()
        answers = [post(f"{served.url}/a/v1/chat/completions") for _ in range(2)]
        assert [answer.status_code for answer in answers] == [400, 400]
        assert "0.3 seconds" in answers[0].json()["error"]["message"]
        assert time.monotonic() - began < 20


def test_what_the_run_forces_holds_whatever_a_program_says() -> None:
    run = Request(inference=Inference(temperature=0.5, random_seed=3, tokens_to_generate=50))
    for forced, expected in ((frozenset({"temperature"}), (0.5, 9, 50)), (frozenset[str](), (0.9, 9, 50))):
        model = ScriptedModel(DONE)
        with running(model, request=run, forced=forced) as served:
            url = f"{served.url}/v1/chat/completions"
            post(url, body={**BODY, "temperature": 0.9, "seed": 9, "max_tokens": 70})
            post(url, body={**BODY, "max_tokens": 20})
        asked = model.requests[0].inference
        assert (asked.temperature, asked.random_seed, asked.tokens_to_generate) == expected
        assert model.requests[1].inference.tokens_to_generate == 20


def test_the_budget_of_thinking_of_a_run_replaces_the_effort_of_a_program() -> None:
    run = Request(inference=Inference(thinking_budget=512))
    model = ScriptedModel(DONE)
    with running(model, request=run, forced=frozenset()) as served:
        post(f"{served.url}/v1/chat/completions", body={**BODY, "reasoning_effort": "high"})
    asked = model.requests[0].inference
    assert (asked.thinking_budget, asked.reasoning_effort) == (512, None)


REFUSED: list[tuple[bytes, dict[str, str], int]] = [
    (b"{", {}, 400),
    (b"[]", {}, 400),
    (b"[" * 100_000, {}, 400),
    (b'{"messages": 1}', {}, 400),
    (b'{"messages": [{"role": 1}]}', {}, 400),
    (b'{"messages": [{"role": "user", "content": [{"type": "file"}]}]}', {}, 400),
    (b'{"model": 7, "messages": []}', {}, 400),
    (b"\x1f\x8bno", {"Content-Encoding": "gzip"}, 400),
    (b"{}", {"Content-Encoding": "br"}, 415),
]


@pytest.mark.parametrize(("body", "headers", "status"), REFUSED)
def test_bad_bodies_are_refused(body: bytes, headers: dict[str, str], status: int) -> None:
    with running(ScriptedModel(DONE)) as served:
        for path in ("chat/completions", "responses", "messages", "models/m:generateContent"):
            answer = httpx.post(f"{served.url}/v1/{path}", content=body, headers=headers)
            assert answer.status_code == status, path
            assert answer.json()["error"]
        packed = gzip.compress(json.dumps(BODY).encode())
        answer = httpx.post(f"{served.url}/v1/messages", content=packed, headers={"Content-Encoding": "gzip"})
        assert answer.status_code == 200


HOSTILE: list[Any] = [
    {"id": 7, "function": {"name": "a", "arguments": {"x": 1}}},
    "no call",
    {"id": "c2", "function": "b"},
    {"function": {"name": "c", "arguments": None}},
    {"id": "", "function": {"name": "d", "arguments": "[[["}},
]
ASKED: dict[str, Any] = {
    "chat/completions": BODY,
    "responses": {"model": "m", "input": "a"},
    "messages": BODY,
    "models/m:generateContent": {"contents": [{"parts": [{"text": "a"}]}]},
    "models/m:streamGenerateContent": {"contents": [{"parts": [{"text": "a"}]}]},
}


@pytest.mark.parametrize("path", ASKED)
@pytest.mark.parametrize("streamed", [False, True])
def test_calls_that_are_none_do_no_harm(path: str, streamed: bool, tmp_path: Path) -> None:
    reply = Reply(text="\ud800 \x1b[2J", reasoning="\udfff", tool_calls=HOSTILE, finish_reason="tool_calls")
    recorder = LogRecorder(tmp_path)
    with running(ScriptedModel(reply), recorder=recorder) as served:
        body = {**ASKED[path], "stream": streamed} if "contents" not in ASKED[path] else ASKED[path]
        answer = post(f"{served.url}/v1/{path}", body=body)
        assert answer.status_code == 200
        assert answer.text.count("call_0_0")
        assert "no call" not in answer.text
    recorder.close()
    assert len(read_log(tmp_path / "gateway.jsonl").exchanges) == 1


def test_what_only_the_owner_can_change_is_not_tried_again() -> None:
    raised: list[tuple[NewskillsError, int]] = [
        (AuthError("no key", status=401), 502),
        (ConfigError("no effort"), 400),
    ]
    for error, status in raised:
        with running(ScriptedModel(error)) as served:
            answer = post(f"{served.url}/v1/chat/completions")
            assert (answer.status_code, answer.headers["x-should-retry"]) == (status, "false")


def test_a_program_that_leaves_cancels_its_request() -> None:
    model = ScriptedModel(DONE, delay=60.0)
    with running(model) as served:
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{served.url}/v1/chat/completions", json=BODY, timeout=0.5)
        deadline = time.monotonic() + 30
        while served.gateway.failures < 1:
            assert time.monotonic() < deadline
            time.sleep(0.01)


async def _of_a_run(tmp_path: Path) -> None:
    first, second = (GatewayTask(model=ScriptedModel(DONE), name=name) for name in ("one", "two"))
    async with RunGateway(socket=tmp_path / "s.sock") as gateway:
        gateway.begin("token-1", first)
        gateway.begin("token-2", second)
        base = gateway.url.removesuffix(gateway.path)
        end = "v1/chat/completions"
        async with httpx.AsyncClient() as client:

            async def status(path: str, **headers: str) -> int:
                return (await client.post(f"{base}{path}/{end}", json=BODY, headers=headers)).status_code

            assert await status("token-1") == 200
            assert await status("token-1", **{"x-api-key": "whatever"}) == 200
            assert await status("token-1", **{"x-api-key": "token-2"}) == 403
            assert await status("", Authorization="Bearer token-2") == 200
            assert await status("", Authorization="Bearer other") == 401
            assert await status("token-3") == 404
            own = gateway.path.removesuffix("/v1")
            assert await status(own, **{"X-Session-ID": "token-2"}) == 200
            assert await status(own) == 401
            gateway.end(first)
            assert await status("token-1") == 404
        transport = httpx.AsyncHTTPTransport(uds=str(tmp_path / "s.sock"))
        async with httpx.AsyncClient(transport=transport) as client:
            answer = await client.post(f"http://gateway/token-2/{end}", json=BODY)
            assert answer.json()["choices"][0]["message"]["content"] == "ok"
    assert not (tmp_path / "s.sock").exists()
    assert (len(first.replies), len(second.replies)) == (2, 3)


ASK = """
import json, sys, urllib.request
body = json.dumps({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "a"}]}).encode()
print(json.load(urllib.request.urlopen(sys.argv[1] + "/v1/messages", body))["content"][0]["text"])
"""


def test_a_program_reaches_it_by_the_forwarder_of_containers(tmp_path: Path) -> None:
    async def main() -> str:
        task = GatewayTask(model=ScriptedModel(DONE), name="one")
        async with RunGateway(socket=tmp_path / "s.sock") as gateway:
            gateway.begin("token-1", task)
            with socket.create_server(("127.0.0.1", 0)) as held:
                port = str(held.getsockname()[1])
            forward = [sys.executable, str(IN_PYTHON), str(tmp_path / "s.sock"), port, str(tmp_path / "stop")]
            words = [*forward, sys.executable, "-c", ASK, f"http://127.0.0.1:{port}/token-1"]
            program = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE)
            return (await program.communicate())[0].decode()

    assert asyncio.run(main()) == "ok\n"


def test_tokens_and_the_socket_of_a_run(tmp_path: Path) -> None:
    asyncio.run(_of_a_run(tmp_path))
