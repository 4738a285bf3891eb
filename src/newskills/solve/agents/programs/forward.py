# SPDX-License-Identifier: Apache-2.0
"""Runs inside the container, by the agent's own Python: `forward.py SOCKET WORD...`.

Brings what is sent to a port on loopback to SOCKET, as the container has no other network, and runs the command
WORD..., in which {address} stands for that port's address. Ends as the command does.
"""

import socket
import subprocess
import sys
import threading

CHUNK = 1 << 16


def copy(source: socket.socket, target: socket.socket) -> None:
    """Copy until `source` ends; then shut `target` down."""
    try:
        while data := source.recv(CHUNK):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        for end in (source, target):
            end.close()


def accept(listener: socket.socket, path: str) -> None:
    while True:
        client, _ = listener.accept()
        remote = socket.socket(socket.AF_UNIX)
        try:
            remote.connect(path)
        except OSError:
            client.close()
            continue
        for ends in ((client, remote), (remote, client)):
            threading.Thread(target=copy, args=ends, daemon=True).start()


def main(path: str, *words: str) -> int:
    listener = socket.create_server(("127.0.0.1", 0))
    address = f"http://127.0.0.1:{listener.getsockname()[1]}"
    threading.Thread(target=accept, args=(listener, path), daemon=True).start()
    return subprocess.call([word.replace("{address}", address) for word in words])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
