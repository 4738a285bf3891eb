# SPDX-License-Identifier: Apache-2.0
"""`ns gateway` as people use it: a process of its own, killed and started again."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import msgspec
from tests.commands.running import ns
from tests.conftest import FakeServerFactory
from tests.server import Answer, Script

from newskills.gateway.recording import read_log

KEY = "key-of-the-service"
TOKEN = "token-of-the-gateway"
BODY = {"model": "claude-x", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}], "temperature": 0.9}


class Process:
    """A gateway at work; `end` stops it and returns all that it has said."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        self.process, self.text = process, ""
        for line in process.stdout:
            self.text += line
            if match := re.search(r"Gateway at (\S+)", line):
                self.url = match[1]
            if "GOOGLE_GEMINI_BASE_URL" in line:
                break

    def end(self, number: signal.Signals = signal.SIGTERM) -> str:
        assert self.process.stdout is not None
        self.process.send_signal(number)
        self.text += self.process.stdout.read()
        self.process.wait(60)
        return self.text


@contextmanager
def gateway(folder: Path, address: str, *words: str) -> Iterator[Process]:
    argv = [sys.executable, "-m", "newskills", "gateway", "--port=0", f"--output_dir={folder}", "--model=fake"]
    argv += ["--server_type=vllm", f"--server_address={address}", "++server.api_key_env_var=MY_KEY", *words]
    variables = {**os.environ, "MY_KEY": KEY, "NEWSKILLS_GATEWAY_TOKEN": TOKEN}
    with subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=variables
    ) as process:
        try:
            yield Process(process)
        finally:
            process.kill()


def ask(url: str, key: str = TOKEN) -> httpx.Response:
    return httpx.post(f"{url}/demo/v1/messages", json=BODY, headers={"x-api-key": key}, timeout=60)


def test_records_survive_a_kill_and_hold_no_key(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(answer=Answer(kind="sequence", texts=("one", "two")), api_key=KEY))
    folder = tmp_path / "records"
    with gateway(folder, server.base_url, "--max_requests=2", "++inference.temperature=0.25") as running:
        assert ask(running.url).json()["content"] == [{"type": "text", "text": "one"}]
        assert ask(running.url, "other").status_code == 401
        said = running.end(signal.SIGKILL)
    with gateway(folder, server.base_url, "--max_requests=2") as running:
        answer = ask(running.url).json()
        assert (answer["id"], answer["content"][0]["text"], answer["model"]) == ("msg_demo-2", "two", "claude-x")
        assert ask(running.url).status_code == 400  # the limit holds over a kill
        said += running.end()
    assert "2 conversations" in said
    assert [record.body["temperature"] for record in server.records] == [0.25, 0.9]
    assert not [record for record in server.records if "top_p" in record.body or "seed" in record.body]
    log = read_log(folder / "gateway.jsonl")
    assert [(exchange.task, exchange.number) for exchange in log.exchanges] == [("demo", 1), ("demo", 2)]
    rows = [msgspec.json.decode(line) for line in (folder / "output.jsonl").read_bytes().splitlines()]
    assert [row["generation"] for row in rows] == ["one", "two"]
    everything = said + "".join(file.read_text() for file in folder.iterdir())
    assert KEY not in everything
    assert TOKEN not in everything
    shown = ns("ns samples", str(folder), cwd=tmp_path)
    assert shown.returncode == 0
    assert "ungraded" in shown.stdout
    assert "two" in shown.stdout


def test_what_cannot_be_served_is_said_before_the_first_request(tmp_path: Path) -> None:
    base = "ns gateway --server_type=vllm --server_address=http://127.0.0.1:9/v1 --model=m"
    for words, sentence in (
        (("--max_cost=1",), "--max_cost needs prices"),
        (("++inference.endpoint_type=text",), "needs an endpoint with messages"),
        (("--host=0.0.0.0",), "no token is set"),
    ):
        refused = ns(base, f"--output_dir={tmp_path}", *words, cwd=tmp_path)
        assert refused.returncode == 2
        assert sentence in " ".join(refused.stderr.split())
    assert ns("ns gateway", cwd=tmp_path).returncode == 2
    planned = ns(base, "--dry_run", "++inference.temperature=0", cwd=tmp_path)
    assert planned.returncode == 0
    assert "reasoning_effort, temperature" in planned.stdout
