# SPDX-License-Identifier: Apache-2.0
"""Gradings a second through `ns serve_rewards`: batches over HTTP from several connections, all on this machine."""

from __future__ import annotations

import asyncio
import json
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.answers import Pair, integers, mix
from bench.measure import NS, BenchError, Line, Options, clean_env, scratch, tree_cpu
from newskills.base.http.client import HttpClient

BATCH, CONNECTIONS, WARM_UP = 64, 32, 2_000
RATE = 2_000
SAID = "Reward server at "


def bench(options: Options) -> Iterator[Line]:
    with scratch() as folder:
        sets = (
            ("integers", integers(options.rows(40_000))),
            ("benchmark-like mix", mix(options.rows(20_000), folder)),
        )
        with served(folder) as (url, pid):
            for what, pairs in sets:
                yield _line(what, pairs, url, pid)


def _line(what: str, pairs: Sequence[Pair], url: str, pid: int) -> Line:
    batches = [encoded(pairs[at : at + BATCH]) for at in range(0, len(pairs), BATCH)]
    asyncio.run(post(url, batches[: max(1, WARM_UP // BATCH)]))
    cpu, began = tree_cpu(pid), time.perf_counter()
    rewards = asyncio.run(post(url, batches))
    wall, cpu = time.perf_counter() - began, tree_cpu(pid) - cpu
    if len(rewards) != len(pairs) or rewards.count(None) > len(pairs) / 1000:
        raise BenchError(f"{rewards.count(None)} of {len(pairs)} samples were not graded")
    name = f"{what}, batches of {BATCH} on {CONNECTIONS} connections"
    line = Line(bench="rewards", what=name, ours=len(pairs) / wall, unit="gradings/s")
    line.target, line.met = f"≥ {RATE:,}", line.ours >= RATE
    right = sum(reward == float(pair["right"]) for reward, pair in zip(rewards, pairs, strict=True))
    line.note = f"{cpu / len(pairs) * 1e6:.0f} µs of the server's CPU a grading; as made: {right / len(pairs):.1%}"
    return line


def encoded(pairs: Sequence[Pair]) -> bytes:
    items = [{name: pair[name] for name in ("generation", "expected_answer")} for pair in pairs]
    return json.dumps({"items": items}).encode()


async def post(url: str, batches: Sequence[bytes]) -> list[float | None]:
    client = HttpClient(url, limit=CONNECTIONS)
    answers = await asyncio.gather(*(client.post("/v1/rewards", batch, 120.0) for batch in batches))
    await client.close()
    if bad := [answer for answer in answers if answer.status != 200]:
        raise BenchError(f"the server answered {bad[0].status}: {bad[0].body[:200]!r}")
    return [reward for answer in answers for reward in json.loads(answer.body)["rewards"]]


@contextmanager
def served(folder: Path) -> Iterator[tuple[str, int]]:
    """Address and process of a server for the math grader."""
    argv = [str(NS), "serve_rewards", "--grader=math", "--port=0"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env=clean_env(folder), cwd=folder) as server:
        assert server.stdout is not None
        try:
            address = next(
                (line.partition(SAID)[2].partition(",")[0] for line in server.stdout if SAID in line), ""
            )
            if not address:
                raise BenchError("ns serve_rewards did not start")
            yield address, server.pid
        finally:
            server.terminate()
