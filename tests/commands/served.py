# SPDX-License-Identifier: Apache-2.0
"""The fake server as an engine: takes the argv of `--server_type=generic`, and listens where other nodes reach it."""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import msgspec
from tests.server import Script
from tests.server.__main__ import serve


def reckon(body: dict[str, Any]) -> str:
    """A program for the sum, and once its output is there, an answer that has it in a box."""
    text = body.get("prompt") or "\n".join(message["content"] for message in body["messages"])
    if shown := re.findall(r"```output\n(.*)\n", text):
        return rf"So \boxed{{{shown[-1]}}}."
    one, other = re.findall(r"Add (\d+) and (\d+)\.", text)[-1]
    return f"Let me see.\n```python\nprint({one} + {other})\n```\n"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--script", default="{}")
    parser.add_argument("--reckon", action="store_true")
    arguments, _ = parser.parse_known_args()
    print("serves on", os.environ.get("SLURMD_NODENAME", "this machine"), flush=True)
    script, answer = msgspec.json.decode(arguments.script, type=Script), reckon if arguments.reckon else None
    asyncio.run(serve(script, arguments.port, "0.0.0.0", answer))


if __name__ == "__main__":
    main()
