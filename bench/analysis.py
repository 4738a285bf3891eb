# SPDX-License-Identifier: Apache-2.0
"""1,000,000 samples as a table of Arrow, and a query over them: CPU seconds (one thread), memory.

Beside them: each line decoded once.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from bench.measure import Done, Line, Options, at_most, clean_env, run, scratch
from bench.rows import write_records

ROWS, SEEDS = 1_000_000, 10
SECONDS, MEGABYTES = 10.0, 1_000.0
TABLE = """
import sys
from newskills import analysis
print(analysis.samples(sys.argv[1]).num_rows)
"""
PLAIN = """
import glob, sys
import msgspec
decode, rows = msgspec.json.Decoder().decode, 0
for path in glob.glob(sys.argv[1] + "/**/output*.jsonl", recursive=True):
    with open(path, "rb") as file:
        for line in file:
            rows += len(decode(line)) > 0
print(rows)
"""
"""What nobody can do without: each line decoded, and nothing kept."""
SQL = "SELECT run, benchmark, outcome, count(*) AS n, avg(tokens) FROM samples GROUP BY ALL"


def bench(options: Options) -> Iterator[Line]:
    rows = options.rows(ROWS)
    with scratch() as folder:
        results = folder / "results"
        size = write(results, rows)
        what = f"{rows:,} samples, {size:.1f} GB, as a table"
        plain = counted(PLAIN, results, folder, rows)
        table = counted(TABLE, results, folder, rows)
        line = at_most("analysis", f"{what}: all short columns", table.cpu, "CPU s", SECONDS * rows / ROWS)
        line.beside, line.theirs = "each line decoded by msgspec, nothing kept", plain.cpu
        line.note = f"wall {table.wall:.1f} s, of which the load of the machine is a part"
        yield line
        yield at_most("analysis", f"{what}: memory", table.peak_rss / 1e6, "MB", MEGABYTES)
        argv: list[str | Path] = [sys.executable, "-m", "newskills", "query", SQL, results, "--json"]
        done = run(argv, env=clean_env(folder))
        assert sum(json.loads(row)["n"] for row in done.output.splitlines()) == rows
        whole = f"{rows:,} samples: ns query, counts by outcome, from start to end"
        yield Line(bench="analysis", what=whole, ours=done.cpu, unit="CPU s", better="less")


def counted(code: str, results: Path, folder: Path, rows: int) -> Done:
    """A process of its own that reads all samples and prints how many there are."""
    done = run([sys.executable, "-c", code, results], env=clean_env(folder))
    assert int(done.output) == rows
    return done


def write(results: Path, rows: int) -> float:
    """Records of one benchmark, in ten seeds; GB."""
    folder = results / "eval-results" / "gsm8k"
    folder.mkdir(parents=True)
    for seed in range(SEEDS):
        write_records(folder / f"output-rs{seed}.jsonl", rows // SEEDS, seed)
    return sum(path.stat().st_size for path in folder.iterdir()) / 1e9
