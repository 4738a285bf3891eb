# SPDX-License-Identifier: Apache-2.0
"""What is generated from the benchmark files is up to date, and the files keep what they promise."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from newskills.base.benchmark import Benchmark
from newskills.benchmarks import get_benchmark, list_benchmarks
from newskills.benchmarks.generate_catalog import TARGET, built_in, catalog_text
from newskills.benchmarks.pages import pages
from newskills.graders import make_grader
from newskills.metrics import make_metric
from newskills.prompts import prompt_names

DOCS = Path(__file__).parents[2] / "docs" / "benchmarks"
ALL = [benchmark for _, benchmark in built_in()]


def test_the_catalog_is_up_to_date() -> None:
    hint = "run: python -m newskills.benchmarks.generate_catalog"
    assert TARGET.read_text(encoding="utf-8") == catalog_text(), hint


def test_the_catalog_is_data() -> None:
    body = ast.parse(TARGET.read_text(encoding="utf-8")).body
    assert [type(node).__name__ for node in body] == ["Expr", "AnnAssign"]


def test_the_pages_are_up_to_date() -> None:
    hint = "run: python -m newskills.benchmarks.pages docs/benchmarks"
    assert {path.name: path.read_text(encoding="utf-8") for path in DOCS.glob("*.md")} == pages(), hint


def test_listing_imports_no_benchmark() -> None:
    code = (
        "import sys; from newskills.benchmarks import list_benchmarks; assert len(list_benchmarks()) > 12;"
        "loaded = [m for m in sys.modules if m.startswith('newskills.benchmarks.')];"
        "assert loaded == ['newskills.benchmarks.catalog'], loaded;"
        "assert not {'yaml', 'rich', 'jinja2', 'reasoning_gym', 'urllib.request'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize("benchmark", ALL, ids=lambda benchmark: benchmark.name)
def test_every_benchmark_can_be_used(benchmark: Benchmark) -> None:
    assert benchmark.title
    assert benchmark.licence
    assert benchmark.homepage.startswith("https://")
    assert bool(benchmark.sources) != bool(benchmark.generate_rows)
    assert benchmark.items[benchmark.split] > 0
    assert benchmark.prompt in prompt_names()
    assert make_grader(benchmark.grader, benchmark.grader_config)
    assert make_metric(benchmark.metric, **benchmark.metric_config)
    assert all(source.url.startswith("https://") or source.hf for source in benchmark.sources)
    assert all(source.sha256 or not source.revision for source in benchmark.sources)
    assert get_benchmark(benchmark.name) == benchmark


def test_every_entry_is_a_benchmark() -> None:
    assert [entry.name for entry in list_benchmarks()] == [benchmark.name for benchmark in ALL]
