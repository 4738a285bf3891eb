# SPDX-License-Identifier: Apache-2.0
"""`ns prepare_data all` from an offline mirror (`NEWSKILLS_MIRROR`): CPU time, and memory."""

from __future__ import annotations

import os
from collections.abc import Iterator

from bench.measure import NS, BenchError, Line, Options, clean_env, run, scratch

CPU_SECONDS, MEGABYTES = 60.0, 500.0


def bench(options: Options) -> Iterator[Line]:
    if not os.environ.get("NEWSKILLS_MIRROR"):
        raise BenchError("NEWSKILLS_MIRROR names no mirror, so there is nothing to prepare")
    with scratch() as folder:
        done = run([NS, "prepare_data", "all", "--offline"], env=clean_env(folder), cwd=folder)
        counts = [line.split(" of ")[0] for line in done.output.splitlines() if " prepared in " in line]
    what = f"prepare_data of {counts[-1]} benchmarks from a mirror"
    time = Line(bench="prepare", what=what, ours=done.cpu, unit="CPU s", better="less")
    time.target, time.met = f"≤ {CPU_SECONDS:g} s", done.cpu <= CPU_SECONDS
    yield time
    memory = Line(bench="prepare", what=what, ours=done.peak_rss / 1e6, unit="MB peak", better="less")
    memory.target, memory.met = f"≤ {MEGABYTES:g} MB", done.peak_rss / 1e6 <= MEGABYTES
    yield memory
