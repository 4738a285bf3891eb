# SPDX-License-Identifier: Apache-2.0
"""Messages between the host and the supervisors: four bytes of length, then JSON."""

from __future__ import annotations

import json
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from typing import Any

HEADER = struct.Struct("!I")


def pack(message: dict[str, Any]) -> bytes:
    body = json.dumps(message).encode()
    return HEADER.pack(len(body)) + body


def receive(sock: socket.socket) -> dict[str, Any] | None:
    """Return the next message from a blocking socket; None at its end."""
    head = _receive_exactly(sock, HEADER.size)
    if head is None:
        return None
    body = _receive_exactly(sock, HEADER.unpack(head)[0])
    if body is None:
        return None
    message: dict[str, Any] = json.loads(body)
    return message


def _receive_exactly(sock: socket.socket, size: int) -> bytes | None:
    pieces = bytearray()
    while len(pieces) < size:
        piece = sock.recv(min(size - len(pieces), 1 << 20))
        if not piece:
            return None
        pieces += piece
    return bytes(pieces)
