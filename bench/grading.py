# SPDX-License-Identifier: Apache-2.0
"""Pairs of answers graded per second of CPU (all processes counted), beside math-verify on the same pairs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from bench.answers import Pair, integers, mix
from bench.measure import BenchError, Line, Options, scratch, tree_cpu
from bench.peers import Peer, venv

SCRIPT = Path(__file__).parent / "judges.py"
MATH_VERIFY = Peer(
    name="math-verify", shown="math-verify 0.9.0", requirements=("math-verify[antlr4_13_2]==0.9.0",)
)
INTEGERS_PER_SECOND, MIX_RATIO = 20_000, 10


class Speed(Struct):
    """Pairs per CPU second, and the share of verdicts that agree with how the pairs were made."""

    rate: float
    agreed: float


def bench(options: Options) -> Iterator[Line]:
    with scratch() as folder:
        for what, pairs, fewer in (
            ("integers", integers(options.rows(40_000)), 1000),
            ("benchmark-like mix", mix(options.rows(20_000), folder), 600),
        ):
            ours = speed(sys.executable, "newskills", pairs, folder)
            line = Line(bench="grading", what=what, ours=ours.rate, unit="pairs/CPU s")
            line.note = f"as made: {ours.agreed:.1%}"
            if what == "integers":
                line.target, line.met = f"≥ {INTEGERS_PER_SECOND:,}", ours.rate >= INTEGERS_PER_SECOND
            if options.peers:
                theirs = speed(venv(MATH_VERIFY) / "python", "math_verify", pairs[: options.rows(fewer)], folder)
                line.beside, line.theirs = MATH_VERIFY.shown, theirs.rate
                line.note += f", {MATH_VERIFY.shown} {theirs.agreed:.1%}"
                if what != "integers":
                    line.target, line.met = f"≥ {MIX_RATIO} ×", ours.rate >= MIX_RATIO * theirs.rate
            yield line


def speed(python: str | Path, kind: str, pairs: list[Pair], folder: Path) -> Speed:
    """Grades `pairs` (the first 20 as a warm-up) in a process of its own."""
    file = folder / "pairs.jsonl"
    file.write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
    argv = [str(python), str(SCRIPT), kind, str(file)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        if child.stdout.readline() != "ready\n":
            raise BenchError(f"{kind} does not grade")
        before = tree_cpu(child.pid)
        child.stdin.write("go\n")
        child.stdin.flush()
        said = child.stdout.readline()
        cpu = tree_cpu(child.pid) - before
        child.stdin.write("end\n")
        child.stdin.flush()
    if not said:
        raise BenchError(f"{kind} died while grading")
    return Speed(rate=(len(pairs) - 20) / max(cpu, 0.01), agreed=json.loads(said)["agreed"])
