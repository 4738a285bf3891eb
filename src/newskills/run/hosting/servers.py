# SPDX-License-Identifier: Apache-2.0
"""Model servers on this node: started, awaited with a deadline, and stopped whatever happens.

Each runs in a process group of its own, under a guard (`guard`) that stops it also where this process is
killed. Its output goes to a log file.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from newskills.base.callbacks import PrintLine
from newskills.base.errors import ConfigError, ServerStartError, TransportError, storage_error
from newskills.base.http.blocking import open_url
from newskills.models.serving import ServeCommand, ServeSpec, prepare_server, serve_argv
from newskills.models.serving.spec import ANY_INTERFACE, argument_value

GUARD_PROGRAM = Path(__file__).with_name("guard.py")
STOP_GRACE = 10.0
"""Seconds between SIGTERM and SIGKILL."""
PROBE_TIMEOUT = 5.0
LAST_LINES = 20


class RunningServer(Struct, frozen=True, kw_only=True):
    """A server that answers. `process` is its guard, which ends when the server ends; `key`: what it asks for."""

    base_url: str
    model_name: str
    process: subprocess.Popen[bytes]
    log_path: Path
    key: str = ""

    def __repr__(self) -> str:
        return f"RunningServer({self.base_url!r}, {self.model_name!r}, pid={self.process.pid})"


ServerContext = Callable[[RunningServer], contextlib.AbstractContextManager[object]]


@contextlib.contextmanager
def running_server(
    spec: ServeSpec,
    log_path: Path,
    timeout: float,
    *,
    say: PrintLine | None = None,
    key: str = "",
    env: Mapping[str, str] = {},
) -> Iterator[RunningServer]:
    """Run the server of `spec`, ready inside the `with` and gone after it.

    `timeout` is in seconds from the start of the process; fetching weights does not count. `say` gets lines about
    what takes long (default: standard error). `key`: what clients must send, for engines that can ask for one; empty
    = what the variable of that engine says. `env`: further variables of the server.
    Raises ServerStartError with the last lines of the log, ConfigError, DataError, StorageError.
    """
    if spec.num_nodes > 1:
        raise ConfigError(
            f"--server_nodes={spec.num_nodes}: a server on several nodes needs a cluster.",
            hint="Give --cluster, or --server_address of a running server.",
        )
    prepare_server(spec, say or _to_stderr)
    spec = _with_port(spec)
    command = serve_argv(spec)
    keys = {command.key_variable: key} if key and command.key_variable else {}
    command = msgspec.structs.replace(command, env={**command.env, **env, **keys})
    process = _start_guarded(command, log_path)
    server_key = key if command.key_variable else ""
    server = RunningServer(
        base_url=command.base_url,
        model_name=spec.name,
        process=process,
        log_path=log_path,
        key=server_key,
    )
    try:
        _await_ready(command, server, timeout)
        yield server
    finally:
        stop_process_group(process)


class EndedServer(Struct, frozen=True, kw_only=True):
    """A server that was in the foreground, after its end: `address` is empty where it was stopped before it answered,
    `log_file` has what it printed."""

    model: str = ""
    address: str = ""
    log_file: Path
    exit_code: int = 0


def serve_foreground(
    spec: ServeSpec, log_path: Path, timeout: float, *, say: PrintLine, beside: ServerContext | None = None
) -> EndedServer:
    """Serve until the server ends or Ctrl-C, copying its log to `say` line by line; return what has ended.

    `beside`: what is there as long as the server is. Ctrl-C is the ordinary end (code 0). Raises as `running_server`,
    and what `beside` raises.
    """
    served = EndedServer(log_file=log_path)
    try:
        with contextlib.ExitStack() as stack:
            server = stack.enter_context(running_server(spec, log_path, timeout, say=say))
            served = EndedServer(model=server.model_name, address=server.base_url, log_file=log_path)
            if beside is not None:
                stack.enter_context(beside(server))
            say(f"{server.model_name} is served at {server.base_url} (log: {log_path}); Ctrl-C stops it.")
            with log_path.open("rb") as log:
                while True:
                    ended = server.process.poll() is not None
                    _copy_lines(log.read(), say)
                    if ended:
                        return msgspec.structs.replace(served, exit_code=server.process.returncode)
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        server.process.wait(0.2)
    except KeyboardInterrupt:
        say("Stopped.")
        return served


def stop_process_group(process: subprocess.Popen[bytes], grace: float = STOP_GRACE) -> None:
    """Send SIGTERM to the whole group and SIGKILL after `grace` seconds; return once it is gone."""
    try:
        _signal_group(process, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(grace)
    finally:  # also where a second Ctrl-C ends the wait
        _signal_group(process, signal.SIGKILL)
        process.wait()
        if process.stdin is not None:
            process.stdin.close()


def free_port(host: str = "127.0.0.1") -> int:
    """Return a port that nobody listens on at `host` now."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
        return port


