# SPDX-License-Identifier: Apache-2.0
"""A task of Harbor's that offers MCP servers, worked on by the real programs in a container without a network.

The servers are those of PyPI's `mcp`: one that the program starts, and one of another container. Programs are those of
NEWSKILLS_AGENT_PROGRAMS (`ns agents install --folder=…`).
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from tests.commands.running import ns, rows_of
from tests.environments.images import ENGINE, own_containers
from tests.environments.shell_model import ShellModel, serving
from tests.environments.tasks import texts_of
from tests.environments.terminal import write
from tests.environments.test_terminal_bench import MINE, prepared

from newskills.agents.definition import library_files, read_definition
from newskills.agents.installing import find_installed

FOLDER = os.environ.get("NEWSKILLS_AGENT_PROGRAMS", "")
NAMES = ("claude-code", "codex", "gemini-cli", "kimi-code", "opencode", "qwen-code")
SERVER = '''
import hashlib, sys
sys.path.insert(0, "/opt/packages")
from mcp.server.mcpserver import MCPServer

server = MCPServer(name="catalog")

@server.tool()
def lookup(item: str) -> str:
    """Returns the number of an item in the catalogue."""
    return f"{item} has the number {int(hashlib.sha256((item + sys.argv[1]).encode()).hexdigest()[:6], 16)}"

if len(sys.argv) == 2:
    server.run(transport="stdio")
else:
    server.run(transport="streamable-http", host="0.0.0.0", port=8000)
'''
TOML = """schema_version = "1.4"
[environment]
{image}workdir = "/tmp"
[[environment.mcp_servers]]
name = "catalog"
{server}
"""
STDIO = 'transport = "stdio"\ncommand = "python3"\nargs = ["/opt/server.py", "stdio"]'
HTTP = 'transport = "streamable-http"\nurl = "http://shelf:8000/mcp"'
COMPOSE = """services:
  main:
    build: .
  shelf:
    build: .
    command: ["python3", "/opt/server.py", "http", "8000"]
    healthcheck:
      test: ["CMD", "python3", "-c", "import socket; socket.create_connection(('127.0.0.1', 8000))"]
      interval: 500ms
      retries: 120
"""
TEST = """#!/bin/bash
number=$(python3 -c 'import hashlib; print(int(hashlib.sha256(b"lamp{way}").hexdigest()[:6], 16))')
if [ "$(cat /tmp/answer.txt)" = "$number" ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
"""


class CallingModel(ShellModel):
    """Calls the tool of the task's MCP server, and writes what it returned into a file by the program's shell."""

    def message(self, body: dict[str, Any]) -> dict[str, Any]:
        offered = [tool["function"]["name"] for tool in body.get("tools") or ()]
        tool = next((name for name in offered if name.endswith("lookup")), None)
        said = texts_of(body)
        number = re.search(r"lamp has the number (\d+)", said)
        if offered and number is None and "number of the lamp" in said:
            if tool is None:
                return {"role": "assistant", "content": f"There is no such tool among {offered}."}
            function = {"name": tool, "arguments": json.dumps({"item": "lamp"})}
            call = {"id": f"call_{len(self.bodies)}", "type": "function", "function": function}
            return {"role": "assistant", "content": None, "tool_calls": [call]}
        if number is not None and "it is written" not in said:
            self.turns = (f"echo {number[1]} > /tmp/answer.txt && echo it is written",)
            self.turns *= 2  # the first turn was the tool's
            return super().message(body)
        return {"role": "assistant", "content": "All is done."}


def packages(folder: Path) -> None:
    """Copies `mcp` and all that it needs from this Python into `folder`."""
    wanted, seen = ["mcp"], set[str]()
    while wanted:
        distribution = importlib.metadata.distribution(wanted.pop())
        if distribution.name in seen:
            continue
        seen.add(distribution.name)
        needed = [Requirement(line) for line in distribution.requires or ()]
        wanted += [
            need.name for need in needed if need.marker is None or need.marker.evaluate({"extra": "crypto"})
        ]
        for file in distribution.files or ():
            if ".." not in file.parts and file.suffix != ".pyc":
                place = folder / str(file)
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(str(file.locate()), place)


def tasks(folder: Path, image: str) -> Path:
    """`stdio`: the program starts the server; `http`: another container is the server."""
    for name, server in (("stdio", STDIO), ("http", HTTP)):
        task = folder / name
        write(task / "task.toml", TOML.format(image="", server=server))
        write(task / "instruction.md", "Write the number of the lamp in the catalogue into /tmp/answer.txt.\n")
        write(task / "tests/test.sh", TEST.format(way=name))
        write(task / "environment/server.py", SERVER)
        packages(task / "environment/packages")
        lines = (f"FROM {image}", "COPY packages /opt/packages", "COPY server.py /opt/server.py", "WORKDIR /tmp")
        write(task / "environment/Dockerfile", "\n".join(lines) + "\n")
    write(folder / "http/environment/docker-compose.yaml", COMPOSE)
    return folder


@pytest.mark.nightly
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("agent", NAMES)
def test_a_program_lists_and_calls_the_tools_of_a_task(agent: str, agent_image: str, tmp_path: Path) -> None:
    pytest.importorskip("mcp", reason="no mcp here: pip install 'newskills[tools]'")
    if not FOLDER or find_installed(read_definition(library_files()[agent]), Path(FOLDER)) is None:
        pytest.skip(f"{agent} is not here: set NEWSKILLS_AGENT_PROGRAMS to a folder and install it there")
    (tmp_path / "mine.py").write_text(MINE.format(folder=str(tasks(tmp_path / "tasks", agent_image))))
    prepared(tmp_path, "./mine.py")
    env = {"NEWSKILLS_DATA_DIR": str(tmp_path / "data"), "NEWSKILLS_AGENTS": FOLDER}
    with serving(CallingModel()) as model:
        line = f"ns eval --benchmarks=./mine.py ++agent={agent} --server_type=vllm --server_address={model.url}"
        more = ("--model=fake", "--output_dir=results", f"++environment.engine={ENGINE}")
        done = ns(line, *more, "++environment.network=false", cwd=tmp_path, env=env, timeout=1500)
    assert done.returncode == 0, done.stdout + done.stderr
    assert own_containers() == []
    records = {row["id"]: row for row in rows_of(tmp_path / "results/eval-results/mine/output.jsonl")}
    assert {name: row["outcome"] for name, row in records.items()} == {"stdio": "correct", "http": "correct"}
    for row in records.values():
        assert any(call["function"]["name"].endswith("lookup") for call in calls_of(row)), row["conversation"]


def calls_of(row: dict[str, Any]) -> list[dict[str, Any]]:
    return [call for message in row["conversation"] for call in message.get("tool_calls") or ()]
