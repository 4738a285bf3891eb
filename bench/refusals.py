# SPDX-License-Identifier: Apache-2.0
"""Whole generations against an endpoint that refuses: one request at random of each twenty, or all above a rate.

Rows per second beside the same command undisturbed, in one run, and beside the limit that the endpoint has.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bench.end_to_end import generate_command
from bench.endpoint import Endpoint
from bench.measure import BenchError, Line, Options, clean_env, run, scratch
from bench.rows import write_problems

ROWS, IN_FLIGHT, LATENCY_MS = 5000, 256, 100
SHARE, KEPT = 0.05, 0.85
RATE, NEAR = 500, 0.1
TURNS = 3


def bench(options: Options) -> Iterator[Line]:
    rows = options.rows(ROWS)
    with scratch() as folder:
        undisturbed = best(folder, rows)
        yield Line(
            bench="refusals",
            what=f"{rows} rows at {LATENCY_MS} ms, {IN_FLIGHT} in flight",
            ours=undisturbed,
            unit="rows/s",
        )
        for status in (429, 503, 500):
            found = best(folder, rows, status=status, share=SHARE)
            yield Line(
                bench="refusals",
                what=f"the same, {SHARE:.0%} of requests refused with {status}",
                ours=found,
                unit="rows/s",
                beside="undisturbed",
                theirs=undisturbed,
                target=f"≥ {KEPT} ×",
                met=found >= KEPT * undisturbed,
            )
        yield limited(folder, options)


def limited(folder: Path, options: Options) -> Line:
    """The start of the program is no part of the limit: a long run less a short one."""
    short, long = options.rows(ROWS), 4 * options.rows(ROWS)
    seconds, asked = {}, {}
    for rows in (short, long):
        seconds[rows], asked[rows] = generation(folder, rows, status=429, rate=RATE)
    rate = (long - short) / (seconds[long] - seconds[short])
    sent = (asked[long] - asked[short]) / (seconds[long] - seconds[short])
    return Line(
        bench="refusals",
        what=f"an endpoint that takes {RATE} requests a second, the rest gets 429",
        ours=rate,
        unit="rows/s",
        beside="its limit",
        theirs=float(RATE),
        target=f"within {NEAR:.0%}",
        met=abs(rate - RATE) <= NEAR * RATE,
        note=f"{sent:,.0f} requests a second were sent",
    )


def best(folder: Path, rows: int, *, status: int = 503, share: float = 0.0) -> float:
    """Rows a second of the fastest of some turns."""
    return rows / min(generation(folder, rows, status=status, share=share)[0] for _ in range(TURNS))


def generation(
    folder: Path, rows: int, *, status: int = 503, share: float = 0.0, rate: float = 0.0
) -> tuple[float, int]:
    """(seconds of the whole command, requests that came). Raises BenchError unless each row is answered."""
    place = folder / f"{len(list(folder.iterdir()))}"
    place.mkdir()
    write_problems(place / "rows.jsonl", rows)
    with Endpoint(LATENCY_MS, status=status, share=share, rate=rate) as endpoint:
        argv = generate_command(endpoint, place / "rows.jsonl", place, IN_FLIGHT)
        # One row in 160,000 fails four times by chance: that is not what is measured.
        done = run([*argv, "++server.max_retries=6"], env=clean_env(place), cwd=place)
        asked = endpoint.served + endpoint.refused
        if endpoint.served < rows:
            raise BenchError(f"only {endpoint.served} of {rows} requests were answered:\n{done.output[-2000:]}")
        if bool(share or rate) != bool(endpoint.refused):
            raise BenchError(f"{endpoint.refused} requests were refused")
    return done.wall, asked