def _with_port(spec: ServeSpec) -> ServeSpec:
    """Return `spec` with a port that is chosen, or proved free where the user chose. Raises ServerStartError,
    ConfigError."""
    wanted = argument_value(spec, "--port") or str(spec.port)
    if not wanted.isascii() or not wanted.isdigit() or int(wanted) > 65535:
        raise ConfigError(f"--port {wanted} is not a port number.")
    host, port = spec.host or ANY_INTERFACE, int(wanted)
    if port == 0:
        return msgspec.structs.replace(spec, port=free_port(host))
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise ServerStartError(
                f"Port {port} of {host} cannot be used: {error.strerror}.",
                hint="Choose another port, or leave it out to use a free one.",
            ) from error
    return msgspec.structs.replace(spec, port=port)


def _start_guarded(command: ServeCommand, log_path: Path) -> subprocess.Popen[bytes]:
    try:
        log_path.parent.mkdir(parents=True, exist_ok=True)
        log = log_path.open("wb")
    except OSError as error:
        raise storage_error(error, log_path) from error
    with log:
        return subprocess.Popen(
            [sys.executable, "-I", "-S", str(GUARD_PROGRAM), *command.argv],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=_server_environment(command.env),
            start_new_session=True,
        )


def _server_environment(added: dict[str, str]) -> dict[str, str]:
    environment = {**os.environ, **added}
    if "PYTHONPATH" in added and os.environ.get("PYTHONPATH"):
        environment["PYTHONPATH"] = f"{added['PYTHONPATH']}{os.pathsep}{os.environ['PYTHONPATH']}"
    return environment


def _await_ready(command: ServeCommand, server: RunningServer, timeout: float) -> None:
    deadline = time.monotonic() + timeout
    pause = 0.02
    while True:
        ready = _is_answering(command, min(PROBE_TIMEOUT, max(0.1, deadline - time.monotonic())))
        # Looked at after the probe: an answer counts only if our server, not another one, can have given it.
        if server.process.poll() is not None:
            code = server.process.returncode
            raise _start_error(command, server, f"ended with exit code {code} before it was ready")
        if ready:
            return
        if time.monotonic() >= deadline:
            raise _start_error(command, server, f"was not ready after {timeout:.0f} s")
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.process.wait(min(pause, max(0.0, deadline - time.monotonic())))
        pause = min(1.0, pause * 1.3)


def _is_answering(command: ServeCommand, timeout: float) -> bool:
    address = urlsplit(command.base_url)
    host = f"[{address.hostname}]" if ":" in (address.hostname or "") else address.hostname
    url = f"http://{host}:{(address.port or 80) + command.ready_offset}{command.health_path}"
    try:
        with open_url(url, timeout=timeout, environ={}, redirects=0) as reply:
            status = reply.status
    except TransportError:
        return False
    if command.any_answer:
        return status < 500
    return 200 <= status < 300


def _start_error(command: ServeCommand, server: RunningServer, what: str) -> ServerStartError:
    lines = _last_lines(server.log_path)
    if lines:
        last_lines = "\n".join(["Its last lines:", *(f"  {line}" for line in lines)])
    else:
        last_lines = "It printed nothing."
    words = [word.partition("\n")[0] for word in command.argv[:3]]  # one may be a program of several lines
    return ServerStartError(
        f"The server for {server.model_name} {what} ({' '.join(words)} ...).\n{last_lines}\n",
        hint=f"Full log: {server.log_path}",
    )


def _last_lines(path: Path) -> list[str]:
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - (64 << 10)))
        text = file.read().decode(errors="replace")
    return [line.rstrip() for line in text.splitlines() if line.strip()][-LAST_LINES:]


def _copy_lines(data: bytes, say: PrintLine) -> None:
    for line in data.decode(errors="replace").splitlines():
        say(line)


def _signal_group(process: subprocess.Popen[bytes], number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def _to_stderr(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
