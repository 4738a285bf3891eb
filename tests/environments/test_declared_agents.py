# SPDX-License-Identifier: Apache-2.0
"""An agent that is a data file, by a stand-in program: what a program may do wrong, and what the record says of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.commands.running import ns
from tests.environments.images import ENGINE, FLOOD_MB, own_containers
from tests.environments.shell_model import ShellModel, serving
from tests.environments.small_tasks import prepared_small_tasks, records_of, small_tasks

from newskills.agents.forwarder import COMPILERS

PROGRAM = """
import json, os, pathlib, subprocess, sys, time, urllib.error, urllib.request
url, key, model, task = sys.argv[1:5]
mode = os.environ.get("MODE", "")
settings = json.loads(pathlib.Path.home().joinpath(".standin/settings.json").read_text())
assert settings == {"url": url + "/v1", "deep": [{model: 1.5, "quote": 'a"b'}]}, settings
log = pathlib.Path.home() / ".standin" / "steps.log"
pathlib.Path(".standin-cache").write_text("x")
assert sys.stdin.read() == ""

def ask(messages, tools=True):
    tool = {"type": "function", "function": {"name": "bash", "parameters": {"type": "object", "properties": {}}}}
    body = {"model": model, "messages": messages, **({"tools": [tool]} if tools else {})}
    headers = {"Content-Type": "application/json", "Authorization": "Bearer " + key}
    request = urllib.request.Request(settings["url"] + "/chat/completions", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request) as reply:
        return json.load(reply)["choices"][0]["message"]

if mode == "elsewhere":
    urllib.request.urlopen("http://127.0.0.1:9/v1", timeout=5)
if mode == "waits":
    time.sleep(600)
if mode == "tries-on":
    while True:
        try:
            ask([{"role": "user", "content": task}])
        except urllib.error.HTTPError as error:
            error.read()
if mode == "floods":
    for _ in range(int(os.environ["FLOOD"])):
        sys.stdout.write("x" * (1 << 20))
if mode == "forks":
    subprocess.Popen(["sh", "-c", "f() { f | f & }; f"], start_new_session=True)
if mode == "asks-the-impossible":
    urllib.request.urlopen(urllib.request.Request(settings["url"] + "/responses", b'{"previous_response_id": "a"}'))
messages = [{"role": "user", "content": task}]
while True:
    message = ask(messages)
    messages.append(message)
    if not message.get("tool_calls"):
        break
    for call in message["tool_calls"]:
        command = json.loads(call["function"]["arguments"])["command"]
        done = subprocess.run(command, shell=True, capture_output=True, text=True)
        log.open("a").write(command + chr(10))
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": done.stdout + done.stderr})
sys.exit(int(os.environ.get("CODE", "0")))
"""
AGENT = """
title: Stand-in
protocol: chat
install: {folder: %s, version: 1.2.3}
command: [python3, "{program}/work.py", "{url}", "{key}", "{model}", "{task}"]
files:
  ~/.standin/settings.json: {url: "{url}/v1", deep: [{"{model}": 1.5, quote: 'a"b'}]}
