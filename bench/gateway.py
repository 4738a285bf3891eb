# SPDX-License-Identifier: Apache-2.0
"""What `ns gateway` adds to a request and to the first token of a stream, beside the backend asked directly: with a
long history, recorded, at one task and at 64 at once, in the four protocols; and the CPU time of its process."""

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
"""Milliseconds that may be added to a request."""
MOST_CPU = 1.5
"""Milliseconds of CPU for a whole reply."""
REQUESTS, TASKS = 400, 64
LATENCY = {1: 5, TASKS: 1000}
"""Milliseconds of the model behind the gateway, by the number of tasks."""
HISTORY, TURN, TOOLS = 40, 600, 12
"""Messages, their characters, and tools of each request: some 40 KB, as agents send."""
TOKENS = 16
"""Of each streamed reply."""
SAID = "Gateway at "
PATHS = {
    "chat": "v1/chat/completions",
    "responses": "v1/responses",
    "messages": "v1/messages",
    "gemini": "v1beta/models/m:generateContent",
}
GEMINI_STREAM = "v1beta/models/m:streamGenerateContent?alt=sse"


def bench(options: Options) -> Iterator[Line]:
    with scratch() as folder:
        for tasks in (1, TASKS):
            count = options.rows(REQUESTS) * (1 if tasks == 1 else 2)
            with Endpoint(LATENCY[tasks]) as endpoint, served(endpoint.url, folder / str(tasks)) as gateway:
                yield from _lines(tasks, max(10, count // tasks), endpoint.url, gateway)
            with double() as port:
                direct = f"http://127.0.0.1:{port}"
                with served(f"{direct}/v1", folder / f"stream{tasks}") as gateway:
                    yield from _lines(tasks, max(4, count // 10 // tasks), direct, gateway, stream=True)


def _lines(
    tasks: int, each: int, direct: str, gateway: tuple[str, int], *, stream: bool = False
) -> Iterator[Line]:
    """Ask the backend directly, then the gateway in each protocol."""
    url, pid = gateway
    plain = statistics.median(asyncio.run(_all(direct, "chat", tasks, each, stream=stream)))
    part, reply = ("the first token", f"a reply of {TOKENS} tokens") if stream else ("a request", "a request")
    for protocol in PATHS:
        asyncio.run(_all(url, protocol, tasks, 2, stream=stream))
        cpu = tree_cpu(pid)
        through = asyncio.run(_all(url, protocol, tasks, each, stream=stream))
        cpu_ms = (tree_cpu(pid) - cpu) / len(through) * 1e3
        added = (statistics.median(through) - plain) * 1000
        what = f"added to {part}, {protocol}, {tasks} tasks"
        line = Line(bench="gateway", what=what, ours=added, unit="ms", better="less", target=f"≤ {MOST:g}")
        line.met = added <= MOST
        line.note = f"{plain * 1e3:.1f} ms directly; {len(body(protocol, 0)) / 1000:.0f} KB each"
        yield line
        line = Line(bench="gateway", what=f"{reply}, {protocol}, {tasks} tasks", ours=cpu_ms, unit="CPU ms")
        line.better = "less"
        if not stream:
            line.target, line.met = f"≤ {MOST_CPU:g}", cpu_ms <= MOST_CPU
        yield line


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
        path = f"/{GEMINI_STREAM if stream and protocol == 'gemini' else PATHS[protocol]}"
        for data in bodies:
            if stream:
                times.append(await _first_token(client, path, data))
                continue
            began = time.perf_counter()
            answer = await client.post(path, data, 120.0)
            times.append(time.perf_counter() - began)
            if answer.status != 200:
                raise BenchError(f"the server answered {answer.status}: {answer.body[:200]!r}")
        await client.close()

    await asyncio.gather(*(task(number) for number in range(tasks)))
    return times


def body(protocol: str, number: int, *, stream: bool = False) -> bytes:
    """Return a request of an agent in the middle of its work; the last message is new in each."""
    texts = [f"{at} " + "x" * TURN for at in range(HISTORY)] + [f"turn {number} " + "x" * TURN]
    properties = {f"key{at}": {"type": "string", "description": "d" * 60} for at in range(8)}
    schema = {"type": "object", "properties": properties}
    names = [{"name": f"tool{at}", "description": "d" * 200} for at in range(TOOLS)]
    most = TOKENS if stream else 100
    if protocol == "gemini":
        turns = [{"role": ("user", "model")[at % 2], "parts": [{"text": text}]} for at, text in enumerate(texts)]
        functions = [{**name, "parameters": schema} for name in names]
        config = {"maxOutputTokens": most}
        tools = [{"functionDeclarations": functions}]
        return json.dumps({"contents": turns, "tools": tools, "generationConfig": config}).encode()
    messages = [{"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(texts)]
    row = {"model": "m", "stream": stream}
    if protocol == "messages":
        row |= {"max_tokens": most, "messages": messages}
        row |= {"tools": [{**name, "input_schema": schema} for name in names]}
    elif protocol == "responses":
        row |= {"max_output_tokens": most, "input": messages}
        row |= {"tools": [{"type": "function", **name, "parameters": schema} for name in names]}
    else:
        row |= {"max_tokens": most, "messages": messages}
        row |= {"tools": [{"type": "function", "function": {**name, "parameters": schema}} for name in names]}
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
