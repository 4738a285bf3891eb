# SPDX-License-Identifier: Apache-2.0
"""A million rows through `ns generate`, killed half-way and taken up again: how soon the first request is sent.

Beside it, what the run first says about the time left, against the time that it then takes. Takes minutes.
"""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from bench.end_to_end import generate_command
from bench.endpoint import Endpoint
from bench.measure import BenchError, Line, Options, clean_env, scratch, tree_cpu
from bench.rows import write_problems

ROWS, SECONDS, FACTOR = 1_000_000, 10.0, 2.0
LEFT = re.compile(r"([\d,.]+) (s|min|h)(?: (\d+) min)? left")
UNITS = {"s": 1, "min": 60, "h": 3600}


def bench(options: Options) -> Iterator[Line]:
    rows = options.rows(ROWS)
    with scratch() as folder:
        write_problems(folder / "rows.jsonl", rows)
        with Endpoint() as endpoint:
            kill_half_way(endpoint, folder, rows)
        with Endpoint() as endpoint:
            yield from resume(endpoint, folder, rows, options)


def kill_half_way(endpoint: Endpoint, folder: Path, rows: int) -> None:
    with start(endpoint, folder) as process:
        while endpoint.served < rows // 2:
            if process.poll() is not None:
                raise BenchError(f"it ended by itself:\n{said(folder)}")
            time.sleep(0.1)
        process.kill()


def resume(endpoint: Endpoint, folder: Path, rows: int, options: Options) -> Iterator[Line]:
    begun = time.monotonic()
    with start(endpoint, folder) as process:
        while not endpoint.served and process.poll() is None:
            time.sleep(0.02)
        first, cpu = time.monotonic() - begun, tree_cpu(process.pid)
        while (told := LEFT.search(said(folder))) is None and process.poll() is None:
            time.sleep(0.05)
        told_at = time.monotonic()
        process.wait()
    if process.returncode or (told is None and not options.quick):
        raise BenchError(f"the resumed run ended with {process.returncode}:\n{said(folder)}")
    half = f"{rows // 2:,} of {rows:,} rows are done"
    line = Line(bench="resume", what=f"first request when {half}", ours=first, unit="s", better="less")
    line.target, line.met, line.note = f"≤ {SECONDS:g} s", first <= SECONDS, f"{cpu:.1f} s of CPU time"
    yield line
    if told is None:
        return
    promised, true = seconds(told), time.monotonic() - told_at
    line = Line(bench="resume", what="the first time left that is told", ours=promised, unit="s", better="less")
    line.beside, line.theirs, line.target = "it took", true, f"within {FACTOR:g} ×"
    line.met = true / FACTOR <= promised <= true * FACTOR
    yield line


def start(endpoint: Endpoint, folder: Path) -> subprocess.Popen[bytes]:
    """The same command each time; the address of the model is no setting that a resume must share."""
    argv = [str(word) for word in generate_command(endpoint, folder / "rows.jsonl", folder)]
    with (folder / "said").open("wb") as output:
        return subprocess.Popen(
            argv,
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env=clean_env(folder),
            cwd=folder,
        )


def said(folder: Path) -> str:
    return (folder / "said").read_text(errors="replace")


def seconds(told: re.Match[str]) -> float:
    """`12 min left`, `3 h 20 min left` → seconds."""
    return float(told[1].replace(",", "")) * UNITS[told[2]] + 60 * int(told[3] or 0)
