# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.server [--port N] [--script JSON]`: one server by hand; prints its address."""

from __future__ import annotations

import argparse
import asyncio

import msgspec

from tests.server.app import AnswerFunction, Application
from tests.server.script import Script


async def serve(script: Script, port: int, host: str = "127.0.0.1", answer: AnswerFunction | None = None) -> None:
    """Serves until the process is stopped."""
    application = Application(script, answer)
    application.address = (host, port)
    await application.listen()
    print(f"http://{host}:{application.address[1]}", flush=True)
    await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.server", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 = any free port")
    parser.add_argument("--host", default="127.0.0.1", help="interface to listen on")
    parser.add_argument("--script", default="{}", help="a Script as JSON (tests/server/script.py)")
    arguments = parser.parse_args()
    asyncio.run(serve(msgspec.json.decode(arguments.script, type=Script), arguments.port, arguments.host))


if __name__ == "__main__":
    main()
