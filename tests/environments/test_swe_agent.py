# SPDX-License-Identifier: Apache-2.0
"""SWE-agent as a program in our containers: its model is our endpoint, its trajectory our record.

The real one where NEWSKILLS_SWE_AGENT names its folder; everywhere a stand-in that asks and writes as it does, and a
trajectory that the real one (1.1.0, commit 3ea751c0) wrote here.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.commands.running import ns
from tests.environments.images import ENGINE, own_containers
from tests.environments.small_tasks import prepared_small_tasks, records_of, small_tasks
from tests.server.script import Script
from tests.shared import RUN

from newskills.base.errors import EnvironmentFailedError
from newskills.solve.agents.swe_agent.trajectories import read_trajectory

IMAGE = f"localhost/newskills-swe-agent-{RUN}:1"
RECORDED = Path(__file__).with_name("swe_agent.traj")
CONFIG = Path(__file__).with_name("swe_agent.yaml")
MAKEFILE = "FROM {image}\nRUN mkdir -p /usr/bin && ln -s /bin/env /usr/bin/env\n"
"""What its tools call by that name."""


@pytest.fixture
def program() -> str:
    """The folder with the program: a checkout in `source`, its environment in `venv`."""
    folder = os.environ.get("NEWSKILLS_SWE_AGENT", "")
    if not folder:
        pytest.skip("no SWE-agent here: set NEWSKILLS_SWE_AGENT to a folder as docs/agents.md makes it")
    return folder


@pytest.fixture
def image(agent_image: str, tmp_path: Path) -> Iterator[str]:
    file = tmp_path / "Dockerfile"
    file.write_text(MAKEFILE.format(image=agent_image))
    build = [ENGINE, "build", "--quiet", "--network=none", f"--tag={IMAGE}", f"--file={file}", str(tmp_path)]
    subprocess.run(build, check=True, capture_output=True)
    yield IMAGE
    subprocess.run([ENGINE, "rmi", "--force", IMAGE], check=False, capture_output=True)


def calls(*turns: tuple[str, dict[str, str]]) -> Script:
    def call(number: int, name: str, arguments: dict[str, str]) -> tuple[dict[str, Any], ...]:
        function = {"name": name, "arguments": json.dumps(arguments)}
        return ({"id": f"c{number}", "type": "function", "function": function},)

    return Script(tool_turns=tuple(call(number, *turn) for number, turn in enumerate(turns)))


def evaluated(folder: Path, image: str, program: str, url: str, *more: str) -> dict[str, Any]:
    env = prepared_small_tasks(folder, 1, image)
    line = (
        f"ns eval --benchmarks=./small.py ++agent=swe-agent ++agent_config.folder={program} --server_type=vllm "
        f"--server_address={url} --model=fake --output_dir=results ++environment.engine={ENGINE}"
    )
    done = ns(line, *more, cwd=folder, env=env, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
    assert own_containers() == []
    (record,) = records_of(folder)
    return record


STAND_IN = """
import json, pathlib, subprocess, sys, urllib.request
assert sys.argv[1] == "run"
options = dict(word[2:].split("=", 1) for word in sys.argv[2:])
issue = pathlib.Path(options["problem_statement.path"]).read_text()
pathlib.Path(options["config"]).read_text()
headers = {"Content-Type": "application/json"}
headers |= json.loads(options["agent.model.completion_kwargs"])["extra_headers"]
tool = {"type": "function", "function": {"name": "bash", "parameters": {}}}
body = {"model": options["agent.model.name"], "messages": [{"role": "user", "content": issue}], "tools": [tool]}
url = options["agent.model.api_base"] + "/chat/completions"
with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers)) as reply:
    command = json.load(reply)["choices"][0]["message"]["content"]
