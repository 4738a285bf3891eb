# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import re

import pytest

from newskills.base.benchmark import Benchmark
from newskills.benchmarks.generate_catalog import built_in
from newskills.benchmarks.headlines import HEADLINES, headline_definition
from newskills.metrics import METRICS, make_metric

_FORM = re.compile(r"`(\w+)`: .+")


def test_every_metric_has_a_headline() -> None:
    assert set(METRICS.names()) == set(HEADLINES), "in a line of benchmarks/headlines.jsonl"


@pytest.mark.parametrize("metric", sorted(HEADLINES))
def test_the_table_shows_the_headline(metric: str) -> None:
    columns = make_metric(metric).columns
    assert not columns or HEADLINES[metric][0] in columns


def test_every_benchmark_says_what_its_headline_is() -> None:
    for _, benchmark in built_in():
        assert _FORM.fullmatch(headline_definition(benchmark)), benchmark.name


def test_a_judge_decides_where_there_is_one() -> None:
    by_name: dict[str, Benchmark] = {benchmark.name: benchmark for _, benchmark in built_in()}
    assert headline_definition(by_name["gsm8k"]).startswith("`symbolic_correct`")
    assert headline_definition(by_name["omni-math"]).startswith("`judge_correct`")
    assert headline_definition(by_name["mbpp"]).startswith("`passing_plus_tests`")
    assert headline_definition(by_name["mbpp-original"]).startswith("`passing_base_tests`")
