# SPDX-License-Identifier: Apache-2.0
"""A real MCP server for the tests: `python mcp_server.py [--http PORT_FILE] [--pid FILE]`."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import uvicorn
from mcp.server.mcpserver import MCPServer

server = MCPServer(name="test")
CALLS: list[str] = []


@server.tool()
def add(a: int, b: int, session: str = "") -> int:
    """Adds two whole numbers."""
    CALLS.append(session)
    return a + b


@server.tool(name="odd.name/v1 (beta)")
def odd(text: str) -> str:
    """Has a name that no API takes."""
    return f"<{text}>"


@server.tool()
def sessions() -> list[str]:
    """What `add` was given as session."""
    return CALLS


@server.tool()
def variable(name: str) -> str:
    """An environment variable of the server."""
    return os.environ.get(name, "")


@server.tool()
def fail(why: str) -> str:
    """Raises."""
    raise ValueError(why)


@server.tool()
def die(marker: str = "") -> str:
    """Ends the server; with `marker`, only the first time."""
    if marker and Path(marker).exists():
        return "still here"
    if marker:
        Path(marker).touch()
    os.kill(os.getpid(), signal.SIGKILL)
    return ""


@server.tool()
async def slow(seconds: float) -> str:
    """Takes its time."""
    await asyncio.sleep(seconds)
    return "at last"


@server.tool()
def huge(characters: int) -> str:
    """A long text."""
    return "x" * characters


@server.tool()
def pid() -> int:
    """The server's process."""
    return os.getpid()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--http", type=Path)
    parser.add_argument("--stateless", action="store_true")
    parser.add_argument("--pid", type=Path)
    parser.add_argument("--stubborn", action="store_true")
    parser.add_argument("--broken", action="store_true")
    options = parser.parse_args()
    if options.broken:
        sys.stderr.write(f"no licence for {os.environ.get('TEST_SECRET')}\n")
        raise SystemExit(3)
    if options.pid:
        child = subprocess.Popen(["sleep", "600"], stdin=subprocess.DEVNULL) if options.stubborn else None
        options.pid.write_text(f"{os.getpid()} {child.pid if child else 0}")
    if options.stubborn:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if not options.http:
        server.run(transport="stdio")
        while options.stubborn:
            time.sleep(1)
        return
    listening = socket.create_server(("127.0.0.1", 0))
    options.http.write_text(str(listening.getsockname()[1]))
    app = server.streamable_http_app(stateless_http=options.stateless)
    uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listening])


if __name__ == "__main__":
    main()
