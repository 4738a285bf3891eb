# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import io
from types import SimpleNamespace

import pytest
from rich.console import Console

from newskills.run.engine.progress import Progress, Snapshot, describe, duration


def test_the_line_says_what_is_known_and_nothing_else() -> None:
    short = Snapshot(rows=10, done=4, fresh=2)
    assert describe(short, 4.0) == "4/10 rows · 0.5 rows/s · 12 s left"
    full = Snapshot(
        rows=5000, done=5000, fresh=5000, tokens=12345, cost=1.239, retries=3, concurrency=64, unscored=2
    )
    assert describe(full, 2.0) == (
        "5,000/5,000 rows · 2,500.0 rows/s · 12,345 tokens · cost 1.24 · 64 at once · 3 retries · 2 unscored"
    )
    assert describe(Snapshot(rows=3, done=0, fresh=0), 0.0) == "0/3 rows · 0.0 rows/s"


def test_durations() -> None:
    assert [duration(s) for s in (5, 89, 600, 12000)] == ["5 s", "89 s", "10 min", "3 h 20 min"]


def test_without_a_terminal_there_are_few_plain_lines() -> None:
    out = io.StringIO()
    with Progress(Console(file=out, width=200), "gsm8k") as progress:
        for done in range(50):
            progress.show(Snapshot(rows=50, done=done, fresh=done))
        progress.show(Snapshot(rows=50, done=50, fresh=50), last=True)
        progress.say("[red]not markup\x1b[31m")
    first, second = out.getvalue().splitlines()
    assert first.startswith("gsm8k: 50/50 rows")
    assert second == "[red]not markup\\x1b[31m"


def test_what_went_before_the_first_request_is_in_no_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 100.0, 110.0])
    monkeypatch.setattr("newskills.run.engine.progress.time", SimpleNamespace(monotonic=lambda: next(clock)))
    out = io.StringIO()
    with Progress(Console(file=out, width=200), "gsm8k") as progress:
        progress.begin()
        progress.show(Snapshot(rows=1000, done=600, fresh=100), last=True)
    assert "10.0 rows/s · 40 s left" in out.getvalue()


def test_on_a_terminal_there_is_a_bar() -> None:
    out = io.StringIO()
    with Progress(Console(file=out, width=160, force_terminal=True), "gsm8k [bold]") as progress:
        progress.show(Snapshot(rows=50, done=25, fresh=25))
        progress.show(Snapshot(rows=50, done=50, fresh=50), last=True)
    assert "gsm8k [bold]" in out.getvalue()
    assert "50/50 rows" in out.getvalue()


def test_quiet_runs_still_speak_up() -> None:
    out = io.StringIO()
    with Progress(Console(file=out, width=80), "x", quiet=True) as progress:
        progress.show(Snapshot(rows=1, done=1, fresh=1), last=True)
        progress.say("down")
    assert out.getvalue() == "down\n"
