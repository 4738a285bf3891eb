# SPDX-License-Identifier: Apache-2.0
"""The chat page against a real server, asked as a browser asks."""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import FakeServerFactory
from tests.server import Answer, FakeServer, FakeServerProcess, Script

from newskills.base.errors import ServerStartError
from newskills.view.chat import ChatOptions, ServedModel, chat_page

PAGE = Path(__file__).parents[2] / "src/newskills/view/chat.html"
TALK = {"messages": [{"role": "user", "content": "Hello <b>you</b>"}]}


@pytest.fixture
def served(fake_server: FakeServerFactory) -> FakeServer | FakeServerProcess:
    return fake_server(Script(answer=Answer(kind="echo"), api_key="k"))


@pytest.fixture
def page(served: FakeServer | FakeServerProcess) -> Iterator[str]:
    options = ChatOptions(port=0, system_message="Be kind.", temperature=0.5, tokens_to_generate=7)
    with chat_page(ServedModel(address=served.url, name="fake", key="k"), options) as url:
        yield url.removeprefix("http://")


def ask(page: str, method: str, path: str, body: Any = None, **headers: Any) -> tuple[int, str, dict[str, str]]:
    connection = http.client.HTTPConnection(page, timeout=300)
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    connection.request(method, path, data, {"Content-Type": "application/json", **names})
    reply = connection.getresponse()
    text = reply.read().decode()
    connection.close()
    return reply.status, text, dict(reply.getheaders())


def test_the_page_and_the_name_of_the_model(page: str) -> None:
    status, text, headers = ask(page, "GET", "/")
    assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert text == PAGE.read_text()
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert json.loads(ask(page, "GET", "/model")[1]) == {"model": "fake"}
    assert ask(page, "GET", "/etc/passwd")[0] == 404


def test_nothing_that_a_model_says_becomes_markup() -> None:
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|https?://", PAGE.read_text())


def test_answers_come_as_the_servers_own_events(page: str, served: FakeServer | FakeServerProcess) -> None:
    status, text, headers = ask(page, "POST", "/chat", TALK)
    assert (status, headers["Content-Type"]) == (200, "text/event-stream")
    events = [json.loads(line[5:]) for line in text.splitlines() if line.startswith("data: {")]
    said = "".join(event["choices"][0]["delta"].get("content") or "" for event in events if event["choices"])
    assert said == TALK["messages"][0]["content"]
    sent = served.records[-1].body
    assert sent["messages"] == [{"role": "system", "content": "Be kind."}, *TALK["messages"]]
    assert {key: sent[key] for key in ("model", "stream", "temperature", "max_tokens")} == {
        "model": "fake",
        "stream": True,
        "temperature": 0.5,
        "max_tokens": 7,
    }
    assert served.records[-1].headers["authorization"] == "Bearer k"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example:7860"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Content_Type": "text/plain"}, 404),
        ({"Content_Length": "99999999"}, 413),
    ],
)
def test_other_sites_in_the_browser_reach_nothing(
    page: str, served: FakeServer | FakeServerProcess, headers: dict[str, str], status: int
) -> None:
    assert ask(page, "POST", "/chat", TALK, **headers)[0] == status
    assert not served.records


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"messages": 3}', b"\xff", b"[" * 100_000])
def test_bodies_that_are_no_talk(page: str, body: bytes) -> None:
    assert ask(page, "POST", "/chat", body)[0] == 400


def test_a_server_that_is_not_there_or_refuses_is_said(served: FakeServer | FakeServerProcess) -> None:
    for model, said in (
        (ServedModel(address="http://127.0.0.1:9", name="m"), "does not answer"),
        (ServedModel(address=served.url, name="m", key="wrong"), "answered 401"),
    ):
        with chat_page(model, ChatOptions(port=0)) as url:
            status, text, _ = ask(url.removeprefix("http://"), "POST", "/chat", TALK)
        assert status == 502
        assert said in json.loads(text)["error"]


def test_a_port_that_is_taken(page: str, served: FakeServer | FakeServerProcess) -> None:
    port = int(page.rpartition(":")[2])
    model = ServedModel(address=served.url, name="m")
    with (
        pytest.raises(ServerStartError, match=f"cannot listen at 127.0.0.1:{port}"),
        chat_page(model, ChatOptions(port=port)),
    ):
        pass
