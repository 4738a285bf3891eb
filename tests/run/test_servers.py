# SPDX-License-Identifier: Apache-2.0
"""Servers are real processes here: small Python ones, and the embedded llama.cpp."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from newskills.base.errors import ConfigError, ServerStartError, StorageError
from newskills.models.serving import ServeSpec
from newskills.run.hosting.servers import RunningServer, free_port, running_server, serve_foreground

SERVER = """
import http.server, os, subprocess, sys, time
port = int(sys.argv[sys.argv.index("--port") + 1])
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/health" else 404)
        self.end_headers()
worker = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(f"pids {os.getpid()} {worker.pid}", flush=True)
http.server.HTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + SERVER
SILENT = "import time\nprint('loading', flush=True)\ntime.sleep(600)"
DEAD = "import sys\nfor i in range(30): print('line', i, flush=True)\nsys.exit('out of memory')"
OWNER = """
import sys, time
from pathlib import Path
from newskills.models.serving import ServeSpec
from newskills.run.hosting.servers import running_server
spec = ServeSpec(model="m", server_type="generic", entrypoint=sys.argv[1])
with running_server(spec, Path(sys.argv[2]), 60) as server:
    print("ready", flush=True)
    time.sleep(600)
"""


def spec_of(program: str, **settings: Any) -> ServeSpec:
    """A generic server whose entry point is `program`."""
    return ServeSpec(model="m", server_type="generic", entrypoint=_entrypoint(program), **settings)


def _entrypoint(program: str) -> str:
    return shlex.join([sys.executable, "-c", program])


def _pids(log: Path) -> list[int]:
    return [int(word) for word in log.read_text().split()[1:3]]


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def _gone(pids: list[int], within: float = 60.0) -> bool:
    deadline = time.monotonic() + within
    while any(_alive(pid) for pid in pids):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def test_a_server_is_ready_inside_and_gone_after_with_its_workers(tmp_path: Path) -> None:
    log = tmp_path / "logs/server.log"
    with running_server(spec_of(SERVER), log, 60) as server:
        address = server.base_url.removesuffix("/v1")
        assert urllib.request.urlopen(f"{address}/health").status == 200
        assert server.model_name == "m"
        pids = _pids(log)
        assert all(_alive(pid) for pid in pids)
    assert _gone(pids)
    assert server.process.returncode is not None


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_it_is_stopped_on_the_way_out_of_an_exception(tmp_path: Path, error: type[BaseException]) -> None:
    log = tmp_path / "server.log"
    with pytest.raises(error), running_server(spec_of(SERVER), log, 60):
        raise error
    assert _gone(_pids(log))


def test_a_server_that_ignores_sigterm_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("newskills.run.hosting.servers.stop_process_group.__defaults__", (0.3,))
    log = tmp_path / "server.log"
    with running_server(spec_of(STUBBORN), log, 60):
        pids = _pids(log)
    assert _gone(pids)


