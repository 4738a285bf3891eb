# SPDX-License-Identifier: Apache-2.0
"""`python -m newskills.launch.ray_node --nodes=N --rank=R --host=H --port=P -- COMMAND…`: Ray around a command.

One such process on each node. They meet at H:P, which is rank 0's and free again when COMMAND starts. Rank 0 runs
Ray's head and, once all nodes have joined, COMMAND, whose exit code is its own; the others are Ray workers until then.
COMMAND finds the cluster by RAY_ADDRESS. Needs Ray and the standard library only: it runs in images of others.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType

HELLO = b"newskills ray node "
AGENT_PORTS = (
    "--dashboard-agent-listen-port",
    "--dashboard-agent-grpc-port",
    "--metrics-export-port",
    "--runtime-env-agent-port",
)
"""Of Ray's helpers on each node: all that its raylet waits for. Those that are not told a port take 52365 or any, and
where they need more than half a minute to say which (a cold file system, a busy machine), Ray gives its node up."""
PATIENCE = {"RAY_raylet_start_wait_time_s": "240", "RAY_agent_register_timeout_ms": "240000"}
"""How long Ray waits for its own processes on a node: by itself half a minute."""
TRIES, STARTING = 5, 300.0
"""How often a node is started that ends within so many seconds."""
AT_ONCE = struct.pack("ii", 1, 0)
"""Linger for no time: the port does not stay taken (TIME_WAIT) by what was closed."""
COUNT_NODES = """\
import sys, time, ray
until = time.monotonic() + float(sys.argv[3])
while not ray.is_initialized():
    try:
        ray.init(address=sys.argv[1], log_to_driver=False, logging_level="ERROR")
    except (ConnectionError, RuntimeError):
        if time.monotonic() > until:
            raise
        time.sleep(1)
while sum(node["Alive"] for node in ray.nodes()) < int(sys.argv[2]):
    if time.monotonic() > until:
        sys.exit(f"only {sum(node['Alive'] for node in ray.nodes())} of {sys.argv[2]} nodes have joined")
    time.sleep(0.1)
"""


class RayClusterError(Exception):
    """The cluster cannot do its work; the text says why."""


def parse_arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="ray_node", description="Run a command inside a Ray cluster.")
    parser.add_argument("--nodes", type=int, required=True)
    parser.add_argument("--rank", type=int, required=True, help="rank of this node; 0 runs the command")
    parser.add_argument("--host", required=True, help="host of rank 0")
    parser.add_argument("--port", type=int, required=True, help="port of the Ray head on rank 0")
    parser.add_argument(
        "--patience", type=float, default=600.0, help="seconds to wait until all nodes have joined"
    )
    parser.add_argument("--resources", default="", help="JSON of node resources besides CPUs and GPUs")
    parser.add_argument("command", nargs="+")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the node's part; return the exit code: COMMAND's, or 1 where the cluster broke."""
    options = parse_arguments(argv)
    signal.signal(signal.SIGTERM, _exit_on_signal)
    until = time.monotonic() + options.patience
    try:
        if options.rank == 0:
            return _run_head(options, until)
        return _run_worker(options, until)
    except (RayClusterError, OSError) as error:
        _print_note(f"rank {options.rank}: {error}")
        return 1


def _exit_on_signal(number: int, frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(128 + number)


def _run_head(options: argparse.Namespace, until: float) -> int:
    others = options.nodes - 1
    with contextlib.ExitStack() as stack:
        lives = stack.enter_context(_open_listener(0, others))
        met = _meet_ranks(options.port, others, until)
        address = met[0].getsockname()[0] if met else "127.0.0.1"
        port = _free_port()
        for connection in met:
            connection.sendall(f"{address} {port} {lives.getsockname()[1]}\n".encode())
            connection.recv(1)  # the other side closes first, so that the port is free at once
            connection.close()
        connections = [stack.enter_context(_accept_rank(lives, until)) for _ in range(others)]
        return _run_command(options, address, port, connections, until)


def _run_command(
    options: argparse.Namespace, address: str, port: int, connections: Sequence[socket.socket], until: float
) -> int:
    """Run the command. Ray gives up its node where its helpers need 15 seconds to start, so the start is tried
    again."""
    head = ("--head", f"--node-ip-address={address}", f"--port={port}", "--include-dashboard=false")
    for left in reversed(range(TRIES)):
        with _run_ray(*head, *_resource_options(options), *_client_port()) as ray:
            if _await_nodes(f"{address}:{port}", options.nodes, until, ray):
                _print_note(f"{options.nodes} nodes have joined {address}:{port}")
                return _await_command(options.command, f"{address}:{port}", ray, connections)
        if left:
            _print_note("rank 0: Ray ended as it started; it is started again")
    raise RayClusterError("Ray's head does not start")


def _run_worker(options: argparse.Namespace, until: float) -> int:
    with _connect_to(options.host, options.port, until) as meeting:
        meeting.sendall(HELLO + str(options.rank).encode() + b"\n")
        meeting.settimeout(max(1.0, until - time.monotonic()))
        address, port, life_port = meeting.makefile().readline().split()
        own = meeting.getsockname()[0]
    with _connect_to(address, int(life_port), until) as life:
        return _join_head(options, f"{address}:{port}", own, life)


def _join_head(options: argparse.Namespace, head: str, own: str, life: socket.socket) -> int:
    """Run Ray on a further node until the head goes. Ray gives up where it finds no head within half a minute, so
    it is tried again."""
    ending = ""
    for left in reversed(range(TRIES)):
        began = time.monotonic()
        with _run_ray(f"--address={head}", f"--node-ip-address={own}", *_resource_options(options)) as ray:
            while not _has_ended(ray):
                if select.select([life], [], [], 0.2)[0]:
                    return 0
            if ray.returncode is None:
                ending = "Ray ended"
            else:
                ending = f"Ray ended with exit code {ray.returncode}"
        if not left or time.monotonic() - began > STARTING:
            break
        _print_note(f"rank {options.rank}: {ending} as it started; it is started again")
    raise RayClusterError(ending)


def _resource_options(options: argparse.Namespace) -> list[str]:
    if options.resources:
        return [f"--resources={options.resources}"]
    return []


def _await_command(
    command: Sequence[str], address: str, ray: subprocess.Popen[bytes], connections: Sequence[socket.socket]
) -> int:
    process = subprocess.Popen(command, env={**os.environ, "RAY_ADDRESS": address})
    try:
        while process.poll() is None:
            if select.select(connections, [], [], 0.2)[0]:
                raise RayClusterError("a node has left")
            if ray.poll() is not None:
                raise RayClusterError(f"Ray's head ended with exit code {ray.returncode}")
            with contextlib.suppress(subprocess.TimeoutExpired):
                wait_seconds = 0 if connections else 0.2
                process.wait(wait_seconds)
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait()
    if process.returncode >= 0:
        return process.returncode
    return 128 - process.returncode


def _meet_ranks(port: int, others: int, until: float) -> list[socket.socket]:
    """Return a connection of each other rank. Other clients that connect here are disconnected."""
    met: dict[bytes, socket.socket] = {}
    if not others:
        return []
    with _open_listener(port, others) as listener:
        while len(met) < others:
            connection = _accept_rank(listener, until)
            connection.settimeout(5.0)
            try:
                line = connection.recv(64)
            except OSError:
                line = b""
            if line.startswith(HELLO) and line not in met:
                met[line] = connection
            else:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
                connection.close()
    return list(met.values())


def _open_listener(port: int, others: int) -> socket.socket:
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("", port))
    listener.listen(max(1, others) + 16)
    return listener


