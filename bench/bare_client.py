# SPDX-License-Identifier: Apache-2.0
"""Requests per second of the bare HTTP client, beside the most that asyncio can do and beside aiohttp."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from bench.endpoint import Endpoint
from bench.measure import BenchError, Line, Options, run
from bench.peers import AIOHTTP, venv

SCRIPT = Path(__file__).parent / "clients.py"
CONNECTIONS = 64


def bench(options: Options) -> Iterator[Line]:
    requests, python = options.rows(50_000), sys.executable
    with Endpoint() as endpoint:
        capacity = rate(python, "pipelined", endpoint, requests * 4, 16)
        # In turns and the best of three each: other work on the machine then hits all alike.
        turns = [
            [rate(python, kind, endpoint, requests // 3, CONNECTIONS) for kind in ("raw", "newskills")]
            for _ in range(3)
        ]
        limit, ours = (max(column) for column in zip(*turns, strict=True))
        theirs = aiohttp_rate(endpoint, requests // 10) if options.peers else None
    own = Line(bench="client", what="fake endpoint itself, pipelined", ours=capacity, unit="req/s")
    own.target, own.met = "≥ 50,000", capacity >= 50_000
    yield own
    yield beside(ours, "bare asyncio", limit)
    if theirs is not None:
        yield beside(ours, AIOHTTP.shown, theirs)


def beside(ours: float, name: str, theirs: float) -> Line:
    return Line(bench="client", what="HTTP client", ours=ours, unit="req/s", beside=name, theirs=theirs)


def aiohttp_rate(endpoint: Endpoint, requests: int) -> float:
    python = venv(AIOHTTP) / "python"
    return max(rate(python, "aiohttp", endpoint, requests, CONNECTIONS) for _ in range(3))


def rate(python: str | Path, kind: str, endpoint: Endpoint, requests: int, connections: int) -> float:
    """Requests per second as the client says, checked against the endpoint's own count."""
    before = endpoint.served
    value = float(run([python, SCRIPT, kind, str(endpoint.port), str(requests), str(connections)]).output)
    missing = requests - (endpoint.served - before)
    if missing > requests * 0.02:
        raise BenchError(f"the {kind} client left {missing} of {requests} requests out")
    return value
