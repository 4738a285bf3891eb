# SPDX-License-Identifier: Apache-2.0
"""The problems that a stage keeps from training, as a benchmark: they are asked on the way, with its own prompt."""

from __future__ import annotations

from msgspec.structs import replace

from newskills.base.benchmark import Benchmark
from newskills_aimo.recipe.lines import HELD_OUT_NAME, VALIDATION

BENCHMARK = Benchmark(
    name=HELD_OUT_NAME,
    category="math-natural",
    title="Held-out problems of a stage of ns aimo train",
    prompt="qwen/math-cot",
    split=VALIDATION,
)
WITH_PROGRAMS = replace(BENCHMARK, prompt="qwen/math-tir")
