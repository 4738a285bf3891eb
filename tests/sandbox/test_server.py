# SPDX-License-Identifier: Apache-2.0
"""The HTTP API over a real socket: the contract, bad input, repeated requests, clients that leave, the token."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Coroutine
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sandbox.carriers import CARRIERS, Carried
from tests.sandbox.toy import ToySandbox

from newskills.base.http.client import HttpClient
from newskills_sandbox.http import shared_calls

T = TypeVar("T")
Headers = tuple[tuple[str, str], ...]


_carrier = CARRIERS[0]


@pytest.fixture(autouse=True, scope="module", params=CARRIERS)
def carrier(request: pytest.FixtureRequest) -> None:
    """All tests run with each of them."""
    global _carrier
    _carrier = request.param


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(asyncio.wait_for(work, 60))


class Api:
    """A served toy and a client of it."""

    def __init__(self, toy: ToySandbox, app: Carried, client: HttpClient, port: int) -> None:
        self.toy, self.app, self.client, self.port = toy, app, client, port

    async def send(
        self, method: str, path: str, body: bytes | None = None, headers: Headers = ()
    ) -> tuple[int, Any]:
        answer = await self.client.request(method, path, 30, body=body, headers=headers)
        return answer.status, json.loads(answer.body)

    async def execute(
        self, code: str, session: str = "s", request_id: str = "", **fields: Any
    ) -> tuple[int, dict[str, Any]]:
        headers = (*named("X-Session-ID", session), *named("X-Request-ID", request_id))
        return await self.send(
            "POST", "/execute", json.dumps({"generated_code": code, **fields}).encode(), headers
        )


def named(name: str, value: str) -> Headers:
    return ((name, value),) if value else ()


@contextlib.asynccontextmanager
async def api(token: str = "") -> AsyncIterator[Api]:
    toy = ToySandbox()
    app = Carried(_carrier, toy, token)
    server = await app.serve("127.0.0.1", 0)
    client = HttpClient(server.url)
    try:
        yield Api(toy, app, client, server.port)
    finally:
        await client.close()
        await server.close(1.0)
        await app.close()


def answer_to(body: bytes, headers: Headers = (("X-Session-ID", "s"),)) -> tuple[int, Any]:
    async def play() -> tuple[int, Any]:
        async with api() as served:
            found = await served.send("POST", "/execute", body, headers)
            assert (await served.execute("x = 1"))[0] == 200
            return found

    return run(play())


def test_a_session_keeps_its_state_and_says_when_it_is_new() -> None:
    async def play() -> list[tuple[int, dict[str, Any]]]:
        async with api() as served:
            return [await served.execute("x = 3"), await served.execute("x"), await served.execute("x", "other")]

    (_, first), (_, second), (_, third) = run(play())
    assert (first["new_session_created"], second["new_session_created"]) == (True, False)
    assert (second["process_status"], second["stdout"], second["isolation_level"]) == ("completed", "3\n", "none")
    assert (third["process_status"], third["new_session_created"]) == ("error", True)
    expected = "process_status stdout stderr isolation_level run_id exit_code seconds new_session_created"
    assert set(first) == set(expected.split())


def test_stateless_languages_need_no_session() -> None:
    async def play() -> tuple[int, dict[str, Any]]:
        async with api() as served:
            return await served.execute("x = 3\nx", "", language="python", more="tolerated", std_input=None)

    status, found = run(play())
    assert (status, found["stdout"]) == (200, "3\n")
    assert "new_session_created" not in found


def test_health_names_the_run() -> None:
    async def play() -> tuple[Any, str, Any]:
        async with api() as served:
            _, executed = await served.execute("x = 1")
            return await served.send("GET", "/health"), served.app.run_id, executed["run_id"]

    (status, health), run_id, told = run(play())
    assert (status, health["status"], health["isolation_level"], health["worker"]) == (200, "healthy", "none", 0)
    assert health["run_id"] == run_id == told != ""


def test_sessions_are_listed_and_deleted() -> None:
    async def play() -> list[Any]:
        async with api() as served:
            await served.execute("x = 1", "a:b+c")
            await served.execute("x = 2", "d")
            return [
                await served.send("GET", "/sessions"),
                await served.send("DELETE", "/sessions/a%3Ab+c"),
                await served.send("DELETE", "/sessions/a%3Ab+c"),
                await served.send("GET", "/sessions"),
                await served.send("DELETE", "/sessions/a%2F..%2Fb"),
                await served.send("DELETE", "/sessions/"),
            ]

    before, deleted, again, after, odd, nameless = run(play())
    assert set(before[1]["sessions"]) == {"a:b+c", "d"}
    assert deleted == (200, {"message": "Session a:b+c is deleted."})
    assert again == (404, {"error": "There is no session a:b+c."})
    assert set(after[1]["sessions"]) == {"d"}
    assert (odd[0], nameless[0]) == (400, 400)


def test_metrics_count() -> None:
    async def play() -> Any:
        async with api() as served:
            await served.execute("x = 1")
            await served.execute("sleep 1", timeout=0.01)
            await served.execute("break")
            return await served.send("GET", "/metrics")

    status, found = run(play())
    assert status == 200
    assert (found["executions"], found["timeouts"], found["failures"], found["in_flight"]) == (2, 1, 1, 0)
    assert found["statuses"] == {"completed": 1, "timeout": 1}
    assert set(found["sessions"]) == {"s"}


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b"", "not valid JSON"),
        (b"{", "not valid JSON"),
        (b"\xff\xfe", "not valid JSON"),
        (b'{"generated_code": "\\ud800"}', "not valid JSON"),
        (b'{"generated_code": "\xed\xa0\x80"}', "not valid JSON"),
        (b'{"generated_code": "x", "timeout": NaN}', "not valid JSON"),
        (b'{"generated_code": "x", "timeout": 1e999}', "not valid JSON"),
        (b"[" * 200_000, "not valid JSON"),
        (b"[]", "must be a JSON object, not a list."),
        (b'"x = 1"', "must be a JSON object, not text."),
        (b"null", "must be a JSON object, not nothing."),
        (b"{}", "generated_code must be text, not nothing."),
        (b'{"generated_code": 1}', "generated_code must be text, not a number."),
        (b'{"generated_code": ["x"]}', "generated_code must be text, not a list."),
        (b'{"generated_code": "x", "language": "pyhton"}', "Unknown language 'pyhton'; did you mean 'python'"),
        (b'{"generated_code": "x", "language": "/bin/sh -c"}', "Unknown language '/bin/sh -c'"),
        (b'{"generated_code": "x", "language": 3}', "language must be text, not a number."),
        (b'{"generated_code": "x", "timeout": "10"}', "timeout must be a number of seconds, not text."),
        (b'{"generated_code": "x", "timeout": true}', "timeout must be a number of seconds, not true or false."),
        (b'{"generated_code": "x", "timeout": 1e300}', "That is too long."),
        (b'{"generated_code": "x", "timeout": 1%s}' % (b"0" * 400), "That is too long."),
        (b'{"generated_code": "x", "std_input": ["a"]}', "std_input must be text, not a list."),
        (b'{"generated_code": "x", "max_output_characters": 1.5}', "must be a whole number, not a number."),
        (b'{"generated_code": "x", "max_output_characters": false}', "must be a whole number, not true or false."),
        (
            b'{"generated_code": "x", "traceback_verbosity": {}}',
            "traceback_verbosity must be text, not an object.",
        ),
        (b'{"generated_code": "x", "language": "%s"}' % (b"x" * 10_000), "Unknown language 'xxx"),
    ],
)
def test_bad_input_is_told_in_one_sentence(body: bytes, sentence: str) -> None:
    status, found = answer_to(body)
    assert status == 400
    assert sentence in found["error"]
    assert len(found["error"]) < 300
    assert "\n" not in found["error"]


@pytest.mark.parametrize(
    ("session", "sentence"),
    [
        ((), "The header X-Session-ID is missing."),
        ((("X-Session-ID", ""),), "The header X-Session-ID is missing."),
        ((("X-Session-ID", "../../etc"),), "The header X-Session-ID may have"),
        ((("X-Session-ID", "a b"),), "The header X-Session-ID may have"),
        ((("X-Session-ID", "é"),), "The header X-Session-ID may have"),
        ((("X-Session-ID", "a"), ("x-session-id", "b c")), "The header X-Session-ID may have"),
        ((("X-Session-ID", "a" * 257),), "The header X-Session-ID may have 1 to 256"),
        ((("X-Session-ID", "a"), ("X-Request-ID", "b\\c")), "The header X-Request-ID may have"),
    ],
)
def test_names_of_sessions_and_requests(session: Headers, sentence: str) -> None:
    status, found = answer_to(b'{"generated_code": "x = 1"}', session)
    assert status == 400
    assert sentence in found["error"]


def test_control_characters_in_a_name_are_no_http() -> None:
    async def play() -> bytes:
        async with api() as served:
            reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
            writer.write(b"POST /execute HTTP/1.1\r\nX-Session-ID: a\x00b\r\nContent-Length: 2\r\n\r\n{}")
            line = await reader.readline()
            writer.close()
            return line

    assert b" 400 " in run(play())


def test_code_of_ten_megabytes_is_refused_and_a_little_less_runs() -> None:
    async def play() -> list[int]:
        async with api() as served:
            return [(await served.execute("x" * size))[0] for size in (10_000_000, 9_999_000)]

    assert run(play()) == [413, 200]


@settings(max_examples=150)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
        max_leaves=8,
    ),
    st.sampled_from(
        ["generated_code", "language", "timeout", "std_input", "max_output_characters", "traceback_verbosity"]
    ),
)
def test_any_value_of_any_key_is_answered(value: Any, key: str) -> None:
    body = json.dumps({"generated_code": "x = 1", "language": "python", key: value}).encode()
    status, found = answer_to(body)
    assert status in (200, 400)
    assert ("process_status" in found) == (status == 200)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/execute", 405),
        ("POST", "/health", 405),
        ("POST", "/sessions", 405),
        ("GET", "/sessions/a", 405),
        ("DELETE", "/sessions", 405),
        ("GET", "/", 404),
        ("GET", "/executed", 404),
        ("GET", "/health?x=1", 200),
    ],
)
def test_paths_and_methods(method: str, path: str, status: int) -> None:
    async def play() -> tuple[int, Any]:
        async with api() as served:
            return await served.send(method, path)

    found, body = run(play())
    assert found == status
    assert status == 200 or "error" in body


def test_a_failing_sandbox_is_a_503_with_its_sentence() -> None:
    async def play() -> tuple[int, Any]:
        async with api() as served:
            return await served.execute("break")

    assert run(play()) == (503, {"error": "No room for a session."})


def test_the_token() -> None:
    async def play() -> list[int]:
        async with api("s3cret") as served:
            body = b'{"generated_code": "x = 1"}'
            session = ("X-Session-ID", "s")
            found = [(await served.send("GET", "/health"))[0]]
            for path in ("/execute", "/sessions", "/metrics"):
                found.append((await served.send("POST" if path == "/execute" else "GET", path, body))[0])
            for given in ("Bearer wrong", "s3cret", "Bearer s3cret"):
                found.append((await served.send("POST", "/execute", body, (session, ("Authorization", given))))[0])
            return found

    assert run(play()) == [200, 401, 401, 401, 401, 401, 200]


def test_web_pages_may_not_use_it() -> None:
    status, found = answer_to(
        b'{"generated_code": "x = 1", "language": "python"}', (("Origin", "http://evil.example"),)
    )
    assert (status, found) == (403, {"error": "Web pages may not use the sandbox."})


def test_a_repeated_request_runs_once() -> None:
    async def play() -> tuple[list[Any], list[str]]:
        async with api() as served:
            await served.execute("x = 0")
            answers = [await served.execute("x += 1\nx", request_id="r1") for _ in range(3)]
            answers += await asyncio.gather(
                *(served.execute("x += 1\nsleep 0.1\nx", request_id="r2") for _ in range(5))
            )
            answers.append(await served.execute("x += 1\nx", "other", request_id="r1"))
            answers.append(await served.execute("x", request_id="r1"))
            return answers, served.toy.begun

    answers, begun = run(play())
    assert [body.get("stdout") for _, body in answers[:8]] == ["1\n"] * 3 + ["2\n"] * 5
    assert answers[8][1]["process_status"] == "error"
    assert answers[9] == (
        400,
        {"error": "This request id was used for another request; use a new id for each request."},
    )
    assert len(begun) == 4


def test_a_failure_is_not_remembered() -> None:
    async def play() -> tuple[list[int], list[str]]:
        async with api() as served:
            return [(await served.execute("break", request_id="r"))[0] for _ in range(2)], served.toy.begun

    assert run(play()) == ([503, 503], ["break", "break"])


async def leave(served: Api, code: str, request_id: str = "") -> None:
    task = asyncio.create_task(served.execute(code, request_id=request_id))
    while code not in served.toy.begun:
        await asyncio.sleep(0.01)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def until(served: Api, cancelled: int) -> None:
    async with asyncio.timeout(40):
        while len(served.toy.cancelled) < cancelled:
            await asyncio.sleep(0.01)


def test_a_client_that_leaves_stops_its_code() -> None:
    async def play() -> None:
        async with api() as served:
            await leave(served, "sleep 50")
            await until(served, 1)
            assert (await served.execute("x = 1"))[0] == 200

    run(play())


def test_a_client_with_a_request_id_may_come_back_for_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_calls, "ORPHAN_SECONDS", 0.5)

    async def play() -> tuple[Any, Any]:
        async with api() as served:
            await served.execute("x = 7")
            await leave(served, "sleep 0.8\nx", "back")
            back = await served.execute("sleep 0.8\nx", request_id="back")
            await leave(served, "sleep 50", "gone")
            await until(served, 1)
            assert served.toy.begun.count("sleep 0.8\nx") == 1
            return back, await served.execute("sleep 50", request_id="gone")

    back, gone = run(play())
    assert (back[0], back[1]["stdout"]) == (200, "7\n")
    assert gone == (503, {"error": "The execution was cancelled because its client had left."})


def test_deleting_a_session_stops_the_cell_that_its_client_left() -> None:
    async def play() -> tuple[list[str], Any]:
        async with api() as served:
            await leave(served, "sleep 50", "gone")
            await asyncio.sleep(0.05)
            await served.send("DELETE", "/sessions/s")
            return served.toy.cancelled, await served.send("GET", "/sessions")

    assert run(play()) == (["sleep 50"], (200, {"sessions": {}}))


def test_a_session_for_one_cell_is_not_kept() -> None:
    async def play() -> tuple[Any, Any]:
        async with api() as served:
            headers = (("X-Session-ID", "s"), ("X-Session-Once", "1"))
            answer = await served.send("POST", "/execute", b'{"generated_code": "x = 2\\nx"}', headers)
            return answer, await served.send("GET", "/sessions")

    (status, found), sessions = run(play())
    assert (status, found["stdout"], found["new_session_created"]) == (200, "2\n", True)
    assert sessions == (200, {"sessions": {}})


def test_old_results_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_calls, "KEEP_BYTES", 2000)

    async def play() -> list[str]:
        async with api() as served:
            for number in (*range(10), 9, 0):
                await served.execute(f"x = {number}", request_id=f"r{number}")
            return served.toy.begun

    assert run(play()) == [f"x = {number}" for number in (*range(10), 0)]


def test_a_thousand_sessions_at_once() -> None:
    async def play() -> int:
        async with api() as served:
            answers = await asyncio.gather(*(served.execute(f"x = {n}\nx", f"s{n}") for n in range(1000)))
            assert [body["stdout"] for _, body in answers] == [f"{n}\n" for n in range(1000)]
            return len(served.toy.sessions())

    assert run(play()) == 1000
