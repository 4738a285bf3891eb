# SPDX-License-Identifier: Apache-2.0
"""The fake server as an engine: takes the argv of `--server_type=generic`, and listens where other nodes reach it."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import msgspec
from tests.server import Script
from tests.server.__main__ import serve


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--script", default="{}")
    arguments, _ = parser.parse_known_args()
    print("serves on", os.environ.get("SLURMD_NODENAME", "this machine"), flush=True)
    asyncio.run(serve(msgspec.json.decode(arguments.script, type=Script), arguments.port, "0.0.0.0"))


if __name__ == "__main__":
    main()
