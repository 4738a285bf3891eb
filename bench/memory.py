# SPDX-License-Identifier: Apache-2.0
"""A million rows through `ns generate`: memory must not grow with the input. Takes minutes."""

from __future__ import annotations

from collections.abc import Iterator

from bench.end_to_end import generate_command
from bench.endpoint import Endpoint
from bench.measure import BenchError, Line, Options, clean_env, run, scratch
from bench.rows import write_problems

ROWS, MEGABYTES = 1_000_000, 500.0


def bench(options: Options) -> Iterator[Line]:
    rows = options.rows(ROWS)
    with scratch() as folder, Endpoint() as endpoint:
        write_problems(folder / "rows.jsonl", rows)
        argv = generate_command(endpoint, folder / "rows.jsonl", folder)
        done = run(argv, env=clean_env(folder), cwd=folder)
        if endpoint.served < rows:
            raise BenchError(f"only {endpoint.served} of {rows} requests came")
    peak = done.peak_rss / 1e6
    line = Line(bench="memory", what=f"generate {rows:,} rows", ours=peak, unit="MB peak", better="less")
    line.target, line.met, line.note = f"≤ {MEGABYTES:g} MB", peak <= MEGABYTES, f"{rows / done.wall:,.0f} rows/s"
    yield line
