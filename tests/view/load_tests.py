# SPDX-License-Identifier: Apache-2.0
"""A load test as `ns load_test` leaves it."""

from __future__ import annotations

from pathlib import Path

import msgspec

from newskills.base.store import write_json
from newskills.run.load_testing.figures import figures_of
from newskills.run.load_testing.records import LevelEnd, LevelStart, LoadLevel, MeasuredLevel, MeasuredRequest
from newskills.run.load_testing.result import SUMMARY, LoadTest


def write_load_test(folder: Path, *, model: str = "m") -> LoadTest:
    """Three rates, the last of which is too high: half of its requests are refused."""
    levels = []
    for rate in (1.0, 2.0, 4.0):
        load = LoadLevel(kind="rate", value=rate, requests=10)
        requests = [
            MeasuredRequest(
                number=n,
                due=n / rate,
                sent=n / rate,
                ended=1.0,
                tokens=[0.1 * rate + 0.02 * k for k in range(20)],
                input_tokens=100,
                output_tokens=20,
                error="rate limit" if rate > 2 and n % 2 else "",
            )
            for n in range(10)
        ]
        start = LevelStart(level=load.name, load=load, workload={}, unix_time=0.0)
        end = LevelEnd(level=load.name, seconds=10 / rate + 1, cpu_seconds=0.1, max_in_flight=int(rate))
        levels.append(figures_of(MeasuredLevel(start=start, requests=requests, end=end), {"ttft": 300.0}))
    test = LoadTest(
        model=model,
        address="http://127.0.0.1:8000/v1",
        workload={},
        levels=levels,
        limits={"ttft": 300.0},
        share=0.95,
        find=None,
        highest=2.0,
        records=str(folder / "requests.jsonl"),
    )
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / SUMMARY, msgspec.to_builtins(test))
    return test
