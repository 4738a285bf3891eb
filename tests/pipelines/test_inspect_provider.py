# SPDX-License-Identifier: Apache-2.0
"""`inspect eval --model newskills/…` with the real Inspect, found by the entry point, before a loopback server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from tests.commands.running import ns, rows_of
from tests.server import Answer, Fault, Script

from newskills.base.records import Row

ROOT = Path(__file__).parents[2]
TASK = """
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import includes
from inspect_ai.solver import generate, use_tools
from inspect_ai.tool import tool

@tool
def double():
    async def execute(number: int):
        \"\"\"Double a number.

        Args:
            number: The number.
        \"\"\"
        return str(2 * number)
    return execute

@task
def sums():
    samples = [Sample(input=name, target="42") for name in ("Ann", "Bob")]
    return Task(dataset=samples, solver=[use_tools(double()), generate()], scorer=includes())
"""


def inspect(folder: Path, address: str, *words: str) -> tuple[subprocess.CompletedProcess[str], Row]:
    """Run the real program; return what it said, and the header of its newest log."""
    pytest.importorskip("inspect_ai", reason="no inspect_ai here: pip install inspect_ai")
    (folder / "sums.py").write_text(TASK)
    metadata = folder / "site" / "newskills_here-1.dist-info"
    metadata.mkdir(parents=True, exist_ok=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: newskills-here\nVersion: 1\n")
    entry = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["inspect_ai"]
    (metadata / "entry_points.txt").write_text(f"[inspect_ai]\nnewskills = {entry['newskills']}\n")
    argv = [sys.executable, "-m", "inspect_ai", "eval", "sums.py", "--model=newskills/vllm/fake"]
    argv += [
        f"--model-base-url={address}",
        "-M",
        "endpoint_patience=20",
        "--display=plain",
        "--log-format=json",
        "--log-dir=logs",
        *words,
    ]
    env = {**os.environ, "PYTHONPATH": f"{folder / 'site'}:{os.environ.get('PYTHONPATH', '')}"}
    done = subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, timeout=300, check=False)
    logs = sorted((folder / "logs").glob("*.json"), key=lambda path: path.stat().st_mtime)
    return done, json.loads(logs[-1].read_text()) if logs else {}


CALL = {"id": "c1", "type": "function", "function": {"name": "double", "arguments": '{"number": 21}'}}


def caller(body: dict[str, Any]) -> str:
    """Says what the tool has returned."""
    last = body["messages"][-1]
    return f"It is {last['content']}, {body['messages'][0]['content']}." if last["role"] == "tool" else ""


@pytest.mark.nightly
def test_inspect_asks_by_our_engine(tmp_path: Path, fake_server: Any) -> None:
    server = fake_server(
        Script(tool_turns=[(CALL,)], faults=[Fault(kind="status", status=503, first=2)]), answer=caller
    )
    words = ("-M", "output_dir=records", "-M", "cache=true", "-M", "inference.temperature=0.25", "--epochs=2")
    done, log = inspect(tmp_path, server.base_url, *words)
    assert log.get("status") == "success", done.stdout + done.stderr
    assert log["results"]["scores"][0]["metrics"]["accuracy"]["value"] == 1.0
    assert log["eval"]["model"] == "newskills/vllm/fake"
    asked = [record.body for record in server.records if record.outcome == "200"]
    assert len(asked) == 8, "two samples, two epochs, two requests each; failures were tried again by the engine"
    assert {body["temperature"] for body in asked} == {0.25}
    assert asked[0]["tools"][0]["function"]["parameters"]["required"] == ["number"]
    sample = log["samples"][0]
    assert [message["role"] for message in sample["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert sample["output"]["usage"]["output_tokens"] > 0
    rows = rows_of(tmp_path / "records/output.jsonl")
    assert {row["conversation"][-1]["content"] for row in rows} >= {"It is 42, Ann.", "It is 42, Bob."}
    shown = ns("ns samples records", cwd=tmp_path)
    assert "It is 42, Bob." in shown.stdout, shown.stderr
    again, log = inspect(tmp_path, server.base_url, *words)
    assert log["status"] == "success", again.stdout + again.stderr
    assert len([record for record in server.records if record.outcome == "200"]) == 8, "all come from the cache"


@pytest.mark.nightly
def test_a_limit_that_is_used_up_and_what_is_not_understood_end_it(tmp_path: Path, fake_server: Any) -> None:
    server = fake_server(Script(answer=Answer(kind="echo")))
    done, log = inspect(tmp_path, server.base_url, "-M", "max_requests=1", "--max-connections=1")
    assert log["status"] == "error"
    assert "used up its limit of 1 requests" in done.stdout + done.stderr
    assert len(server.records) == 1
    done, log = inspect(tmp_path, server.base_url, "--frequency-penalty=1")
    assert "newskills does not take frequency_penalty" in done.stdout + done.stderr
    done, _ = inspect(tmp_path, server.base_url, "-M", "max_request=1")
    assert "max_request" in done.stdout + done.stderr
    assert "max_requests" in done.stdout + done.stderr
