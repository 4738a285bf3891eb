# SPDX-License-Identifier: Apache-2.0
"""Runs inside of an environment, where there is no compiled forward.c: `forward.py SOCKET PORT STOP WORD...`.

Brings what is sent to 127.0.0.1:PORT to the unix socket SOCKET and runs the command WORD... meanwhile, without input.
Ends as the command does (128 + signal where one ended it), with all that is left of its process group. Where the file
STOP appears, the command is killed and the exit code is 75; where the port is taken, it is 98. Python 3.7 must be able
to run it.
"""

import contextlib
import errno
import os
import signal
import socket
import subprocess
import sys
import threading

CHUNK = 1 << 16
STOPPED, TAKEN, FAILED, NOT_THERE = 75, 98, 99, 127


def copy_stream(source: socket.socket, target: socket.socket) -> None:
    """Copy until `source` ends; then shut `target` down."""
    try:
        while True:
            data = source.recv(CHUNK)
            if not data:
                break
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        for end in (source, target):
            end.close()


def accept_connections(listener: socket.socket, path: str) -> None:
    while True:
        client, _ = listener.accept()
        remote = socket.socket(socket.AF_UNIX)
        try:
            remote.connect(path)
        except OSError:
            client.close()
            continue
        for ends in ((client, remote), (remote, client)):
            threading.Thread(target=copy_stream, args=ends, daemon=True).start()


def main(path: str, port: str, stop: str, *words: str) -> int:
    try:
        listener = socket.create_server(("127.0.0.1", int(port)))
    except OSError as error:
        sys.stderr.write(f"forward: port {port}: {error}\n")
        if error.errno == errno.EADDRINUSE:
            return TAKEN
        return FAILED
    threading.Thread(target=accept_connections, args=(listener, path), daemon=True).start()
    try:
        child = subprocess.Popen(words, stdin=subprocess.DEVNULL, start_new_session=True)
    except OSError as error:
        sys.stderr.write(f"{words[0]}: {error.strerror}\n")
        return NOT_THERE
    stopped = False
    while child.poll() is None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(0.1)
        if os.path.exists(stop):
            stopped = True
            break
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    if stopped:
        return STOPPED
    if child.returncode < 0:
        return 128 - child.returncode
    return child.returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
