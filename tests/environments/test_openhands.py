# SPDX-License-Identifier: Apache-2.0
"""OpenHands as a program in our containers: its model is our endpoint, its events our record.

The real one where NEWSKILLS_OPENHANDS names its folder; everywhere a stand-in with the part of its interface that is
used, and events that the real one (SDK 1.58.2) gave here.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.commands.running import ns
from tests.environments.images import ENGINE, own_containers
from tests.environments.small_tasks import prepared_small_tasks, records_of, small_tasks
from tests.environments.test_swe_agent import calls

from newskills.solve.agents.openhands.events import read_events

RECORDED = Path(__file__).with_name("openhands_events.jsonl")


@pytest.fixture
def program() -> str:
    """The folder with the program: its environment in `venv`."""
    folder = os.environ.get("NEWSKILLS_OPENHANDS", "")
    if not folder:
        pytest.skip("no OpenHands here: set NEWSKILLS_OPENHANDS to a folder as docs/agents.md makes it")
    return folder


def evaluated(folder: Path, image: str, program: str, url: str, *more: str) -> dict[str, Any]:
    env = prepared_small_tasks(folder, 1, image)
    line = (
        f"ns eval --benchmarks=./small.py ++agent=openhands ++agent_config.folder={program} --server_type=vllm "
        f"--server_address={url} --model=fake --output_dir=results ++environment.engine={ENGINE}"
    )
    done = ns(line, *more, cwd=folder, env=env, timeout=1800)
    assert done.returncode == 0, done.stdout + done.stderr
    assert own_containers() == []
    (record,) = records_of(folder)
    return record


STAND_IN = """
import json, subprocess, urllib.request
from types import SimpleNamespace

class LLM:
    def __init__(self, model, base_url, extra_headers, **_):
        self.model, self.url, self.headers = model, base_url + "/chat/completions", extra_headers

    def ask(self, messages):
        tools = [{"type": "function", "function": {"name": "terminal", "parameters": {}}}]
        body = json.dumps({"model": self.model, "messages": messages, "tools": tools}).encode()
        headers = {"Content-Type": "application/json", **self.headers}
        with urllib.request.urlopen(urllib.request.Request(self.url, body, headers)) as reply:
            return json.load(reply)["choices"][0]["message"]

    def format_messages_for_llm(self, messages):
        return messages

class Conversation:
    def __init__(self, agent, workspace, callbacks, visualizer):
        self.llm, self.workspace, self.tell = agent, workspace, callbacks[0]
        self.messages, self.replies = [], 0
        self.state = SimpleNamespace(events=[], execution_status=SimpleNamespace(value="idle"))

    def add(self, message, **fields):
        self.messages.append(message)
        event = SimpleNamespace(timestamp="2026-11-26T10:00:00", to_llm_message=lambda: message, **fields)
        self.state.events.append(event)
        self.tell(event)

    def send_message(self, text):
        self.add({"role": "user", "content": [{"type": "text", "text": text}]})

    def run(self):
        status = self.state.execution_status
        for _ in range(self.max_iteration_per_run):
            reply = self.llm.ask(self.messages)
            self.replies += 1
            call = next(iter(reply.get("tool_calls", ())), None)
            name = call["function"]["name"] if call else ""
            self.add(reply, llm_response_id=f"r{self.replies}", tool_name=name)
            if call is None or name == "finish":
                status.value = "finished"
                return
            command = json.loads(call["function"]["arguments"])["command"]
            ran = subprocess.run(command, shell=True, cwd=self.workspace, capture_output=True, text=True)
            message = {"role": "tool", "content": ran.stdout + ran.stderr, "tool_call_id": call["id"]}
            self.add(message, tool_call_id=call["id"], observation=SimpleNamespace(exit_code=ran.returncode))
        status.value = "error"

    def close(self):
        pass