def _accept_rank(listener: socket.socket, until: float) -> socket.socket:
    listener.settimeout(max(0.1, until - time.monotonic()))
    try:
        return listener.accept()[0]
    except TimeoutError as error:
        raise RayClusterError("not all nodes joined in time") from error


def _connect_to(host: str, port: int, until: float) -> socket.socket:
    while True:
        try:
            connection = socket.create_connection((host, port), timeout=5.0)
        except OSError as error:
            if time.monotonic() > until:
                raise RayClusterError(f"cannot reach {host}:{port}: {error}") from error
            time.sleep(0.2)
        else:
            connection.settimeout(None)
            return connection


def _client_port() -> list[str]:
    """Return the option that moves Ray's unused client server from port 10001; without grpc there is none."""
    if importlib.util.find_spec("grpc"):
        return [f"--ray-client-server-port={_free_port()}"]
    return []


def _free_port() -> int:
    return _free_ports(1)[0]


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("", 0))
        return [probe.getsockname()[1] for probe in probes]


def agent_ports() -> list[str]:
    """Return options of `ray start` with ports that are free now."""
    ports = _free_ports(len(AGENT_PORTS))
    return [f"{option}={port}" for option, port in zip(AGENT_PORTS, ports, strict=True)]


@contextlib.contextmanager
def _run_ray(*options: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run Ray on this node inside the `with`. Nodes may share a /tmp, so each has a folder of its own there.

    Its sockets lie in that folder, and names of sockets are short. At the end nothing is left that Ray's own half
    minute of draining could save, so it is killed.
    """
    folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp")
    start = (
        "-m",
        "ray.scripts.scripts",
        "start",
        "--block",
        "--disable-usage-stats",
        *agent_ports(),
    )
    process = subprocess.Popen(
        [sys.executable, *start, f"--temp-dir={folder}", *options],
        env={**PATIENCE, **os.environ},
        stdout=sys.stderr,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _await_nodes(address: str, nodes: int, until: float, ray: subprocess.Popen[bytes]) -> bool:
    """Wait for the nodes; return False where Ray's head ends meanwhile. Raises RayClusterError where they do not come
    in time."""
    patience = max(1.0, until - time.monotonic())
    counting = [sys.executable, "-c", COUNT_NODES, address, str(nodes), f"{patience:.1f}"]
    with subprocess.Popen(counting, stderr=subprocess.PIPE, stdout=sys.stderr, text=True) as process:
        while process.poll() is None:
            if _has_ended(ray):
                process.kill()
                process.communicate()
                return False
            time.sleep(0.2)
        errors = process.communicate()[1]
    if process.returncode != 0:
        raise RayClusterError(f"Ray is not ready: {(errors.strip().splitlines() or ['it printed nothing'])[-1]}")
    return True


def _has_ended(ray: subprocess.Popen[bytes]) -> bool:
    """Return whether Ray has ended, or its raylet, for which `ray start` then waits in vain for minutes."""
    if ray.poll() is not None:
        return True
    with contextlib.suppress(OSError):
        for child in Path(f"/proc/{ray.pid}/task/{ray.pid}/children").read_text().split():
            if "(raylet) Z" in Path(f"/proc/{child}/stat").read_text(errors="replace"):
                return True
    return False


def _print_note(text: str) -> None:
    sys.stderr.write(f"ray_node: {text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
