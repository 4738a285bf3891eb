# SPDX-License-Identifier: Apache-2.0
"""Large files counted by several processes: the same numbers as by one, or one does it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from newskills.base.errors import DataError
from newskills.base.records import Row
from newskills.base.store import write_rows
from newskills.metrics import make_metric
from newskills.metrics.generic import LiveBenchMetric
from newskills.metrics.math import MathMetric
from newskills.run.reporting import counted
from newskills.run.reporting.counted import PartCounts, SubsetCounts, make
from newskills.run.reporting.summarize import SummaryOptions, summarize_files

ROWS = 2000


def record(number: int) -> Row:
    """Subsets, causes, judges, partial credit, and fields that some records lack."""
    row: Row = {
        "id": f"r{number}",
        "predicted_answer": str(number) if number % 5 else None,
        "symbolic_correct": (True, False, 1, 0.25, None)[number % 5],
        "finish_reason": ("stop", "length")[number % 2],
        "num_generated_tokens": number * 3,
        "generation_start_time": 1e9 + number / 7,
        "generation_end_time": 1e9 + number / 3,
        "grader": f"math@{number // 1500}",
    }
    if number % 3 == 0:
        row |= {"subset_for_metrics": ["a", "b"] if number % 2 else "b", "num_reasoning_tokens": number % 11}
    if number % 4 == 0:
        row |= {"outcome": "unscored", "outcome_cause": "provider"}
    if number > 1700:
        row["judgement"] = ("Judgement: Yes", "Judgement: No", "well …")[number % 3]
    return row


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "output.jsonl"
    write_rows(path, map(record, range(ROWS)))
    return path


def summarized(file: Path, metric: str = "math") -> bytes:
    options = SummaryOptions(metric_type=metric)
    return msgspec.json.encode(summarize_files("b", [file], None, options), order="deterministic")


def smaller(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """All files are large; returns those that were counted in parts."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr(counted, "LARGE_FILE_BYTES", 1)
    monkeypatch.setattr(counted, "PART_BYTES", 100_000)
    divided: list[Path] = []
    count: Callable[..., list[PartCounts] | None] = counted._counted_parts

    def counting(path: Path, metric: str, options: Row) -> list[PartCounts] | None:
        parts = count(path, metric, options)
        divided.extend([path] * len(parts or ()))
        return parts

    monkeypatch.setattr(counted, "_counted_parts", counting)
    return divided


@pytest.mark.parametrize("metric", ["math", "generic"])
def test_several_processes_count_what_one_does(file: Path, metric: str, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = summarized(file, metric)
    divided = smaller(monkeypatch)
    assert summarized(file, metric) == alone
    assert len(divided) >= 4


def test_a_broken_line_is_named_by_its_number(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join([*lines[:1500], b'{"id": 1, "symbolic_correct": "yes"}\n', *lines[1500:]]))
    divided = smaller(monkeypatch)
    with pytest.raises(DataError, match=r"output\.jsonl, line 1501: .*symbolic_correct"):
        summarized(file)
    assert not divided


def test_what_cannot_be_counted_apart_is_counted_by_one(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rewards choose among samples; other metrics count in ways of their own, and so may those derived from ours."""
    write_rows(file, ({**record(number), "reward_model_score": 0.5} for number in range(20)))
    alone = summarized(file)
    divided = smaller(monkeypatch)
    assert summarized(file) == alone
    assert not divided

    class Own(MathMetric):
        """Of a plug-in."""

    assert MathMetric().is_divisible
    assert not Own().is_divisible
    assert not LiveBenchMetric().is_divisible


def test_parts_of_any_size_add_up(file: Path) -> None:
    """Cut at any line, without processes."""
    count = make({"file": str(file), "metric": "math", "options": {}})
    ends = [0]
    for line in file.read_bytes().splitlines(keepends=True):
        ends.append(ends[-1] + len(line))
    whole = SubsetCounts(lambda: make_metric("math"))
    for number in range(ROWS):
        whole.update([record(number)])
    for cut in (1, 777, ROWS - 1):
        joined = SubsetCounts(lambda: make_metric("math"))
        for begin, end in ((0, ends[cut]), (ends[cut], ends[-1])):
            for subset, counts in count({"begin": begin, "end": end}).subsets:
                metric = joined._metric(subset)
                assert isinstance(metric, MathMetric)
                metric.absorb(counts)
        assert list(joined.metrics) == list(whole.metrics)
        for name, metric in whole.metrics.items():
            assert joined.metrics[name].metrics() == metric.metrics()
            assert joined.metrics[name].ledger() == metric.ledger()
