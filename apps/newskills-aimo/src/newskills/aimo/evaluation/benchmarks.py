# SPDX-License-Identifier: Apache-2.0
"""The benchmarks of the recipe that this one replaces, by its names: those of the catalog.

>>> get_benchmark("math500").name
'math-500'
"""

from __future__ import annotations

from msgspec import Struct

from newskills.base.errors import UnknownNameError
from newskills.base.records import Row
from newskills.base.store import read_rows
from newskills.benchmarks import get_benchmark as catalog_benchmark
from newskills.benchmarks.data import load_rows
from newskills_aimo.recipe.evaluating import BENCHMARKS


class BenchmarkConfig(Struct, frozen=True, kw_only=True):
    """A benchmark: its name in the catalog, and the split that is evaluated."""

    name: str
    split: str = "test"
    description: str = ""


def _benchmark_config(name: str) -> BenchmarkConfig:
    benchmark = catalog_benchmark(BENCHMARKS[name])
    return BenchmarkConfig(name=benchmark.name, split=benchmark.split, description=benchmark.title)


ALL_BENCHMARKS = {name: _benchmark_config(name) for name in BENCHMARKS}
MATH_BENCHMARK, MATH_LEVEL_1, MATH_LEVEL_5, MATH500_BENCHMARK = (
    ALL_BENCHMARKS[name] for name in ("math", "math_level1", "math_level5", "math500")
)
AIME_BENCHMARK, AMC_BENCHMARK, GSM8K_BENCHMARK = (ALL_BENCHMARKS[name] for name in ("aime", "amc", "gsm8k"))


def get_benchmark(name: str) -> BenchmarkConfig:
    """Return the benchmark of that name. Raises UnknownNameError."""
    if name.lower() not in ALL_BENCHMARKS:
        raise UnknownNameError("benchmark", name, ALL_BENCHMARKS)
    return ALL_BENCHMARKS[name.lower()]


def load_benchmark(
    config: BenchmarkConfig, max_samples: int | None = None, data_dir: str | None = None
) -> list[Row]:
    """Return the prepared problems, the right answer as `solution` and as `expected_answer`.

    Raises NotPreparedError with the command that prepares them, DataError.
    """
    rows = list(read_rows(load_rows(catalog_benchmark(config.name), config.split, data_dir)))
    return [{**row, "solution": str(row["expected_answer"])} for row in rows[:max_samples]]
