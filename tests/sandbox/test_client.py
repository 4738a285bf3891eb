# SPDX-License-Identifier: Apache-2.0
"""The client against our own server, against one that knows less, and against what is no sandbox at all."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Coroutine
from typing import Any, TypeVar

import pytest
from tests.base.http._loopback import Heard, Loopback, always, loopback, response
from tests.sandbox.carriers import CARRIERS, Carried, client
from tests.sandbox.toy import ToySandbox

from newskills.base.errors import NewskillsError
from newskills.base.protocols import Execution, ExecutionResult, Sandbox
from newskills.sandbox.client import HttpSandbox
from newskills_sandbox.errors import ExecutionRefusedError, SandboxError
from newskills_sandbox.http import client as client_module
from newskills_sandbox.http.client import SandboxClient, wire_name

T = TypeVar("T")


_carrier = CARRIERS[0]


@pytest.fixture(autouse=True, scope="module", params=CARRIERS)
def carrier(request: pytest.FixtureRequest) -> None:
    """All tests run with each of them."""
    global _carrier
    _carrier = request.param


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(asyncio.wait_for(work, 60))


@contextlib.asynccontextmanager
async def served(
    toy: ToySandbox, *, port: int = 0, token: str = "", environ: dict[str, str] | None = None
) -> AsyncIterator[HttpSandbox | SandboxClient]:
    app = Carried(_carrier, toy, token)
    server = await app.serve("127.0.0.1", port)
    sandbox = client(_carrier, "127.0.0.1", server.port, environ or {})
    try:
        yield sandbox
    finally:
        await sandbox.close()
        await server.close(1.0)
        await app.close()


@contextlib.asynccontextmanager
async def to(server: Loopback) -> AsyncIterator[HttpSandbox | SandboxClient]:
    sandbox = client(_carrier, "127.0.0.1", server.port, {})
    try:
        yield sandbox
    finally:
        await sandbox.close()


def cell(code: str, session: str | None = "s", **fields: Any) -> Execution:
    return Execution(code=code, session_id=session, **fields)


def test_it_is_a_sandbox() -> None:
    assert isinstance(HttpSandbox("h", 1, {}), Sandbox)


def test_results_arrive_whole() -> None:
    async def play() -> tuple[ExecutionResult, ExecutionResult]:
        async with served(ToySandbox()) as sandbox:
            return await sandbox.execute(cell("x = 5")), await sandbox.execute(
                cell("x\ny", traceback_verbosity="Minimal")
            )

    first, second = run(play())
    assert (first.status, first.new_session_created, first.session_id, first.isolation_level) == (
        "completed",
        True,
        "s",
        "none",
    )
    assert (second.status, second.stdout) == ("error", "5\nNameError: y\n")
    assert not second.new_session_created
    assert second.seconds > 0


def test_a_cell_without_a_session_leaves_none() -> None:
    async def play() -> tuple[ExecutionResult, dict[str, Any]]:
        toy = ToySandbox()
        async with served(toy) as sandbox:
            result = await sandbox.execute(cell("x = 5\nx", None))
            async with asyncio.timeout(60):
                while toy.sessions():
                    await asyncio.sleep(0.01)
            return result, toy.sessions()

    result, left = run(play())
    assert (result.stdout, result.session_id, left) == ("5\n", None, {})


def test_a_cell_without_a_session_is_deleted_at_a_server_that_would_keep_it() -> None:
    answer = response(b'{"process_status": "completed", "new_session_created": true}')

    async def play() -> list[Heard]:
        async with loopback(always(HEALTHY, answer)) as server:
            async with to(server) as sandbox:
                await sandbox.execute(cell("1", None))
            return list(server.heard)

    _, executed, deleted = run(play())
    assert deleted.line == f"DELETE /sessions/{executed.headers['x-session-id']} HTTP/1.1"


def test_closing_ends_the_sessions_that_were_forgotten() -> None:
    async def play() -> list[set[str]]:
        toy = ToySandbox()
        async with served(toy) as sandbox:
            for name in ("a", "b", "c"):
                await sandbox.execute(cell("x = 5", name))
            await sandbox.delete_session("b")
            await sandbox.delete_session("never was")
            before = set(toy.sessions())
        return [before, set(toy.sessions())]

    assert run(play()) == [{"a", "c"}, set()]


@pytest.mark.parametrize("name", ["sample 12/3#rs1", "ü", "a" * 300, "\ud800", "a\nb"])
def test_any_name_of_a_session_can_be_sent(name: str) -> None:
    async def play() -> tuple[ExecutionResult, dict[str, Any]]:
        toy = ToySandbox()
        async with served(toy) as sandbox:
            await sandbox.execute(cell("x = 5", name))
            result = await sandbox.execute(cell("x", name))
            await sandbox.delete_session(name)
            return result, toy.sessions()

    result, left = run(play())
    assert (result.stdout, result.session_id, left) == ("5\n", name, {})
    assert wire_name("plain-1") == "plain-1"
    assert wire_name("a b") != wire_name("a  b")


def test_code_with_half_a_surrogate_pair_is_sent_as_text() -> None:
    async def play() -> ExecutionResult:
        async with served(ToySandbox()) as sandbox:
            return await sandbox.execute(cell("\ud800"))

    assert run(play()).stdout == "NameError: ?\n"


@pytest.mark.parametrize(
    ("execution", "kind", "sentence"),
    [
        (cell("x", timeout=1e6), ExecutionRefusedError, "That is too long."),
        (cell("x", language="pyhton"), ExecutionRefusedError, "Unknown language 'pyhton'"),
        (cell("x" * 10_000_000), ExecutionRefusedError, "10,000,000 bytes"),
        (cell("break"), SandboxError, "failed: No room for a session."),
    ],
)
def test_what_the_server_says_is_told(execution: Execution, kind: type[SandboxError], sentence: str) -> None:
    async def play() -> None:
        async with served(ToySandbox()) as sandbox:
            await sandbox.execute(execution)

    with pytest.raises(SandboxError) as caught:
        run(play())
    assert isinstance(caught.value, ExecutionRefusedError) is (kind is ExecutionRefusedError)
    assert isinstance(caught.value, NewskillsError) is (_carrier == CARRIERS[0])
    assert sentence in str(caught.value)


def test_the_token_is_sent() -> None:
    async def play() -> str:
        variable = {"NEWSKILLS_SANDBOX_TOKEN": "t0ken"}
        async with served(ToySandbox(), token="t0ken", environ=variable) as sandbox:
            return (await sandbox.execute(cell("x = 5"))).status

    assert run(play()) == "completed"


def test_a_missing_token_is_named() -> None:
    async def play() -> None:
        async with served(ToySandbox(), token="t0ken") as sandbox:
            await sandbox.execute(cell("x = 5"))

    with pytest.raises(SandboxError, match="NEWSKILLS_SANDBOX_TOKEN"):
        run(play())


def test_nobody_there() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]

    async def play() -> None:
        sandbox = client(_carrier, "127.0.0.1", port, {})
        try:
            await sandbox.execute(cell("x"))
        finally:
            await sandbox.close()

    with pytest.raises(SandboxError, match=f"127.0.0.1:{port} cannot be reached"):
        run(play())


@pytest.mark.parametrize("health", [b"{}", b"<html>", b'["healthy"]', b'{"status": "starting"}'])
def test_what_is_no_sandbox(health: bytes) -> None:
    async def play() -> None:
        async with loopback(always(response(health))) as server, to(server) as sandbox:
            await sandbox.start()

    with pytest.raises(SandboxError, match="is not a ready sandbox"):
        run(play())


HEALTHY = response(b'{"status": "healthy", "worker": 3}')


def test_the_reference_server_knows_less() -> None:
    answer = response(b'{"process_status": "completed", "stdout": "1\\n", "stderr": ""}')

    async def play() -> tuple[ExecutionResult, list[Heard]]:
        async with loopback(always(HEALTHY, answer)) as server, to(server) as sandbox:
            return await sandbox.execute(cell("1", timeout=7.0)), list(server.heard)

    result, heard = run(play())
    assert (result.status, result.stdout, result.new_session_created, result.isolation_level) == (
        "completed",
        "1\n",
        False,
        "",
    )
    assert heard[1].headers["x-session-id"] == "s"
    assert heard[1].json == {
        "generated_code": "1",
        "timeout": 7.0,
        "language": "ipython",
        "std_input": "",
        "max_output_characters": 1000,
        "traceback_verbosity": "Plain",
    }


@pytest.mark.parametrize("body", [b"{}", b"no json", b'{"process_status": 3}', b"[1]"])
def test_an_answer_without_a_status_is_no_result(body: bytes) -> None:
    async def play() -> None:
        async with loopback(always(HEALTHY, response(body))) as server, to(server) as sandbox:
            await sandbox.execute(cell("1"))

    with pytest.raises(SandboxError, match="without a process_status"):
        run(play())


class Breaking:
    """Plays a server that hears a cell and hangs up, `times` times."""

    def __init__(self, times: int) -> None:
        self.times = times

    async def __call__(self, place: Loopback, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while (heard := await place.hear(reader)) is not None:
            if heard.path == "/execute" and self.times:
                self.times -= 1
                return
            done = b'{"status": "healthy", "run_id": "r", "process_status": "completed"}'
            writer.write(response(done))
            await writer.drain()


def test_a_broken_connection_is_tried_again_as_the_same_request() -> None:
    async def play() -> list[str]:
        async with loopback(Breaking(2)) as server, to(server) as sandbox:
            assert (await sandbox.execute(cell("1"))).status == "completed"
            return [heard.headers["x-request-id"] for heard in server.heard if heard.path == "/execute"]

    ids = run(play())
    assert len(ids) >= 3
    assert len(set(ids)) == 1


def test_a_connection_that_always_breaks_is_given_up() -> None:
    async def play() -> None:
        async with loopback(Breaking(100)) as server, to(server) as sandbox:
            await sandbox.execute(cell("1"))

    with pytest.raises(SandboxError, match="cannot be reached"):
        run(play())


def test_another_server_on_the_port_is_noticed() -> None:
    async def play() -> str:
        toy = ToySandbox()
        async with served(toy) as sandbox:
            await sandbox.execute(cell("x = 1"))
            port = int(sandbox.address.rsplit(":", 1)[1])
        sandbox = client(_carrier, "127.0.0.1", port, {})
        async with served(toy, port=port) as _:
            await sandbox.execute(cell("x = 1"))
        async with served(toy, port=port) as _:
            with pytest.raises(SandboxError) as caught:
                await sandbox.execute(cell("x"))
        await sandbox.close()
        return str(caught.value)

    said = run(play())
    assert "is not the one that answered before" in said
    assert "another program took its port" in said


def test_a_cell_that_waits_for_its_turn_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "TRANSPORT", 0.1)

    class Queueing(ToySandbox):
        async def execute(self, execution: Execution) -> ExecutionResult:
            await asyncio.sleep(0.6)
            return await super().execute(execution)

    async def play() -> tuple[ExecutionResult, list[str]]:
        toy = Queueing()
        async with served(toy) as sandbox:
            return await sandbox.execute(cell("x = 4\nx", timeout=0.05)), toy.begun

    result, begun = run(play())
    assert (result.status, result.stdout, begun) == ("completed", "4\n", ["x = 4\nx"])


def test_silence_is_unreachable_and_never_a_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "TRANSPORT", 0.1)

    async def silent(place: Loopback, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await place.hear(reader):
            if len(place.heard) > 1:
                await asyncio.sleep(30)
            writer.write(HEALTHY)

    async def play() -> None:
        async with loopback(silent) as server, to(server) as sandbox:
            await sandbox.execute(cell("1", timeout=0.1))

    with pytest.raises(SandboxError, match="cannot be reached"):
        run(play())


def test_many_cells_at_once() -> None:
    async def play() -> list[str]:
        async with served(ToySandbox()) as sandbox:
            results = await asyncio.gather(*(sandbox.execute(cell(f"x = {n}\nx", f"s{n}")) for n in range(500)))
            return [result.stdout for result in results]

    assert run(play()) == [f"{n}\n" for n in range(500)]


def test_a_cancelled_cell_is_stopped_at_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("newskills_sandbox.http.shared_calls.ORPHAN_SECONDS", 0.1)

    async def play() -> list[str]:
        toy = ToySandbox()
        async with served(toy) as sandbox:
            task = asyncio.create_task(sandbox.execute(cell("sleep 50", timeout=60)))
            async with asyncio.timeout(40):
                while not toy.begun:
                    await asyncio.sleep(0.01)
                task.cancel()
                while not toy.cancelled:
                    await asyncio.sleep(0.01)
            return toy.cancelled

    assert run(play()) == ["sleep 50"]


def test_json_of_python_clients_is_understood() -> None:
    """`json.dumps` writes what is outside the Basic Multilingual Plane as a pair of escapes."""

    async def play() -> tuple[int, Any]:
        async with served(ToySandbox()) as sandbox:
            body = json.dumps({"generated_code": "😀", "language": "python"}).encode()
            answer = await sandbox._exchange.send("POST", "/execute", 5, body)
            return answer.status, json.loads(answer.body)["stdout"]

    assert run(play()) == (200, "NameError: 😀\n")
