# SPDX-License-Identifier: Apache-2.0
"""Who can use the servers: this machine alone, or whoever has the token, unless everybody is told to."""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.commands.running import ns

from newskills.base.http.hosts import is_loopback
from newskills_sandbox.http.hosts import is_own_name

SERVERS = {
    "sandbox": "ns sandbox serve --port=0 --preload=math",
    "evals": "ns serve_evals --port=0 --output_root=out",
    "rewards": "ns serve_rewards --benchmark=gsm8k --port=0",
    "tinker": "ns serve_tinker --model=smollm2 --output_dir=out --port=0",
}


@pytest.mark.parametrize("line", SERVERS.values(), ids=SERVERS)
def test_a_server_without_a_token_stays_on_this_machine_unless_told(line: str, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("tml-secret\n")
    for host in ("0.0.0.0", "''", "::"):
        refused = ns(f"{line} --host={host} --dry_run", cwd=tmp_path)
        assert refused.returncode == 2, refused.stdout
        assert "could use the server. Give --token_file=FILE, or --open" in refused.stderr
    for more in ("", "--host=localhost", "--host=0.0.0.0 --open", "--host=0.0.0.0 --token_file=token"):
        done = ns(f"{line} {more} --dry_run", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "tml-secret" not in done.stdout + done.stderr


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[int]:
    (tmp_path / "token").write_text("secret\n")
    words = ["sandbox", "serve", "--port=0", "--preload=math", f"--token_file={tmp_path / 'token'}"]
    with subprocess.Popen(
        [sys.executable, "-m", "newskills", *words], stdout=subprocess.PIPE, text=True, env=dict(os.environ)
    ) as server:
        assert server.stdout is not None
        line = server.stdout.readline()
        yield int(line.partition("http://127.0.0.1:")[2].partition(" ")[0])
        server.send_signal(signal.SIGINT)
        assert server.wait(120) == 0


def ask(port: int, method: str, path: str, body: str | None = None, **headers: str) -> tuple[int, str]:
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=300)) as connection:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def test_the_sandbox_takes_requests_by_its_own_names_with_the_token(sandbox: int) -> None:
    code, mine = '{"generated_code": "print(1)"}', {"Authorization": "Bearer secret", "X-Session-ID": "a"}
    assert ask(sandbox, "GET", "/health")[0] == 200
    assert ask(sandbox, "POST", "/execute", code)[0] == 401
    assert ask(sandbox, "POST", "/execute", code, **mine)[0] == 200
    assert ask(sandbox, "POST", "/execute", code, **mine, Host=f"localhost:{sandbox}")[0] == 200
    status, said = ask(sandbox, "POST", "/execute", code, **mine, Host="evil.example")
    assert (status, "This server is not evil.example" in said) == (421, True)
    status, said = ask(sandbox, "POST", "/execute", '{"generated_code": "1", "timeout": 3000}', **mine)
    assert (status, "600" in said) == (400, True)


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("localhost", True),
        ("", False),
        ("0.0.0.0", False),
    ],
)
def test_loopback_addresses(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback


@pytest.mark.parametrize(
    ("header", "own"),
    [
        *(
            (name, True)
            for name in ("", "localhost", "LOCALHOST:6000", "127.0.0.1:6000", "[::1]:6000", "10.0.0.7")
        ),
        *(
            (name, False)
            for name in ("evil.example", "evil.example:6000", "localhost.evil.example", "[evil]:1", "x:1:2")
        ),
        ("app.localhost:80", True),
        ("node7:80", True),
    ],
)
def test_names_of_this_machine(header: str, own: bool) -> None:
    assert is_own_name(header, "node7") is own
