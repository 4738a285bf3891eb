# SPDX-License-Identifier: Apache-2.0
"""Pairs of a model-like reply and a gold answer, for grading: integers alone, and a mix as benchmarks have it."""

from __future__ import annotations

import json
import os
import random
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.measure import NS, BenchError, clean_env, run

Pair = dict[str, Any]
BENCHMARKS = ("math-500", "olympiadbench", "minerva_math")
"""Those whose answers are not integers alone."""

PER_BENCHMARK = 250
FORMS = r"""
\frac{3}{4} ; \dfrac{7\pi}{12} ; 42 ; -17 ; 3.25 ; 2\sqrt{3} ; \frac{1+\sqrt{5}}{2} ; (3, -2) ; [0, \infty)
(-\infty, 2) \cup (5, 9] ; x^2 - 3x + 2 ; \{1, 2, 5\} ; 1,000,000 ; 12\% ; 30^\circ ; 6.02 \times 10^{23}
\begin{pmatrix} 1 & 0 \\ 2 & 3 \end{pmatrix} ; \text{(C)} ; 3 + 4i ; 2^{10} ; \frac{a}{b+1} ; 11, 13
n(n+1)/2 ; \ln 2 ; e^{2x} ; 52_8 ; x \le 4 ; \sqrt[3]{7} ; \$18 ; 5\text{ cm} ; y = 2x + 1 ; \pm 3 ; 108
"""
"""Kinds of gold answers, for machines without the benchmarks' data."""

TEXTS = (
    "We set up the equation and solve it step by step, checking each case. Hence the answer is $\\boxed{%s}$.",
    "Let us think. Simplifying both sides gives the claim.\n\nTherefore the final answer is:\n\\[\\boxed{%s}\\]",
    "After some algebra, all other terms cancel.\n\n**Final Answer:** \\boxed{%s}",
)
_SUM = re.compile(r"([\w^\\{}]+) ?\+ ?([\w^\\{}]+)")
_FRACTION = re.compile(r"\\d?frac\{(\d+)\}\{(\d+)\}")


def terminating(gold: str) -> bool:
    """Whether all plain fractions in it are short decimals."""
    bottoms = [int(bottom) for _, bottom in _FRACTION.findall(gold)]
    return all(bottom and 1000 % bottom == 0 for bottom in bottoms)


VARIANTS: tuple[Callable[[str], str], ...] = (
    lambda gold: gold.replace(r"\frac", r"\dfrac"),
    lambda gold: gold.replace(" ", ""),
    lambda gold: gold.replace(",", ", "),
    lambda gold: _FRACTION.sub(r"\1/\2", gold),
    lambda gold: _FRACTION.sub(lambda m: f"{int(m[1]) / int(m[2])!r}", gold) if terminating(gold) else gold,
    lambda gold: _SUM.sub(r"\2+\1", gold) if _SUM.fullmatch(gold) else gold,
    lambda gold: f"{gold}.0" if gold.lstrip("-").isdigit() else gold,
    lambda gold: f"{int(gold):,}" if gold.lstrip("-").isdigit() else gold,
    lambda gold: rf"\left({gold[1:-1]}\right)" if gold[:1] == "(" and gold[-1:] == ")" else gold,
)


def integers(count: int) -> list[Pair]:
    """Two thirds right, as a fair model's replies on grade-school problems."""
    draw = random.Random(1)
    pairs = []
    for _ in range(count):
        gold = draw.randint(-99, 99_999)
        right = draw.random() < 0.66
        said = gold if right else gold + draw.randint(1, 50)
        pairs.append({"generation": draw.choice(TEXTS) % said, "expected_answer": str(gold), "right": right})
    return pairs


def mix(count: int, folder: Path) -> list[Pair]:
    """Golds of real benchmarks (of `FORMS` without a mirror): verbatim, written differently, or wrong."""
    draw = random.Random(2)
    golds = benchmark_golds(folder) or re.split(r" ; |\n", FORMS.strip())
    pairs = []
    for _ in range(count):
        gold, other = draw.choice(golds), draw.choice(golds)
        right = draw.random() < 0.66 or other == gold
        said = (
            (gold if draw.random() < 0.6 else draw.choice(VARIANTS)(gold))
            if right
            else near_miss(gold, other, draw)
        )
        pairs.append({"generation": draw.choice(TEXTS) % said, "expected_answer": gold, "right": right})
    return pairs


def near_miss(gold: str, other: str, draw: random.Random) -> str:
    """`gold` with one digit changed, or another problem's answer."""
    places = [i for i, sign in enumerate(gold) if sign.isdigit()]
    if not places or draw.random() < 0.5:
        return other
    i = draw.choice(places)
    return f"{gold[:i]}{(int(gold[i]) + draw.randint(1, 8)) % 10}{gold[i + 1 :]}"


def benchmark_golds(folder: Path) -> list[str]:
    """Answers of prepared benchmarks, equally many of each; empty without NEWSKILLS_MIRROR."""
    if not os.environ.get("NEWSKILLS_MIRROR"):
        return []
    draw, golds, env = random.Random(3), [], clean_env(folder)
    for name in BENCHMARKS:
        try:
            run([NS, "prepare_data", name, "--data_dir", folder / "data"], env=env)
        except BenchError as error:
            print(f"{name} is left out of the mix: {str(error)[-300:]}", file=sys.stderr)
            continue
        rows = [json.loads(line) for line in (folder / "data" / name / "test.jsonl").open()]
        found = [str(row["expected_answer"]) for row in rows if row.get("expected_answer") not in (None, "")]
        golds += draw.sample(found, min(PER_BENCHMARK, len(found)))
    return golds
