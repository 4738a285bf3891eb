# SPDX-License-Identifier: Apache-2.0
"""One line of the table, and the measuring of processes: wall time, CPU time and memory of whole process trees."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from msgspec import Struct

ROOT = Path(__file__).parents[1]
NS = Path(sys.executable).with_name("ns")
RESULTS = ROOT / "bench" / "results"
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Line(Struct, kw_only=True):
    """`ours` beside `theirs` (a peer or a limit, in the same unit), and the target with whether it is met.

    `better` says which way is good. Lines without a target inform only.
    """

    bench: str
    what: str
    ours: float
    unit: str
    better: Literal["more", "less"] = "more"
    beside: str = ""
    theirs: float | None = None
    target: str = ""
    met: bool | None = None
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """How many times better ours is than theirs."""
        if not self.theirs or not self.ours:
            return None
        return self.ours / self.theirs if self.better == "more" else self.theirs / self.ours


class Options(Struct, frozen=True, kw_only=True):
    """What to leave out. `peers`: install and run other tools; `quick`: a tenth of the rows; `memory`: run it."""

    peers: bool = True
    quick: bool = False

    def rows(self, full: int) -> int:
        return max(1, full // 10) if self.quick else full


class Done(Struct, kw_only=True):
    """A finished command. Seconds; `cpu` and `peak_rss` (bytes) of the process and all its descendants."""

    wall: float
    cpu: float
    peak_rss: int
    code: int
    output: str


class BenchError(Exception):
    """A measured command failed, so there is no figure."""


def run(argv: Sequence[str | Path], *, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> Done:
    """Runs a command to its end, output captured. Raises BenchError when it fails."""
    words = [str(word) for word in argv]
    with tempfile.TemporaryFile() as output:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        start = time.perf_counter()
        with subprocess.Popen(
            words, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=env, cwd=cwd
        ) as process:
            watch = Watch(process.pid)
            code = process.wait()
            wall = time.perf_counter() - start
            peak = watch.stop()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        output.seek(0)
        text = output.read().decode(errors="replace")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    done = Done(wall=wall, cpu=cpu, peak_rss=peak, code=code, output=text)
    if code:
        raise BenchError(f"{' '.join(words)} ended with {code}:\n{text[-2000:]}")
    return done


def least_cpu(argv: Sequence[str | Path], times: int, *, env: Mapping[str, str] | None = None) -> float:
    """CPU seconds of the cheapest of several runs, after one that warms the disk cache."""
    run(argv, env=env)
    return min(run(argv, env=env).cpu for _ in range(times))


def tree(pid: int) -> list[int]:
    """`pid` and its living descendants."""
    found = [pid]
    for parent in found:
        try:
            for thread in Path(f"/proc/{parent}/task").iterdir():
                found += map(int, (thread / "children").read_text().split())
        except OSError:
            continue
    return found


def tree_cpu(pid: int) -> float:
    """CPU seconds so far of the living tree, and of the dead that it has waited for."""
    total = 0
    for member in tree(pid):
        try:
            fields = Path(f"/proc/{member}/stat").read_text().rpartition(") ")[2].split()
        except OSError:
            continue
        total += sum(map(int, fields[11:15]))
    return total / _TICKS


def tree_rss(pid: int) -> int:
    """Bytes resident in the tree; pages shared by several processes count in each (an upper bound)."""
    total = 0
    for member in tree(pid):
        try:
            total += int(Path(f"/proc/{member}/statm").read_text().split()[1]) * _PAGE
        except OSError:
            continue
    return total


class Watch:
    """Samples a tree's memory until told to stop."""

    def __init__(self, pid: int) -> None:
        self._pid, self._peak, self._end = pid, 0, threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()

    def stop(self) -> int:
        self._end.set()
        self._thread.join()
        return self._peak

    def _sample(self) -> None:
        while not self._end.wait(0.03):
            self._peak = max(self._peak, tree_rss(self._pid))


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        yield Path(folder)


def clean_env(folder: Path, **extra: str) -> dict[str, str]:
    """The environment without proxies, with caches and homes inside `folder`."""
    kept = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
    places = {
        "HOME": str(folder),
        "NEWSKILLS_DATA_DIR": str(folder / "data"),
        "NEWSKILLS_CACHE": str(folder / "cache"),
    }
    return {**kept, **places, "OPENAI_API_KEY": "none", **extra}


def at_most(bench: str, what: str, figure: float, unit: str, most: float, *, note: str = "") -> Line:
    """A figure with a limit, which has the unit without "CPU" and "peak"."""
    line = Line(bench=bench, what=what, ours=figure, unit=unit, better="less")
    line.target = f"≤ {most:g} {unit.removeprefix('CPU ').removesuffix(' peak')}"
    line.met, line.note = figure <= most, note
    return line
