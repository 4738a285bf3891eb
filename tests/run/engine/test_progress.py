# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import io
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console
from tests.conftest import FakeServerFactory
from tests.run.support import make_unit, run_and_listen, write_input
from tests.server import Fault, Script

from newskills.run.engine.progress import Progress, Snapshot, describe_progress, format_duration


def test_the_line_says_what_is_known_and_nothing_else() -> None:
    short = Snapshot(rows=10, done=4, fresh=2)
    assert describe_progress(short, 4.0) == "4/10 rows · 0.5 rows/s"
    full = Snapshot(
        rows=5000,
        done=4000,
        fresh=3000,
        tokens=12345,
        fresh_tokens=9000,
        cost=1.239,
        left=300.0,
        in_flight=60,
        concurrency=64,
        errors={"timeout": 1, "rate limit": 2},
        unscored={"provider": 2},
    )
    assert describe_progress(full, 2.0) == (
        "4,000/5,000 rows · 1,500.0 rows/s · 5 min left · 12,345 tokens (4,500/s) · 60 of 64 in flight · cost 1.24"
        " · 3 retries (rate limit 2, timeout 1) · 2 unscored (provider 2)"
    )
    ended = Snapshot(rows=5000, done=40, fresh=40, left=20_000.0, in_flight=6, concurrency=64, stopping=True)
    assert describe_progress(ended, 4.0) == "40/5,000 rows · 10.0 rows/s · stopping · 6 of 64 in flight"
    assert describe_progress(Snapshot(rows=3, done=0, fresh=0), 0.0) == "0/3 rows · 0.0 rows/s"


def test_while_the_first_reply_is_awaited_it_says_so_and_how_long() -> None:
    first = Snapshot(
        rows=300, done=100, fresh=0, waiting=True, in_flight=16, concurrency=16, errors={"timeout": 1}
    )
    assert describe_progress(first, 40.0) == (
        "100/300 rows · waiting for the first reply, 40 s; 16 in flight · 1 retry (timeout 1)"
    )


def test_a_real_run_waits_for_its_first_reply(
    tmp_path: Path, fake_server: FakeServerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("newskills.run.engine.progress.PLAIN_EVERY", 0.1)
    server = fake_server(Script(faults=[Fault(kind="delay", seconds=2.0, first=8)]))
    write_input(tmp_path, rows=8)
    prices = {"price_per_million_input_tokens": 1e4, "price_per_million_output_tokens": 1e4}
    result, said = run_and_listen(make_unit(tmp_path, server.base_url, server=prices))
    assert result.exit_code == 0
    first, *_, last = [line for line in said.splitlines() if line.startswith("generate: ")]
    assert "0/8 rows · waiting for the first reply, " in first
    assert "8 in flight" in first
    assert re.search(r"8/8 rows · .* tokens \([\d,]+/s\) · .*cost \d", last)


@pytest.mark.parametrize(("status", "kind"), [(429, "rate limit"), (500, "server error")])
def test_errors_are_told_by_kind(tmp_path: Path, fake_server: FakeServerFactory, status: int, kind: str) -> None:
    server = fake_server(Script(faults=[Fault(kind="status", status=status, first=3)]))
    write_input(tmp_path, rows=8)
    _, said = run_and_listen(make_unit(tmp_path, server.base_url))
    assert f"3 retries ({kind} 3)" in said


def test_durations() -> None:
    assert [format_duration(s) for s in (5, 89, 600, 12000)] == ["5 s", "89 s", "10 min", "3 h 20 min"]


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
    assert "10.0 rows/s" in out.getvalue()


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


def test_a_pause_says_until_when() -> None:
    text = describe_progress(Snapshot(rows=10, done=4, fresh=4, paused_for=3.0, waiting=True), 4.0)
    assert re.fullmatch(
        r"4/10 rows · paused by the server until (\d\d\d\d-\d\d-\d\d )?\d\d:\d\d(:\d\d)? \(Retry-After\)", text
    )
