# SPDX-License-Identifier: Apache-2.0
"""What `ns gateway` adds to a request, and to the first token of a stream: with a long history, recorded, at one task
and at 64 at once, by protocol."""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.endpoint import Endpoint
from bench.load_test import double
from bench.measure import NS, BenchError, Line, Options, clean_env, scratch, tree_cpu
from newskills.base.http.client import HttpClient
from newskills.models.decode import brings_tokens

MOST = 2.0
"""Milliseconds per request."""
REQUESTS, TASKS = 400, 64
LATENCY = {1: 5, TASKS: 1000}
"""Milliseconds of the model behind the gateway, by the number of tasks."""
HISTORY, TURN, TOOLS = 40, 600, 12
"""Messages, their characters, and tools of each request: some 40 KB, as agents send."""
TOKENS = 16
"""Of each streamed reply."""
SAID = "Gateway at "
PATHS = {"chat": "v1/chat/completions", "messages": "v1/messages"}


def bench(options: Options) -> Iterator[Line]:
    with scratch() as folder:
        for tasks in (1, TASKS):
            count = options.rows(REQUESTS) * (1 if tasks == 1 else 2)
            with (
                Endpoint(LATENCY[tasks]) as endpoint,
                served(endpoint.url, folder / str(tasks)) as (url, pid),
            ):
                for protocol in PATHS:
                    yield _line(protocol, tasks, count, endpoint.url, url, pid)
            with double() as port:
                direct = f"http://127.0.0.1:{port}/v1"
                with served(direct, folder / f"stream{tasks}") as (url, pid):
                    for protocol in PATHS:
                        yield _stream_line(protocol, tasks, count // 4, direct.removesuffix("/v1"), url, pid)


def _line(protocol: str, tasks: int, count: int, direct: str, gateway: str, pid: int) -> Line:
    each = max(10, count // tasks)
    asyncio.run(_all(gateway, protocol, tasks, 5))
    plain = asyncio.run(_all(direct.removesuffix("/v1"), "chat", tasks, each))
    cpu = tree_cpu(pid)
    through = asyncio.run(_all(gateway, protocol, tasks, each))
    cpu = tree_cpu(pid) - cpu
    added = (statistics.median(through) - statistics.median(plain)) * 1000
    line = Line(bench="gateway", what=f"added to a request, {protocol}, {tasks} tasks", ours=added, unit="ms")
    line.better, line.target, line.met = "less", f"≤ {MOST:g}", added <= MOST
    line.note = f"{cpu / len(through) * 1e3:.2f} ms of CPU a request; {len(body(protocol, 0)) / 1000:.0f} KB each"
    return line


def _stream_line(protocol: str, tasks: int, count: int, direct: str, gateway: str, pid: int) -> Line:
    each = max(4, count // tasks)
    asyncio.run(_all(gateway, protocol, tasks, 2, stream=True))
    plain = asyncio.run(_all(direct, "chat", tasks, each, stream=True))
    cpu = tree_cpu(pid)
    through = asyncio.run(_all(gateway, protocol, tasks, each, stream=True))
    cpu = tree_cpu(pid) - cpu
    added = (statistics.median(through) - statistics.median(plain)) * 1000
    what = f"added to the first token, {protocol}, {tasks} tasks"
    line = Line(bench="gateway", what=what, ours=added, unit="ms", better="less", target=f"≤ {MOST:g}")
    line.met = added <= MOST
    line.note = f"{cpu / len(through) * 1e3:.1f} ms of CPU a reply of {TOKENS} tokens"
    return line


async def _first_token(client: HttpClient, path: str, data: bytes) -> float:
    """Read a stream to its end, and return the seconds until its first token."""
    began, first = time.perf_counter(), 0.0
    async with client.stream(path, data, 120.0) as answer:
        if answer.status != 200:
            raise BenchError(f"the server answered {answer.status}: {(await answer.read())[:200]!r}")
        async for event in answer.events():
            if not first and brings_tokens(event):
                first = time.perf_counter() - began
    return first


async def _all(url: str, protocol: str, tasks: int, each: int, *, stream: bool = False) -> list[float]:
    """Seconds of each request (until its first token, where it streams) of tasks that run at once, each with one
    request after the other."""
    times: list[float] = []

    async def task(number: int) -> None:
        client = HttpClient(url, limit=1)
        bodies = [body(protocol, number * 1000 + turn, stream=stream) for turn in range(each)]
        await asyncio.sleep(number / tasks * LATENCY[tasks] / 1000)  # agents do not ask in step
        for data in bodies:
            if stream:
                times.append(await _first_token(client, f"/{PATHS[protocol]}", data))
                continue
            began = time.perf_counter()
            answer = await client.post(f"/{PATHS[protocol]}", data, 120.0)
            times.append(time.perf_counter() - began)
            if answer.status != 200:
                raise BenchError(f"the server answered {answer.status}: {answer.body[:200]!r}")
        await client.close()

    await asyncio.gather(*(task(number) for number in range(tasks)))
    return times


def body(protocol: str, number: int, *, stream: bool = False) -> bytes:
    """A request of an agent in the middle of its work; the last message is new in each."""
    roles = ("user", "assistant")
    messages = [{"role": roles[at % 2], "content": f"{at} " + "x" * TURN} for at in range(HISTORY)]
    messages.append({"role": "user", "content": f"turn {number} " + "x" * TURN})
    schema = {
        "type": "object",
        "properties": {f"key{at}": {"type": "string", "description": "d" * 60} for at in range(8)},
    }
    if protocol == "messages":
        tools = [{"name": f"tool{at}", "description": "d" * 200, "input_schema": schema} for at in range(TOOLS)]
        most = TOKENS if stream else 100
        row = {"model": "m", "max_tokens": most, "messages": messages, "tools": tools, "stream": stream}
        return json.dumps(row).encode()
    functions = [{"name": f"tool{at}", "description": "d" * 200, "parameters": schema} for at in range(TOOLS)]
    tools = [{"type": "function", "function": function} for function in functions]
    row = {"model": "m", "messages": messages, "tools": tools}
    if stream:
        row |= {"stream": True, "max_tokens": TOKENS}
    return json.dumps(row).encode()


@contextmanager
def served(address: str, folder: Path) -> Iterator[tuple[str, int]]:
    """Address and process of a gateway before the model at `address`."""
    folder.mkdir()
    argv = [str(NS), "gateway", "--port=0", "--server_type=generic", f"--server_address={address}", "--model=m"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env=clean_env(folder), cwd=folder) as process:
        assert process.stdout is not None
        try:
            url = next((line.partition(SAID)[2].split()[0] for line in process.stdout if SAID in line), "")
            if not url:
                raise BenchError("ns gateway did not start")
            yield url, process.pid
        finally:
            process.terminate()
            process.stdout.read()
