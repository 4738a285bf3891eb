# SPDX-License-Identifier: Apache-2.0
"""The library newskills-math beside math-verify: import, first verdict, pairs per second of CPU, hostile answers.

Both are called alike, `verify(parse(gold), parse(reply))`, in a process of their own.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from bench.answers import integers, mix
from bench.grading import MATH_VERIFY, speed
from bench.measure import Line, Options, least_cpu, run, scratch
from bench.peers import venv

IMPORT_MS = 50
MIX_RATIO = 10
NOTHING = "pass"
IMPORT = "from {0} import parse, verify"
FIRST = (
    IMPORT
    + """
assert verify(parse("$\\\\frac12$"), parse("So it is $\\\\boxed{{0.5}}$."))"""
)
ROWS = r"\\".join("&".join(f"a_{{{i}{j}}}" for j in range(6)) for i in range(6))
HOSTILE = (
    rf"\det\begin{{pmatrix}}{ROWS}\end{{pmatrix}}",
    r"\int \frac{1}{x^{15}+1} dx",
    r"\sum_{k=1}^{10^{9}} \lfloor \sqrt{k} \rfloor",
    r"\int_0^1 x dx + (\sin x + \cos y)^{200}",
    "9^{9^{9^{9}}}",
    "(" * 3_000 + "1" + ")" * 3_000,
)
COSTS = """
import json, sys, time
from {0} import parse, verify
verify(parse("$\\\\int_0^1 x^2 dx$"), parse("$\\\\frac13$"))
costs = []
for answer in json.load(sys.stdin):
    start = time.process_time()
    assert not verify(parse("$7$"), parse("$\\\\boxed{{" + answer + "}}$"))
    costs.append(time.process_time() - start)
print(max(costs))
"""


def bench(options: Options) -> Iterator[Line]:
    peer = venv(MATH_VERIFY) / "python" if options.peers else None
    ours = Path(sys.executable)
    for what, program in (("import of parse and verify", IMPORT), ("import and first verdict", FIRST)):
        line = Line(bench="library", what=what, ours=milliseconds(ours, program, "newskills_math"), unit="CPU ms")
        line.better = "less"
        if program is IMPORT:
            line.target, line.met = f"≤ {IMPORT_MS}", line.ours <= IMPORT_MS
        if peer is not None:
            line.beside, line.theirs = MATH_VERIFY.shown, milliseconds(peer, program, "math_verify")
        yield line
    yield from rates(options, peer)
    line = Line(
        bench="library", what="dearest of six hostile answers", ours=cost(ours, "newskills_math"), unit="CPU s"
    )
    line.better = "less"
    if peer is not None:
        line.beside, line.theirs = MATH_VERIFY.shown, cost(peer, "math_verify")
    yield line


def rates(options: Options, peer: Path | None) -> Iterator[Line]:
    with scratch() as folder:
        for what, pairs, fewer, kind in (
            ("integers", integers(options.rows(40_000)), 1000, "newskills_math"),
            ("benchmark-like mix", mix(options.rows(20_000), folder), 600, "newskills_math"),
            ("mix, eight threads", mix(options.rows(20_000), folder), 0, "newskills_math in threads"),
        ):
            ours = speed(sys.executable, kind, pairs, folder)
            line = Line(bench="library", what=what, ours=ours.rate, unit="pairs/CPU s")
            line.note = f"as made: {ours.agreed:.1%}"
            if peer is not None and fewer:
                theirs = speed(peer, "math_verify", pairs[: options.rows(fewer)], folder)
                line.beside, line.theirs = MATH_VERIFY.shown, theirs.rate
                line.note += f", {MATH_VERIFY.shown} {theirs.agreed:.1%}"
                line.target, line.met = f"≥ {MIX_RATIO} ×", ours.rate >= MIX_RATIO * theirs.rate
            yield line


def milliseconds(python: Path, program: str, module: str) -> float:
    """CPU milliseconds of a program, beyond those of Python itself."""
    whole, bare = (least_cpu([python, "-c", text], 5) for text in (program.format(module), NOTHING))
    return 1000 * (whole - bare)


def cost(python: Path, module: str) -> float:
    """CPU seconds of the answer that took the most."""
    with scratch() as folder:
        program = folder / "costs.py"
        program.write_text(COSTS.format(module).replace("sys.stdin", "open(sys.argv[1])"))
        (folder / "hostile.json").write_text(json.dumps(HOSTILE))
        return float(run([python, program, folder / "hostile.json"]).output.splitlines()[-1])
