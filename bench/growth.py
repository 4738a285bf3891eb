# SPDX-License-Identifier: Apache-2.0
"""How cost grows from a hundred thousand rows to ten million: memory, a resume from the middle, the summary.

Each size is generated as one file, killed half-way, and taken up again. The largest takes an hour on two cores, and
30 GB of disk; `--quick` stops at a tenth.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from bench.endpoint import Endpoint
from bench.measure import BenchError, Line, Options, Watch, at_most, scratch, tree_cpu
from bench.resume import said, start
from bench.rows import write_problems, write_records
from bench.summarize import summarized

SIZES = (100_000, 1_000_000, 10_000_000)
MEGABYTES, FIRST, SUMMARY = 300.0, 10.0, 60.0


def bench(options: Options) -> Iterator[Line]:
    for size in SIZES:
        rows = options.rows(size)
        with scratch() as folder:
            write_problems(folder / "rows.jsonl", rows)
            yield from generated(folder, rows)
            (folder / "rows.jsonl").unlink()
            place = folder / "graded" / "eval-results" / "gsm8k"
            place.mkdir(parents=True)
            write_records(place / "output.jsonl", rows, 0)
            wall, peak = summarized(folder, place.parent.parent, "pass@1")
        yield at_most("growth", f"summarize {rows:,} rows", wall, "s", SUMMARY, note=f"{peak:.0f} MB")


def generated(folder: Path, rows: int) -> Iterator[Line]:
    begun = time.monotonic()
    with Endpoint() as endpoint, start(endpoint, folder) as process:
        watch = Watch(process.pid)
        while endpoint.served < rows // 2 and process.poll() is None:
            time.sleep(0.05)
        half, cpu = time.monotonic() - begun, tree_cpu(process.pid)
        peak = watch.stop()
        process.kill()
    begun = time.monotonic()
    with Endpoint() as endpoint, start(endpoint, folder) as process:
        watch = Watch(process.pid)
        while not endpoint.served and process.poll() is None:
            time.sleep(0.01)
        first, first_cpu = time.monotonic() - begun, tree_cpu(process.pid)
        process.wait()
        peak = max(peak, watch.stop())
        asked = endpoint.served
    if process.returncode or asked > rows // 2 + 1024:
        raise BenchError(f"{asked:,} requests for the second half; it said:\n{said(folder)[-2000:]}")
    note = f"{rows / 2 / half:,.0f} rows/s, {rows / 2 / cpu:,.0f} rows per CPU-s"
    yield at_most("growth", f"generate {rows:,} rows", peak / 1e6, "MB peak", MEGABYTES, note=note)
    note = f"{first_cpu:.1f} s of CPU time"
    yield at_most("growth", f"first request when half of {rows:,} rows are done", first, "s", FIRST, note=note)