def test_a_dead_server_is_noticed_at_once_with_its_last_lines(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    began = time.monotonic()
    with pytest.raises(ServerStartError) as caught, running_server(spec_of(DEAD), log, 600):
        pass
    assert time.monotonic() - began < 60
    text = str(caught.value)
    assert "exit code 1" in text
    assert "out of memory" in text
    assert "line 29" in text
    assert "line 10\n" not in text
    assert str(log) in text


def test_a_program_that_does_not_exist_is_named(tmp_path: Path) -> None:
    spec = ServeSpec(model="m", server_type="generic", entrypoint="/no/such/engine")
    with (
        pytest.raises(ServerStartError, match="cannot start /no/such/engine: No such file"),
        running_server(spec, tmp_path / "log", 60),
    ):
        pass


def test_a_server_that_hangs_meets_its_deadline(tmp_path: Path) -> None:
    with (
        pytest.raises(ServerStartError, match=r"was not ready after 1 s(?s:.*)loading"),
        running_server(spec_of(SILENT), tmp_path / "log", 1),
    ):
        pass


def test_one_that_accepts_but_never_answers_meets_its_deadline_too(tmp_path: Path) -> None:
    program = "import socket, sys, time\ns = socket.socket()\n" + (
        "s.bind(('127.0.0.1', int(sys.argv[sys.argv.index('--port') + 1])))\ns.listen()\ntime.sleep(600)"
    )
    with pytest.raises(ServerStartError, match="not ready"), running_server(spec_of(program), tmp_path / "log", 1):
        pass


def test_the_answer_of_another_server_is_not_taken_for_ours(tmp_path: Path) -> None:
    with running_server(spec_of(SERVER), tmp_path / "a.log", 60) as other:
        port = int(other.base_url.rpartition(":")[2].split("/")[0])
        with (
            pytest.raises(ServerStartError, match=f"Port {port} of .* cannot be used"),
            running_server(spec_of(SERVER, port=port, host="127.0.0.1"), tmp_path / "b.log", 60),
        ):
            pass


def test_a_port_among_the_engine_arguments_is_the_port(tmp_path: Path) -> None:
    port = free_port()
    with running_server(spec_of(SERVER, extra_args=[f"--port={port}"]), tmp_path / "log", 60) as server:
        assert server.base_url == f"http://127.0.0.1:{port}/v1"


def test_several_nodes_and_unwritable_logs_are_refused(tmp_path: Path) -> None:
    with (
        pytest.raises(ConfigError, match="cluster"),
        running_server(spec_of(SERVER, num_nodes=2), tmp_path / "log", 1),
    ):
        pass
    (tmp_path / "file").touch()
    with pytest.raises(StorageError), running_server(spec_of(SERVER), tmp_path / "file/log", 1):
        pass


@pytest.mark.nightly
@pytest.mark.parametrize("program", [SERVER, STUBBORN], ids=["obedient", "stubborn"])
@pytest.mark.slow
def test_killing_the_owner_leaves_no_server(tmp_path: Path, program: str) -> None:
    log = tmp_path / "server.log"
    argv = [sys.executable, "-c", OWNER, _entrypoint(program), str(log)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "ready\n"
        pids = _pids(log)
        owner.kill()
    assert _gone(pids)


def test_killing_the_guard_leaves_no_server(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    with running_server(spec_of(SERVER), log, 60) as server:
        server.process.kill()
        assert _gone(_pids(log)[:1])


def test_foreground_streams_the_log_until_ctrl_c(tmp_path: Path) -> None:
    program = (
        "import sys\nfrom pathlib import Path\nfrom newskills.models.serving import ServeSpec\n"
        "from newskills.run.hosting.servers import serve_foreground\n"
        "spec = ServeSpec(model='m', server_type='generic', entrypoint=sys.argv[1])\n"
        "ended = serve_foreground(spec, Path(sys.argv[2]), 60, say=lambda text: print(text, flush=True))\n"
        "sys.exit(ended.exit_code if ended.model == 'm' and ended.address else 'no address')"
    )
    log = tmp_path / "server.log"
    argv = [sys.executable, "-c", program, _entrypoint(SERVER), str(log)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert "m is served at http://127.0.0.1:" in process.stdout.readline()
        assert process.stdout.readline().startswith("pids ")
        process.send_signal(signal.SIGINT)
        assert process.stdout.read().endswith("Stopped.\n")
    assert process.returncode == 0
    assert _gone(_pids(log))


def test_foreground_ends_with_the_code_of_a_server_that_ends(tmp_path: Path) -> None:
    program = SERVER.replace(
        "worker = ", "import threading\nthreading.Timer(1, os._exit, (7,)).start()\nworker = "
    )
    said: list[str] = []
    ended = serve_foreground(spec_of(program), tmp_path / "log", 60, say=said.append)
    assert (ended.exit_code, ended.log_file) == (7, tmp_path / "log")
    assert ended.address in "".join(said)


# The embedded model


@pytest.fixture(scope="module")
def smol(local_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    spec = ServeSpec(
        model=str(local_model),
        server_type="llamacpp",
        served_name="smollm2",
        extra_args=["--ctx-per-slot", "512"],
    )
    with running_server(spec, tmp_path_factory.mktemp("smol") / "server.log", 120) as server:
        yield server


def _post(server: RunningServer, path: str, **body: Any) -> dict[str, Any]:
    data = json.dumps({"model": server.model_name, "temperature": 0, **body}).encode()
    request = urllib.request.Request(f"{server.base_url}/{path}", data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=120) as reply:
        parsed: dict[str, Any] = json.load(reply)
    return parsed


def _chat(server: RunningServer, text: str, tokens: int = 16) -> str:
    reply = _post(server, "chat/completions", messages=[{"role": "user", "content": text}], max_tokens=tokens)
    content: str = reply["choices"][0]["message"]["content"]
    return content


@pytest.mark.local_model
def test_the_embedded_server_lists_its_model(smol: RunningServer) -> None:
    with urllib.request.urlopen(f"{smol.base_url}/models") as reply:
        assert [model["id"] for model in json.load(reply)["data"]] == ["smollm2"]


@pytest.mark.local_model
def test_the_embedded_model_answers_greedily_and_alike(smol: RunningServer) -> None:
    answers = {_chat(smol, "What is the capital of France?") for _ in range(3)}
    assert len(answers) == 1
    assert "Paris" in answers.pop()


@pytest.mark.local_model
def test_the_embedded_model_completes_with_logprobs(smol: RunningServer) -> None:
    reply = _post(smol, "completions", prompt="1, 2, 3, 4,", max_tokens=4, logprobs=2)
    choice = reply["choices"][0]
    assert choice["text"].strip().startswith("5")
    assert reply["usage"]["completion_tokens"] == 4
    entries = choice["logprobs"]["content"]
    assert len(entries) == 4
    assert all(entry["logprob"] <= 0 and len(entry["top_logprobs"]) == 2 for entry in entries)


@pytest.mark.nightly
@pytest.mark.local_model
def test_the_embedded_model_serves_sixteen_at_once(smol: RunningServer) -> None:
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda i: _chat(smol, f"Count from {i} to {i + 5}.", 12), range(16)))
    assert all(answer.strip() for answer in answers)


@pytest.mark.local_model
def test_the_embedded_server_answers_those_who_have_its_key(local_model: Path, tmp_path: Path) -> None:
    spec = ServeSpec(model=str(local_model), server_type="llamacpp", extra_args=["--ctx-per-slot", "256"])
    with running_server(spec, tmp_path / "log", 120, key="s3cret-of-a-run") as server:
        url = server.base_url.replace("/v1", "/tokenize")
        for key, status in (("", 401), ("other", 401), ("s3cret-of-a-run", 200)):
            request = urllib.request.Request(url, b'{"content": "a"}', {"Authorization": f"Bearer {key}"})
            try:
                with urllib.request.urlopen(request) as reply:
                    found = reply.status
            except urllib.error.HTTPError as error:
                with error:
                    found = error.code
            assert found == status
        shown = subprocess.run(["ps", "-ewwo", "args"], capture_output=True, text=True, check=True).stdout
        assert "llamacpp_server" in shown
        assert "s3cret-of-a-run" not in shown + repr(server) + (tmp_path / "log").read_text()


@pytest.mark.local_model
def test_the_embedded_server_says_what_is_wrong_with_a_file(local_model: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"not a model")
    with (
        pytest.raises(ServerStartError, match="invalid magic"),
        running_server(ServeSpec(model=str(broken), server_type="llamacpp"), tmp_path / "log", 60),
    ):
        pass


@pytest.mark.local_model
def test_two_embedded_servers_never_share_a_port(smol: RunningServer, local_model: Path, tmp_path: Path) -> None:
    port = smol.base_url.rpartition(":")[2].split("/")[0]
    argv = [sys.executable, "-m", "newskills.models.serving.llamacpp_server", "--model", str(local_model)]
    done = subprocess.run(
        [*argv, "--port", port, "--slots", "1", "--ctx-per-slot", "256"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert f"on port {port}" in done.stderr


@pytest.mark.local_model
def test_a_server_on_its_own_writes_the_port_it_found(local_model: Path, tmp_path: Path) -> None:
    file = tmp_path / "port"
    argv = [sys.executable, "-m", "newskills.models.serving.llamacpp_server", "--model", str(local_model)]
    options = ["--port-file", str(file), "--slots", "1", "--ctx-per-slot", "256", "--threads", "1"]
    with subprocess.Popen([*argv, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline().strip()
        with contextlib.closing(socket.create_connection(("127.0.0.1", int(line.rpartition(":")[2])))):
            pass
        deadline = time.monotonic() + 300
        while not file.exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        assert line.endswith(f":{file.read_text()}")
        os.kill(process.pid, signal.SIGTERM)
        process.communicate()
    assert process.returncode == 0
