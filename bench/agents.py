# SPDX-License-Identifier: Apache-2.0
"""Agents in podman containers: a step beside plain `podman exec`, with 16 containers at work at once; its CPU time;
tasks an hour beside mini-swe-agent's own batch runner, at the same scripted endpoint; a step of programs of others
beside the bare program."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.environments.images import PROGRAMS
from tests.launch.containers import make_image, modest_settings, trial, unusable

from bench.agent_programs import program_lines
from bench.measure import NS, ROOT, BenchError, Line, Options, run, scratch
from newskills.base import aio
from newskills.base.environment import EnvironmentSpec
from newskills.base.http.messages import HttpRequest, Response, json_response
from newskills.base.http.server import serve
from newskills.environments import make_environments
from newskills.environments.config import EnvironmentConfig

AT_ONCE, STEPS, ROUNDS, TASKS, COMMANDS = 16, 5, 3, 16, 8
OVERHEAD_MS = 30.0
PEER = "mini-swe-agent 2.4.6"
IMAGE = f"localhost/newskills-bench-{os.getpid()}:1"
ENDINGS = {"ours": "echo SUBMIT_CHANGES", "mini": "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && git diff"}


def bench(options: Options) -> Iterator[Line]:
    """Raises BenchError where podman cannot run containers."""
    yield from program_lines(options)
    if why := unusable():
        raise BenchError(why)
    with scratch() as folder, pytest.MonkeyPatch.context() as patch, image(folder, patch):
        plain, ours = aio.run(lambda: step_times(options.rows(STEPS)))
        yield Line(
            bench="agents",
            what=f"a step, {AT_ONCE} containers at once",
            ours=1000 * ours,
            unit="ms",
            better="less",
            beside="plain podman exec",
            theirs=1000 * plain,
            target=f"≤ {OVERHEAD_MS:g} ms more",
            met=1000 * (ours - plain) <= OVERHEAD_MS,
        )
        cost = step_costs(10 * options.rows(STEPS))
        yield Line(
            bench="agents",
            what="CPU time of a step, one container",
            ours=1000 * cost["ours"],
            unit="ms",
            better="less",
            beside="plain podman exec",
            theirs=1000 * cost["plain"],
            target="≤ a tenth",
            met=10 * cost["ours"] <= cost["plain"],
        )
        tasks = options.rows(TASKS)
        with endpoint() as url:
            rate = per_hour(tasks, lambda: our_batch(folder, url, tasks))
            peer = None
            if options.peers and all(map(importlib.util.find_spec, ("minisweagent", "datasets"))):
                peer = per_hour(tasks, lambda: their_batch(folder, url, tasks))
        yield Line(
            bench="agents",
            what=f"{tasks} tasks of {COMMANDS + 1} steps, {AT_ONCE} at once",
            ours=rate,
            unit="tasks/h",
            beside=PEER if peer is not None else "",
            theirs=peer,
        )


@contextmanager
def image(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[None]:
    """`IMAGE`: bash, git and Python of this machine, a repository in /testbed. Raises BenchError."""
    if make_image(folder, IMAGE, PROGRAMS):
        patch.setenv("CONTAINERS_CONF", str(modest_settings(folder)))
        if why := trial(IMAGE):
            raise BenchError(f"podman cannot run containers here: {why}")
    made = (
        "mkdir -p /testbed && cd /testbed && git init -q && echo a > a.txt && git add . && "
        "git -c user.name=b -c user.email=b@localhost commit -qm a"
    )
    name = f"newskills-bench-{os.getpid()}"
    try:
        _podman("run", "--name", name, "--network=none", IMAGE, "bash", "-c", made)
        _podman("commit", "--quiet", name, IMAGE)
        yield
    finally:
        for words in (("rm", "--force", name), ("rmi", "--force", IMAGE)):
            subprocess.run(["podman", *words], check=False, capture_output=True)


def _podman(*words: str) -> str:
    done = subprocess.run(["podman", *words], check=False, capture_output=True, text=True)
    if done.returncode:
        raise BenchError(f"podman {words[0]}: {done.stderr[-500:]}")
    return done.stdout


async def step_times(steps: int) -> tuple[float, float]:
    """Seconds of a step: plain, ours; medians over rounds in turn, so that other work on the machine hits both."""
    pool = make_environments(EnvironmentConfig(engine="podman", at_once=AT_ONCE), os.environ)
    spec = EnvironmentSpec(image=IMAGE, workdir="/testbed")
    try:
        machines = await asyncio.gather(*(pool.start(spec) for _ in range(AT_ONCE)))
        names = [str(machine.name) for machine in machines if hasattr(machine, "name")]
        plain, ours = [], []
        with ThreadPoolExecutor(AT_ONCE) as threads:
            for _ in range(ROUNDS):
                began = time.perf_counter()
                await asyncio.gather(*(_in_thread(threads, _plain_steps, name, steps) for name in names))
                plain.append((time.perf_counter() - began) / steps)

                async def work(machine: Any) -> None:
                    for _ in range(steps):
                        await machine.execute("echo step", timeout=600)

                began = time.perf_counter()
                await asyncio.gather(*map(work, machines))
                ours.append((time.perf_counter() - began) / steps)
    finally:
        await pool.close()
    return statistics.median(plain), statistics.median(ours)


def step_costs(steps: int) -> dict[str, float]:
    """CPU seconds, all that podman starts included."""
    costs: dict[str, float] = json.loads(
        run([sys.executable, "-m", "bench.agent_steps", IMAGE, str(steps)], cwd=ROOT).output.splitlines()[-1]
    )
    return costs


async def _in_thread(threads: ThreadPoolExecutor, function: Callable[..., None], *arguments: Any) -> None:
    await asyncio.get_running_loop().run_in_executor(threads, function, *arguments)


def _plain_steps(name: str, steps: int) -> None:
    for _ in range(steps):
        _podman("exec", "--workdir", "/testbed", name, "bash", "-c", "echo step")


def per_hour(tasks: int, batch: Callable[[], None]) -> float:
    began = time.perf_counter()
    batch()
    return 3600 * tasks / (time.perf_counter() - began)


def our_batch(folder: Path, url: str, tasks: int) -> None:
    rows = [
        {
            "id": f"task-{number}",
            "instance_id": f"task-{number}",
            "repo": "bench",
            "base_commit": "HEAD",
            "problem_statement": "Change a.txt. (ours)",
            "image": IMAGE,
            "container_repo_dir": "/testbed",
        }
        for number in range(tasks)
    ]
    (folder / "tasks.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    words = (
        f"generate --input_file=tasks.jsonl --output_dir=ours --server_type=vllm --server_address={url} --model=bench "
        "++prompt_config=agents/bash ++solver=software_agent ++agent=bash ++environment.engine=podman "
        f"++environment.at_once={AT_ONCE} "
        f"++max_concurrent_requests={AT_ONCE}"
    )
    run([NS, *words.split()], cwd=folder, env=dict(os.environ))
    patches = [json.loads(line)["model_patch"] for line in (folder / "ours/output.jsonl").open()]
    if len(patches) != tasks or not all("step" in patch for patch in patches):
        raise BenchError("the tasks were not done")


def their_batch(folder: Path, url: str, tasks: int) -> None:
    rows = [
        {"instance_id": f"task-{number}", "problem_statement": "Change a.txt. (mini)", "image_name": IMAGE}
        for number in range(tasks)
    ]
    data = folder / "data"
    data.mkdir(exist_ok=True)
    (data / "test.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    words = [
        *(sys.executable, "-m", "minisweagent.run.benchmarks.swebench", "--subset", str(data), "--split", "test"),
        *("-o", str(folder / "theirs"), "-w", str(AT_ONCE), "-m", "openai/bench", "--environment-class", "docker"),
        *(
            "-c",
            "swebench.yaml",
            "-c",
            f"model.model_kwargs.api_base={url}",
            "-c",
            "model.cost_tracking=ignore_errors",
        ),
    ]
    quiet = {"MSWEA_DOCKER_EXECUTABLE": "podman", "MSWEA_SILENT_STARTUP": "1", "OPENAI_API_KEY": "none"}
    environ = {**os.environ, **quiet, "HF_HUB_OFFLINE": "1", "HF_HOME": str(folder / "hf"), "COLUMNS": "80"}
    run(words, cwd=folder, env=environ)
    patches = json.loads((folder / "theirs/preds.json").read_text())
    if len(patches) != tasks or not all("step" in task["model_patch"] for task in patches.values()):
        raise BenchError("mini-swe-agent did not do the tasks")


@contextmanager
def endpoint() -> Iterator[str]:
    """Replies at once with the next command of a task, then with what ends it; in a thread of its own."""
    ready, done = threading.Event(), threading.Event()
    address: list[str] = []

    async def serving() -> None:
        server = await serve(_answer)
        address.append(f"{server.url}/v1")
        ready.set()
        await asyncio.to_thread(done.wait)
        await server.close()

    thread = threading.Thread(target=lambda: asyncio.run(serving()))
    thread.start()
    ready.wait()
    try:
        yield address[0]
    finally:
        done.set()
        thread.join()


async def _answer(request: HttpRequest) -> Response:
    if not request.path.endswith("/chat/completions"):
        return json_response(
            {"object": "list", "data": [{"id": "bench", "object": "model", "max_model_len": 100_000}]}
        )
    body = json.loads(request.body)
    turn = sum(message["role"] == "assistant" for message in body["messages"])
    who = "mini" if "(mini)" in str(body["messages"]) else "ours"
    command = f"echo step {turn} >> a.txt; cat a.txt" if turn < COMMANDS else ENDINGS[who]
    call = {
        "id": f"call_{turn}",
        "type": "function",
        "function": {"name": "bash", "arguments": json.dumps({"command": command})},
    }
    message = {"role": "assistant", "content": "Next.", "tool_calls": [call]}
    return json_response(
        {
            "id": "chat",
            "object": "chat.completion",
            "created": 0,
            "model": "bench",
            "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
        }
    )
