# SPDX-License-Identifier: Apache-2.0
"""`ns summarize_results` over 16 seeds of 5,000 graded rows, beside merely decoding the same lines."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from bench.measure import NS, BenchError, Line, Options, clean_env, run, scratch
from bench.rows import write_records

SEEDS, ROWS = 16, 5000
SECONDS, MEGABYTES = 1.0, 300.0
DECODE = """import json, sys
for name in sys.argv[1:]:
    with open(name, "rb") as lines:
        for line in lines:
            json.loads(line)
"""


def bench(options: Options) -> Iterator[Line]:
    rows = options.rows(ROWS)
    with scratch() as folder:
        place = folder / "out" / "eval-results" / "gsm8k"
        place.mkdir(parents=True)
        for seed in range(SEEDS):
            write_records(place / f"output-rs{seed}.jsonl", rows, seed)
        files = sorted(place.glob("output-rs*.jsonl"))
        decoding = min(run([sys.executable, "-c", DECODE, *files]).wall for _ in range(2))
        done = min(
            (summarized(folder, folder / "out", f"pass@{SEEDS}") for _ in range(3)), key=lambda turn: turn[0]
        )
    what = f"summarize {SEEDS} × {rows} rows"
    line = Line(bench="summarize", what=what, ours=done[0], unit="s", better="less", beside="json.loads only")
    line.theirs, line.target, line.met = decoding, f"≤ {SECONDS:g} s", done[0] <= SECONDS
    yield line
    memory = Line(bench="summarize", what=what, ours=done[1], unit="MB peak", better="less")
    memory.target, memory.met = f"≤ {MEGABYTES:g} MB", done[1] <= MEGABYTES
    yield memory


def summarized(folder: Path, results: Path, mode: str) -> tuple[float, float]:
    """Seconds and peak megabytes of one run; the figures of `mode` must be there."""
    for path in results.rglob("metrics.json"):
        path.unlink()
    done = run([NS, "summarize_results", results], env=clean_env(folder), cwd=folder)
    if not [path for path in results.rglob("metrics.json") if mode in read_modes(path)]:
        raise BenchError(f"no metrics of {mode} were written:\n{done.output[-2000:]}")
    return done.wall, done.peak_rss / 1e6


def read_modes(path: Path) -> set[str]:
    return {mode for modes in json.loads(path.read_text()).values() for mode in modes}