"""


@pytest.fixture
def stand_in(tmp_path: Path) -> str:
    folder = tmp_path / "program"
    packages = folder / "venv/lib/python3.12/site-packages"
    for path, text in (
        (folder / "venv/bin/python", f'#!/bin/sh\nPYTHONPATH={packages} exec python3 "$@"\n'),
        (packages / "openhands/sdk/__init__.py", STAND_IN),
        (
            packages / "openhands/tools/preset/default.py",
            "def get_default_agent(llm, cli_mode):\n    return llm\n",
        ),
        (packages / "openhands_sdk-1.2.3.dist-info/METADATA", "Name: openhands-sdk\nVersion: 1.2.3\n"),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    return str(folder)


def test_it_asks_the_endpoint_alone(agent_image: str, stand_in: str, tmp_path: Path, fake_server: Any) -> None:
    command = "echo x > new.txt; grep -vc lo: /proc/net/dev"
    server = fake_server(calls(("terminal", {"command": command}), ("finish", {"message": "done"})))
    record = evaluated(tmp_path, agent_image, stand_in, server.base_url, "++inference.temperature=0.25")
    assert (record["outcome"], record["exit_status"], record["agent"]) == (
        "correct",
        "submitted",
        "openhands@1.2.3",
    )
    assert [(step["command"], step["exit_code"]) for step in record["steps"]] == [(command, 0)]
    assert [message["role"] for message in record["conversation"]] == ["user", "assistant", "tool", "assistant"]
    assert "The file new.txt is missing (0)." in record["conversation"][0]["content"]
    assert record["conversation"][2]["content"] == "2\n"  # lines of that file's head: loopback is the only device
    assert record["model_patch"].startswith("diff --git a/new.txt")
    assert record["num_generated_tokens"] > 0
    assert {request.body["temperature"] for request in server.records} == {0.25}


def test_replies_without_a_call_end_the_work(
    agent_image: str, stand_in: str, tmp_path: Path, fake_server: Any
) -> None:
    server = fake_server(answer=lambda body: "What shall I do?")
    record = evaluated(tmp_path, agent_image, stand_in, server.base_url, "++agent_config.max_empty=2")
    assert (record["outcome"], record["why"]) == ("no_answer", "the patch is empty")
    assert (record["exit_status"], len(server.records)) == ("no_command", 2)
    assert "calling tools" in record["conversation"][2]["content"]


def test_what_breaks_in_the_middle_is_unscored(
    agent_image: str, stand_in: str, tmp_path: Path, fake_server: Any
) -> None:
    package = Path(stand_in, "venv/lib/python3.12/site-packages/openhands/sdk/__init__.py")
    broken = 'if self.replies == 1:\n                raise KeyError("broken")\n            self.replies += 1'
    package.write_text(package.read_text().replace("self.replies += 1", broken))
    server = fake_server(calls(*[("terminal", {"command": "echo x > new.txt"})] * 9))
    more = ("++server.enable_soft_fail=true", "--accept_lost=100")
    record = evaluated(tmp_path, agent_image, stand_in, server.base_url, *more)
    assert (record["outcome"], record["outcome_cause"]) == ("unscored", "environment")
    assert "OpenHands failed: KeyError: 'broken'" in record["detailed_error"]


def test_its_requests_are_limited(agent_image: str, stand_in: str, tmp_path: Path, fake_server: Any) -> None:
    server = fake_server(calls(*[("terminal", {"command": "echo x >> other.txt"})] * 9))
    record = evaluated(tmp_path, agent_image, stand_in, server.base_url, "++agent_max_turns=3")
    assert (record["outcome"], record["exit_status"]) == ("wrong", "steps")
    assert (record["num_steps"], len(server.records)) == (3, 3)


def test_what_is_not_there_is_refused(stand_in: str, tmp_path: Path) -> None:
    small_tasks(tmp_path, 1, "none")
    env = {"NEWSKILLS_DATA_DIR": str(tmp_path / "data")}
    assert ns("ns prepare_data ./small.py", cwd=tmp_path, env=env).returncode == 0
    line = "ns eval --benchmarks=./small.py --model=fake --server_address=http://127.0.0.1:9/v1 --server_type=vllm"
    for more, sentence in (
        ("++agent_config.folder=/nonexistent", "OpenHands is not installed in /nonexistent"),
        (f"++agent_config.folder={stand_in} ++agent_config.preset=defualt", "has no preset 'defualt'"),
        (f"++agent_config.folder={stand_in} ++environment.engine=sandbox", "a program that needs a container"),
    ):
        done = ns(f"{line} ++agent_framework=openhands {more}", cwd=tmp_path, env=env)
        assert done.returncode == 2, done.stdout + done.stderr
        assert sentence in " ".join((done.stdout + done.stderr).split())


def test_events_that_the_real_one_gave_become_a_record(tmp_path: Path) -> None:
    shutil.copy(RECORDED, tmp_path / "events.jsonl")
    trajectory = read_events(tmp_path)
    assert trajectory is not None
    assert trajectory.ended == "submitted"
    assert [(step["command"].partition(" ")[0], step["exit_code"]) for step in trajectory.steps] == [
        ("echo", 0),
        ("file_editor", None),
        ("finish", None),
    ]
    assert trajectory.steps[0]["seconds"] == 5.408
    roles = [message["role"] for message in trajectory.conversation]
    assert roles == ["system", "user", *["assistant", "tool"] * 3]
    assert trajectory.conversation[3]["tool_call_id"] == trajectory.conversation[2]["tool_calls"][0]["id"]


def test_several_calls_in_a_reply_are_one_message(tmp_path: Path) -> None:
    lines = RECORDED.read_text().replace("chatcmpl-2", "chatcmpl-1").splitlines()
    (tmp_path / "events.jsonl").write_text("\n".join([*lines[:4], lines[5], lines[4], *lines[6:]]))
    trajectory = read_events(tmp_path)
    assert trajectory is not None
    roles = [message["role"] for message in trajectory.conversation]
    assert roles == ["system", "user", "assistant", "tool", "tool", "assistant", "tool"]
    assert [call["id"] for call in trajectory.conversation[2]["tool_calls"]] == ["c0", "c1"]
    assert [step["exit_code"] for step in trajectory.steps] == [0, None, None]


def test_what_is_torn_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_bytes(RECORDED.read_bytes()[:-40])
    trajectory = read_events(tmp_path)
    assert trajectory is not None
    assert trajectory.ended == "interrupted"
    (tmp_path / "events.jsonl").write_text('{"event": "begin"}\n')
    assert read_events(tmp_path) is None


def test_the_real_one_resolves_a_task(agent_image: str, program: str, tmp_path: Path, fake_server: Any) -> None:
    server = fake_server(
        calls(("terminal", {"command": "echo x > new.txt; ls"}), ("finish", {"message": "It is there."}))
    )
    record = evaluated(tmp_path, agent_image, program, server.base_url)
    assert (record["outcome"], record["exit_status"]) == ("correct", "submitted"), record
    assert record["agent"].startswith("openhands@1.")
    assert record["steps"][0]["command"] == "echo x > new.txt; ls"
    roles = [message["role"] for message in record["conversation"]]
    assert roles[:4] == ["system", "user", "assistant", "tool"]
    assert "new.txt" in record["model_patch"]
    assert {"terminal", "finish"} <= {tool["function"]["name"] for tool in record["tools"]}
