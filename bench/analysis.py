# SPDX-License-Identifier: Apache-2.0
"""1,000,000 samples as a table of Arrow, and a query over them: seconds and memory, beside reading every line once."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from bench.measure import Line, Options, at_most, clean_env, run, scratch
from bench.rows import write_records

ROWS, SEEDS = 1_000_000, 10
SECONDS, MEGABYTES = 10.0, 1_000.0
TABLE = """
import json, sys, time
from newskills import analysis
start = time.perf_counter()
table = analysis.samples(sys.argv[1])
seconds = time.perf_counter() - start
print(json.dumps([table.num_rows, seconds]))
"""
PLAIN = """
import glob, json, sys, time
import msgspec
start = time.perf_counter()
decode, rows = msgspec.json.Decoder().decode, 0
for path in glob.glob(sys.argv[1] + "/**/output*.jsonl", recursive=True):
    with open(path, "rb") as file:
        for line in file:
            rows += len(decode(line)) > 0
print(json.dumps([rows, time.perf_counter() - start]))
"""
"""What nobody can do without: each line decoded, and nothing kept."""
SQL = "SELECT run, benchmark, outcome, count(*) AS n, avg(tokens) FROM samples GROUP BY ALL"


def bench(options: Options) -> Iterator[Line]:
    rows = options.rows(ROWS)
    with scratch() as folder:
        results = folder / "results"
        size = write(results, rows)
        what = f"{rows:,} samples, {size:.1f} GB, as a table"
        plain = told(PLAIN, results, folder, rows)
        seconds, peak = told(TABLE, results, folder, rows)
        line = at_most("analysis", f"{what}: all short columns", seconds, "s", SECONDS * rows / ROWS)
        line.beside, line.theirs = "each line decoded by msgspec, nothing kept", plain[0]
        yield line
        yield at_most("analysis", f"{what}: memory", peak, "MB", MEGABYTES)
        start = time.perf_counter()
        done = run([sys.executable, "-m", "newskills", "query", SQL, results, "--json"], env=clean_env(folder))
        assert sum(json.loads(row)["n"] for row in done.output.splitlines()) == rows
        whole = f"{rows:,} samples: ns query, counts by outcome, from start to end"
        yield Line(bench="analysis", what=whole, ours=time.perf_counter() - start, unit="s", better="less")


def told(code: str, results: Path, folder: Path, rows: int) -> tuple[float, float]:
    """Seconds that a process of its own needs for the work, and its MB."""
    done = run([sys.executable, "-c", code, results], env=clean_env(folder))
    counted, seconds = json.loads(done.output)
    assert counted == rows
    return seconds, done.peak_rss / 1e6


def write(results: Path, rows: int) -> float:
    """Records of one benchmark, in ten seeds; GB."""
    folder = results / "eval-results" / "gsm8k"
    folder.mkdir(parents=True)
    for seed in range(SEEDS):
        write_records(folder / f"output-rs{seed}.jsonl", rows // SEEDS, seed)
    return sum(path.stat().st_size for path in folder.iterdir()) / 1e9
