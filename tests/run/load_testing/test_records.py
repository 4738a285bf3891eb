# SPDX-License-Identifier: Apache-2.0
"""The log of a load test, as kills and hands leave it."""

from __future__ import annotations

from pathlib import Path

import pytest

from newskills.base.errors import DataError
from newskills.base.store import encode_line
from newskills.run.load_testing.records import LevelEnd, LevelStart, LoadLevel, MeasuredRequest, read_levels


def start(value: float) -> LevelStart:
    load = LoadLevel(kind="rate", value=value)
    return LevelStart(level=load.name, load=load, workload={"model": "m"}, unix_time=1.0)


def request(number: int) -> MeasuredRequest:
    return MeasuredRequest(number=number, due=0.0, sent=0.0, ended=1.0, tokens=[0.5])


def end(value: float) -> LevelEnd:
    return LevelEnd(level=start(value).level, seconds=3.0, cpu_seconds=0.1, max_in_flight=2)


def test_a_level_that_was_cut_short_has_what_was_measured(tmp_path: Path) -> None:
    log = tmp_path / "requests.jsonl"
    lines = [start(1.0), request(0), end(1.0), start(2.0), request(0), request(1)]
    log.write_bytes(b"".join(map(encode_line, lines)) + b'{"line":"request","number":2,"du')
    levels = read_levels(log)
    assert list(levels) == ["rate=1", "rate=2"]
    assert levels["rate=1"].end is not None
    assert levels["rate=2"].end is None
    assert [each.number for each in levels["rate=2"].requests] == [0, 1]


def test_the_last_measurement_of_a_level_counts(tmp_path: Path) -> None:
    log = tmp_path / "requests.jsonl"
    lines = [start(1.0), request(0), start(1.0), request(7), end(1.0)]
    log.write_bytes(b"".join(map(encode_line, lines)))
    assert [each.number for each in read_levels(log)["rate=1"].requests] == [7]


def test_all_at_once_survives_the_log(tmp_path: Path) -> None:
    log = tmp_path / "requests.jsonl"
    log.write_bytes(encode_line(start(0.0)))
    assert read_levels(log)["rate=inf"].start.load.value == 0.0


def test_what_is_no_record(tmp_path: Path) -> None:
    log = tmp_path / "requests.jsonl"
    assert read_levels(log) == {}
    log.write_text('{"problem": "1+1"}\n')
    with pytest.raises(DataError, match="line 1: no record of a load test"):
        read_levels(log)
    log.write_bytes(encode_line(request(0)))
    with pytest.raises(DataError, match="before the first level"):
        read_levels(log)
