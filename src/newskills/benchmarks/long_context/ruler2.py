# SPDX-License-Identifier: Apache-2.0
"""RULER's second version: twelve tasks made of nine data sets. Graded here; made by the reference system."""

from collections.abc import Iterator

from newskills.base.benchmark import Benchmark
from newskills.base.errors import ConfigError
from newskills.base.records import Row


def rows(split: str) -> Iterator[Row]:
    raise ConfigError(
        "The tasks of RULER 2 are not generated here yet. Those that the reference system has made are evaluated as "
        "they are: put its folder ruler2/<setup> into the data directory.",
        hint="Then: ns eval --benchmarks=ruler2.<setup>. RULER itself is generated: ns prepare_data ruler --setup=…",
    )


BENCHMARK = Benchmark(
    name="ruler2",
    category="long-context",
    title="RULER 2: twelve tasks, made by the reference system",
    generate_rows=rows,
    prompt="generic/default",
    grader="ruler2",
    metric="ruler2",
    licence="mixed (nine data sets)",
    homepage="https://github.com/NVIDIA-NeMo/Skills",
    unverified=True,
    traps=(
        "There is no generator here: bring the folder ruler2/<setup> that the reference system has made.",
        "accuracy is the share of right texts in the reply, soft_accuracy counts words (1 − WER).",
    ),
)
