# SPDX-License-Identifier: Apache-2.0
"""The tunnel with a stand-in for the program ssh: a process that forwards bytes, and one that refuses."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.base.http._loopback import loopback, replies, run

from newskills.base.errors import ConfigError, TransportError
from newskills.base.records import Message, Request
from newskills.models import make_model
from newskills.models.config import ServerConfig
from newskills.models.tunnel import PortForward

FORWARD = """#!{python}
import asyncio, pathlib, sys
pathlib.Path(__file__).with_name("argv").write_text("\\n".join(sys.argv[1:]))
listen, port, host, target = sys.argv[sys.argv.index("-L") + 1].split(":")
async def pump(reader, writer):
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()
async def handle(reader, writer):
    upstream_reader, upstream = await asyncio.open_connection("127.0.0.1", int(target))
    await asyncio.gather(pump(reader, upstream), pump(upstream_reader, writer))
async def main():
    async with await asyncio.start_server(handle, listen, int(port)) as server:
        await server.serve_forever()
asyncio.run(main())
"""


def install(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = folder / "ssh"
    program.write_text(text)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")


def test_requests_go_through_the_tunnel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, FORWARD.format(python=sys.executable), monkeypatch)
    answer = {"choices": [{"message": {"content": "far"}, "finish_reason": "stop"}]}

    async def work() -> None:
        async with loopback(replies(answer)) as place:
            config = ServerConfig(
                server_type="vllm", model="m", host="inner.example", port=place.port, ssh_server="me@gate"
            )
            model = make_model(config, concurrency=2, environ={"NEMO_SKILLS_SSH_KEY_PATH": "/key"})
            reply = await model.complete(Request(messages=[Message(role="user", content="hi")]))
            assert reply.text == "far"
            assert place.heard[0].headers["host"] == f"inner.example:{place.port}"
            await model.close()
            arguments = (tmp_path / "argv").read_text().split("\n")
            assert arguments[-2:] == ["--", "me@gate"]
            assert arguments[arguments.index("-i") + 1] == "/key"
            assert arguments[arguments.index("-L") + 1].endswith(f":inner.example:{place.port}")

    run(work())


def test_speech_services_go_through_the_tunnel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("riva.client", reason="no nvidia-riva-client here: pip install 'newskills[speech]'")
    from tests.server.riva import RivaServer

    install(tmp_path, FORWARD.format(python=sys.executable), monkeypatch)

    async def work(port: int) -> None:
        config = ServerConfig(
            server_type="tts_nim", model="m", host="inner.example", port=port, ssh_server="me@gate"
        )
        model = make_model(config, concurrency=1, environ={})
        reply = await model.complete(Request(messages=[Message(role="user", content="hi")]))
        assert reply.raw_message is not None
        assert reply.raw_message["audio"]["seconds"] > 0
        await model.close()
        assert f":inner.example:{port}" in (tmp_path / "argv").read_text()

    with RivaServer() as server:
        run(work(server.port))


def test_a_refusal_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "#!/bin/sh\necho 'Permission denied (publickey).' >&2\nexit 255\n", monkeypatch)
    with pytest.raises(TransportError, match=r"status 255: Permission denied \(publickey\)"):
        PortForward("me@gate", None, "h", 1)


def test_a_host_that_would_be_an_option(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not an SSH host"):
        PortForward("-oProxyCommand=touch x", None, "h", 1)


def test_no_ssh_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match="not on the PATH"):
        PortForward("gate", None, "h", 1)


def test_only_http_endpoints_can_be_reached_so(tmp_path: Path) -> None:
    parrot = f"{Path(__file__).with_name('test_config.py')}::Parrot"
    config = ServerConfig(server_type="custom", model="m", model_class=parrot, ssh_server="gate")
    with pytest.raises(ConfigError, match="ssh_server"):
        make_model(config, concurrency=1, environ={})