variables: {CODE: 0}
log: ["~/.standin/*.log"]
leaves: [".standin*"]
exit_codes: {53: steps, 41: broken}
"""
SOFT = ("++server.enable_soft_fail=true", "--accept_lost=100")
SOLVES = ("echo x > new.txt; grep -vc lo: /proc/net/dev",)


def agent(folder: Path) -> None:
    """`folder/standin.yaml`, with its program."""
    (folder / "program").mkdir()
    (folder / "program/work.py").write_text(PROGRAM)
    (folder / "standin.yaml").write_text(AGENT % (folder / "program"))


def line(url: str) -> str:
    return (
        f"ns eval --benchmarks=./small.py ++agent=./standin.yaml --server_type=vllm --server_address={url} "
        f"--model=fake --output_dir=results ++environment.engine={ENGINE}"
    )


def evaluated(folder: Path, image: str, model: ShellModel, *more: str) -> dict[str, Any]:
    agent(folder)
    env = prepared_small_tasks(folder, 1, image)
    done = ns(line(model.url), *more, cwd=folder, env=env, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
    assert own_containers() == []
    (record,) = records_of(folder)
    return record


def mode(name: str, **more: object) -> str:
    return f"++agent_config.variables={json.dumps({'MODE': name, **more}).replace(' ', '')}"


def test_a_program_by_a_file_solves_a_task_and_reaches_nothing_else(agent_image: str, tmp_path: Path) -> None:
    with serving(ShellModel(*SOLVES)) as model:
        record = evaluated(tmp_path, agent_image, model, "++inference.temperature=0.25")
        asked = len(model.bodies)
        again = ns(
            line(model.url),
            "++inference.temperature=0.25",
            cwd=tmp_path,
            env={"NEWSKILLS_DATA_DIR": str(tmp_path / "data")},
        )
        assert again.returncode == 0, again.stderr
        assert len(model.bodies) == asked == 2
    assert {body["temperature"] for body in model.bodies} == {0.25}
    assert (record["outcome"], record["exit_status"], record["agent"]) == ("correct", "submitted", "standin@1.2.3")
    assert [(step["command"], step["output_bytes"]) for step in record["steps"]] == [(SOLVES[0], 2)]
    assert [message["role"] for message in record["conversation"]] == ["user", "assistant", "tool", "assistant"]
    assert record["conversation"][2]["content"] == "2\n"  # lines of that file's head: loopback is the only device
    assert "The file new.txt is missing (0)." in record["conversation"][0]["content"]
    assert (record["num_generated_tokens"], record["tools"][0]["function"]["name"]) == (20, "bash")
    assert "standin" not in record["model_patch"]
    logs = tmp_path / "results/eval-results/small" / record["agent_log"]
    assert sorted(file.name for file in logs.iterdir()) == ["1-steps.log", "gateway.jsonl", "printed.txt"]
    assert (logs / "1-steps.log").read_text() == SOLVES[0] + "\n"


@pytest.mark.parametrize(
    ("name", "more", "sentence"),
    [
        ("elsewhere", (), "Stand-in ended before it asked the gateway"),
        ("waits", ("++agent_config.time_limit=3",), "had not ended after 3 s: it waits for an answer of a person"),
        ("asks-the-impossible", (), "asked for what the gateway cannot give"),
        ("", ("++agent_config.variables={CODE:41}",), "Stand-in failed: completed, exit code 41"),
    ],
)
def test_a_program_that_does_not_work_is_unscored_with_the_reason(
    name: str, more: tuple[str, ...], sentence: str, agent_image: str, tmp_path: Path
) -> None:
    words = more if not name else (mode(name), *more)
    with serving(ShellModel(*SOLVES)) as model:
        record = evaluated(tmp_path, agent_image, model, *words, *SOFT)
    assert (record["outcome"], record["outcome_cause"]) == ("unscored", "environment")
    assert sentence in record["detailed_error"]


@pytest.mark.parametrize(("code", "status"), [(1, "failed"), (53, "steps"), (137, "failed")])
def test_what_was_changed_counts_however_the_program_ended(
    code: int, status: str, agent_image: str, tmp_path: Path
) -> None:
    with serving(ShellModel(*SOLVES)) as model:
        record = evaluated(tmp_path, agent_image, model, mode("", CODE=code))
    assert (record["outcome"], record["exit_status"]) == ("correct", status)


def test_a_program_that_tries_on_and_on_is_ended(agent_image: str, tmp_path: Path) -> None:
    with serving(ShellModel(*SOLVES, endless=True)) as model:
        record = evaluated(tmp_path, agent_image, model, mode("tries-on"), "++agent_max_turns=5")
    assert (len(model.bodies), record["exit_status"], record["outcome"]) == (5, "steps", "no_answer")


def test_without_a_compiler_the_python_of_the_image_leads_to_the_gateway(
    agent_image: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compilers = tmp_path / "compilers"
    compilers.mkdir()
    for name in COMPILERS:
        (compilers / name).write_text("#!/bin/sh\nexit 1\n")
        (compilers / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{compilers}:{os.environ['PATH']}")
    monkeypatch.setenv("NEWSKILLS_CACHE", str(tmp_path / "cache"))
    with serving(
        ShellModel("cat /proc/$(ps -o ppid= $PPID | tr -d ' ')/cmdline | tr '\\0' ' '", *SOLVES)
    ) as model:
        record = evaluated(tmp_path, agent_image, model)
    assert (record["outcome"], record["exit_status"]) == ("correct", "submitted")
    assert "forward.py" in record["conversation"][2]["content"]


def test_limits_of_tokens_and_time_end_the_work(agent_image: str, tmp_path: Path) -> None:
    with serving(ShellModel("echo x >> other.txt", endless=True)) as model:
        record = evaluated(tmp_path, agent_image, model, "++agent_config.token_limit=30")
        assert (record["exit_status"], record["num_generated_tokens"]) == ("tokens", 30)
    assert record["outcome"] == "wrong"
    with serving(ShellModel("sleep 600")) as model:
        more = ("++agent_config.time_limit=5", "--output_dir=late")
        env = {"NEWSKILLS_DATA_DIR": str(tmp_path / "data")}
        done = ns(line(model.url).replace("--output_dir=results ", ""), *more, cwd=tmp_path, env=env, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
    assert records_of(tmp_path, "late")[0]["exit_status"] == "time"
    assert own_containers() == []


@pytest.mark.parametrize("name", ["floods", "forks"])
def test_a_hostile_program_costs_only_its_task(name: str, agent_image: str, tmp_path: Path) -> None:
    with serving(ShellModel(*SOLVES)) as model:
        more = ("++environment.processes=128", "++agent_config.time_limit=60")
        record = evaluated(tmp_path, agent_image, model, mode(name, FLOOD=FLOOD_MB), *more, *SOFT)
    assert record["outcome"] in (("correct",) if name == "floods" else ("correct", "unscored", "no_answer"))
    printed = list(tmp_path.glob("results/eval-results/small/agent-logs/*/printed.txt"))
    assert all(file.stat().st_size <= 1 << 16 for file in printed)


def test_a_killed_run_does_its_tasks_once(agent_image: str, tmp_path: Path) -> None:
    agent(tmp_path)
    env = prepared_small_tasks(tmp_path, 3, agent_image)
    with serving(ShellModel("echo x > new.txt", "sleep 2")) as model:
        words = [sys.executable, "-m", "newskills", *line(model.url).split()[1:], "++environment.at_once=1"]
        with subprocess.Popen(words, cwd=tmp_path, env={**os.environ, **env}, stdout=-3, stderr=-3) as process:
            until = time.monotonic() + 300
            while len(model.bodies) < 5 and process.poll() is None and time.monotonic() < until:
                time.sleep(0.02)
            process.send_signal(signal.SIGKILL)
        assert len(model.bodies) < 9
        done = ns(line(model.url), cwd=tmp_path, env=env, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
    records = records_of(tmp_path)
    assert [record["outcome"] for record in records] == ["correct"] * 3
    assert [record["num_steps"] for record in records] == [2] * 3
    assert len(model.bodies) <= 9 + 3  # one task began anew
    assert own_containers() == []


def test_what_cannot_work_is_refused_before_any_request(tmp_path: Path) -> None:
    small_tasks(tmp_path, 1, "none")
    env = {"NEWSKILLS_DATA_DIR": str(tmp_path / "data"), "NEWSKILLS_AGENTS": str(tmp_path / "agents")}
    assert ns("ns prepare_data ./small.py", cwd=tmp_path, env=env).returncode == 0
    agent(tmp_path)
    (tmp_path / "broken.yaml").write_text((AGENT % "/none").replace("leaves:", "leavs:"))
    base = "ns eval --benchmarks=./small.py --model=fake --server_address=http://127.0.0.1:9/v1 --server_type=vllm"
    for more, sentence in (
        ("++agent=codex", "The agent Codex is not installed in"),
        ("++agent=codex", "Install it once: ns agents install codex"),
        ("++agent=codx", "did you mean 'codex'?"),
        ("++agent=./none.yaml", "none.yaml cannot be read: No such file or directory."),
        ("++agent=./broken.yaml", "broken.yaml has no key 'leavs'; did you mean 'leaves' or"),
        ("++agent=./standin.yaml ++agent_config.time_limt=3", "agent_config of agent 'standin'"),
    ):
        done = ns(f"{base} {more}", cwd=tmp_path, env=env)
        assert done.returncode != 0, done.stdout + done.stderr
        assert sentence in " ".join((done.stdout + done.stderr).split()), done.stdout + done.stderr
