# SPDX-License-Identifier: Apache-2.0
"""Multiple-choice rows graded per second of CPU by the worker pool, all processes counted."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from string import ascii_uppercase
from typing import Any

from bench.instructions import CORES, ROWS, SECONDS, WORDS
from bench.measure import Line, Options, tree_cpu
from newskills.base.pool.workers import WorkerPool
from newskills.base.records import Score

ENDS = (
    "Answer: {letter}",
    "**Answer: {letter}**",
    "The answer is ({letter}).",
    "So it is $\\boxed{{{letter}}}$.",
    "\\boxed{{\\text{{{letter}) {option}}}}}",
    "The final answer is {letter}. I hope it is correct.",
    "Answer: {option}",
    "答案：{letter}",
    "I cannot say.",
)


def bench(options: Options) -> Iterator[Line]:
    count = options.rows(ROWS)
    rows = [row(random.Random(number), number) for number in range(count)]
    wanted_outcomes = [made.pop("outcome") for made in rows]
    config = {"name": "multichoice", "config": {}}
    before = tree_cpu(os.getpid())
    with WorkerPool("newskills.graders.worker:make", config, result_type=Score) as pool:
        outcomes = [getattr(score, "outcome", "failed") for score in pool.map(rows)]
        cpu = tree_cpu(os.getpid()) - before
    rate, wanted = count / max(cpu, 0.01), ROWS / SECONDS / CORES
    line = Line(bench="grading", what="multiple-choice rows, pool included", ours=rate, unit="rows/CPU s")
    line.target, line.met = f"≥ {wanted:,.0f}", rate >= wanted and outcomes == wanted_outcomes
    line.note = f"{ROWS:,} rows in {ROWS / rate / CORES:.1f} s on {CORES} cores"
    yield line


def row(draw: random.Random, number: int) -> dict[str, Any]:
    """A question with 4 or 10 options, a reply of 100 to 400 words that weighs some, and the outcome to come."""
    words = WORDS.split()
    count = draw.choice((4, 4, 10))
    options = [" ".join(draw.sample(words, 4)) + f" {place}" for place in range(count)]
    lettered = dict(zip(ascii_uppercase, options, strict=False))
    thought = [
        f"Option {draw.choice(list(lettered))} says that " + " ".join(draw.choices(words, k=draw.randint(8, 30)))
        for _ in range(draw.randint(6, 14))
    ]
    gold, chosen = draw.choice(list(lettered)), draw.choice(list(lettered))
    end = draw.choice(ENDS)
    named = "{" in end
    return {
        "id": str(number),
        **lettered,
        "options": "\n".join(f"{letter}) {option}" for letter, option in lettered.items()),
        "expected_answer": gold,
        "generation": ". ".join(thought) + ".\n\n" + end.format(letter=chosen, option=lettered[chosen]),
        "outcome": "no_answer" if not named else "correct" if gold == chosen else "wrong",
    }