subprocess.run(command, shell=True, check=True)
add = ["git", "-c", "safe.directory=*", "add", "-A"]
subprocess.run(add, check=True)
shown = [*add[:3], "diff", "--cached"]
patch = subprocess.run(shown, capture_output=True, text=True, check=True).stdout
folder = pathlib.Path(options["output_dir"], "task")
folder.mkdir(parents=True)
history = [*body["messages"], {"role": "assistant", "content": command}]
step = {"action": command, "observation": "", "execution_time": 0.5}
info = {"exit_status": "submitted", "submission": patch}
(folder / "task.traj").write_text(json.dumps({"trajectory": [step], "history": history, "info": info}))
"""


@pytest.fixture
def stand_in(tmp_path: Path) -> str:
    folder = tmp_path / "program"
    for name, text in (
        ("source/config/default.yaml", "agent: {}\n"),
        ("venv/bin/python", '#!/bin/sh\nexec python3 "$@"\n'),
        ("venv/bin/sweagent", STAND_IN),
        ("venv/lib/python3.11/site-packages/sweagent-1.2.3.dist-info/METADATA", ""),
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return str(folder)


def test_a_program_in_a_container_reaches_nothing_but_the_endpoint(
    agent_image: str, stand_in: str, tmp_path: Path, fake_server: Any
) -> None:
    server = fake_server(answer=lambda body: "echo x > new.txt; grep -vc lo: /proc/net/dev > devices.txt")
    record = evaluated(tmp_path, agent_image, stand_in, server.base_url, "++inference.temperature=0.25")
    assert (record["outcome"], record["exit_status"], record["num_steps"]) == ("correct", "submitted", 1)
    assert record["agent"] == "swe-agent@1.2.3"
    assert "new.txt" in record["model_patch"]
    assert "+2\n" in record["model_patch"]  # lines of the head of that file: loopback is the only device
    assert record["tools"][0]["function"]["name"] == "bash"
    assert record["num_generated_tokens"] > 0
    (request,) = server.records
    assert (request.body["model"], request.body["temperature"]) == ("fake", 0.25)


def test_a_program_that_dies_says_why(agent_image: str, stand_in: str, tmp_path: Path, fake_server: Any) -> None:
    Path(stand_in, "venv/bin/sweagent").write_text("raise SystemExit('Exit due to a missing module')")
    server = fake_server()
    record = evaluated(
        tmp_path, agent_image, stand_in, server.base_url, "++server.enable_soft_fail=true", "--accept_lost=100"
    )
    assert (record["outcome"], record["outcome_cause"]) == ("unscored", "environment")
    assert "SWE-agent did not begin its work: Exit due to a missing module" in record["detailed_error"]


def test_what_is_not_there_is_refused(stand_in: str, tmp_path: Path) -> None:
    small_tasks(tmp_path, 1, "none")
    env = {"NEWSKILLS_DATA_DIR": str(tmp_path / "data")}
    assert ns("ns prepare_data ./small.py", cwd=tmp_path, env=env).returncode == 0
    line = "ns eval --benchmarks=./small.py --model=fake --server_address=http://127.0.0.1:9/v1 --server_type=vllm"
    for more, sentence in (
        ("++agent_config.folder=/nonexistent", "SWE-agent is not installed in /nonexistent"),
        (f"++agent_config.folder={stand_in} ++agent_config.config=defualt", "has no configuration 'defualt'"),
        (f"++agent_config.folder={stand_in} ++agent_config.commit=3ea751c", "is at no commit, not at 3ea751c"),
        (f"++agent_config.folder={stand_in} ++agent_config.steps=3", "has no key 'steps'"),
    ):
        done = ns(f"{line} ++agent_framework=swe_agent {more}", cwd=tmp_path, env=env)
        assert done.returncode == 2, done.stdout + done.stderr
        assert sentence in " ".join((done.stdout + done.stderr).split())


def test_a_recorded_trajectory_becomes_a_record() -> None:
    trajectory = read_trajectory(RECORDED)
    assert trajectory.ended == "submitted"
    assert [step["command"] for step in trajectory.steps] == ["echo x > new.txt; ls", "submit"]
    assert trajectory.steps[0]["output_bytes"] == len("new.txt  old.txt\n")
    roles = [message["role"] for message in trajectory.conversation]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "tool"]
    assert trajectory.conversation[3]["tool_call_id"] == trajectory.conversation[2]["tool_calls"][0]["id"]
    assert trajectory.submission is not None
    assert trajectory.submission.startswith("diff --git a/new.txt b/new.txt")


@pytest.mark.parametrize(
    ("status", "ended"),
    [
        ("submitted", "submitted"),
        ("submitted (exit_cost)", "steps"),
        ("exit_context", "context"),
        ("exit_format", "no_command"),
        ("exit_forfeit", "exit_forfeit"),
        (None, "interrupted"),
    ],
)
def test_why_it_ended(tmp_path: Path, status: str | None, ended: str) -> None:
    file = tmp_path / "task.traj"
    file.write_text(json.dumps({"history": [], "trajectory": [], "info": {"exit_status": status}}))
    assert read_trajectory(file).ended == ended


@pytest.mark.parametrize("status", ["exit_error", "submitted (exit_api)", "exit_environment_error"])
def test_an_error_of_the_program_is_no_ending_of_the_models(tmp_path: Path, status: str) -> None:
    file = tmp_path / "task.traj"
    file.write_text(json.dumps({"history": [], "trajectory": [], "info": {"exit_status": status}}))
    with pytest.raises(EnvironmentFailedError, match="an error of its own"):
        read_trajectory(file)


def test_what_is_no_trajectory_is_an_environment_that_failed(tmp_path: Path) -> None:
    for text in ("[]", "{", '{"history": 3}'):
        (tmp_path / "task.traj").write_text(text)
        with pytest.raises(EnvironmentFailedError, match="cannot be read"):
            read_trajectory(tmp_path / "task.traj")


def test_it_resolves_a_task(image: str, program: str, tmp_path: Path, fake_server: Any) -> None:
    server = fake_server(calls(("bash", {"command": "echo x > new.txt; ls"}), ("submit", {})))
    record = evaluated(tmp_path, image, program, server.base_url, f"++agent_config.config={CONFIG}")
    assert (record["outcome"], record["exit_status"]) == ("correct", "submitted"), record
    assert record["agent"].startswith("swe-agent@1.")
    assert record["steps"][0]["command"] == "echo x > new.txt; ls"
    assert record["num_generated_tokens"] > 0
    assert [message["role"] for message in record["conversation"][:4]] == ["system", "user", "assistant", "tool"]
    assert "new.txt" in record["model_patch"]
    assert {"bash", "submit"} <= {tool["function"]["name"] for tool in record["tools"]}


def test_its_requests_are_limited(image: str, program: str, tmp_path: Path, fake_server: Any) -> None:
    server = fake_server(calls(*[("bash", {"command": "echo x >> other.txt"})] * 9))
    record = evaluated(tmp_path, image, program, server.base_url, "++agent_max_turns=3")
    assert (record["exit_status"], record["outcome"]) == ("steps", "wrong")
    assert len(server.records) <= 4
