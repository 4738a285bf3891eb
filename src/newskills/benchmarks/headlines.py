# SPDX-License-Identifier: Apache-2.0
"""Which figure of a benchmark is its headline, and what it says, in one line."""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import Struct

from newskills.base.benchmark import Benchmark

FILE = Path(__file__).with_name("headlines.jsonl")


class Headline(Struct, frozen=True, forbid_unknown_fields=True):
    """A line of the file: the headline of some metrics."""

    metrics: tuple[str, ...]
    figure: str
    meaning: str


HEADLINES = {
    metric: (line.figure, line.meaning)
    for line in msgspec.json.Decoder(Headline).decode_lines(FILE.read_bytes())
    for metric in line.metrics
}
"""Metric → headline and what it says."""
_WITH_JUDGE = {"symbolic_correct": ("judge_correct", "share of answers that the judge accepts")}


def headline_definition(benchmark: Benchmark) -> str:
    """Return the headline's name and what it says: the benchmark's own words, else those of its metric; empty for
    a metric of a plug-in."""
    if benchmark.headline:
        return benchmark.headline
    if benchmark.metric not in HEADLINES:
        return ""
    figure, meaning = HEADLINES[benchmark.metric]
    if benchmark.judge is not None:
        figure, meaning = _WITH_JUDGE.get(figure, (figure, meaning))
    return f"`{figure}`: {meaning}"
