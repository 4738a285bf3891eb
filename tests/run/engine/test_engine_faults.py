# SPDX-License-Identifier: Apache-2.0
"""Endpoints that refuse, go away or stay away, and disks that are full."""

from __future__ import annotations

import io
import re
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console
from tests.conftest import FakeServerFactory
from tests.disks import enlarge, small_disk
from tests.run.support import make_unit, records, run, run_and_listen, write_input
from tests.server import Answer, FakeServer, FakeServerProcess, Fault, Latency, Script

from newskills.base.errors import ConfigError
from newskills.run.engine.execute import execute
from newskills.run.planning.spec import RunSpec

ECHO = Script(answer=Answer(kind="echo"))


def after(server: FakeServer | FakeServerProcess, requests: int, do: Callable[[], object]) -> threading.Thread:
    """A started thread that calls `do` once the server has seen so many requests."""

    def wait() -> None:
        while len(server.records) < requests:
            time.sleep(0.005)
        do()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


def test_a_wrong_key_stops_at_once(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(api_key="right"))
    write_input(tmp_path, 100)
    result = run(make_unit(tmp_path, server.base_url, max_concurrent_requests=4, server={"api_key": "wrong"}))
    assert result.exit_code == 1
    assert "api_key" in result.message
    assert len(server.records) <= 8
    assert result.units[0].status == "stopped"


def test_an_unknown_model_stops_at_once(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(strict_model=True))
    write_input(tmp_path, 100)
    result = run(make_unit(tmp_path, server.base_url, server={"model": "nope"}))
    assert "nope" in result.message
    assert len(server.records) <= 16


def test_refusal_of_all_requests_stops_at_once(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(faults=(Fault(kind="status", status=400, message="no such parameter"),)))
    write_input(tmp_path, 200)
    result = run(make_unit(tmp_path, server.base_url))
    assert "refused each of the first 8 requests" in result.message
    assert "no such parameter" in result.message
    assert len(server.records) <= 16


def test_a_setting_that_the_backend_can_not_honour_is_refused(
    tmp_path: Path, fake_server: FakeServerFactory
) -> None:
    server = fake_server(ECHO)
    write_input(tmp_path, 20)
    unit = make_unit(tmp_path, server.base_url, server={"server_type": "openai"}, inference={"top_k": 5})
    with pytest.raises(ConfigError, match="top_k"):
        run(unit)
    assert server.records == []
    assert not (tmp_path / "out/output.jsonl.run.json").exists()


@pytest.mark.slow
def test_an_endpoint_that_goes_away_is_waited_for(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(answer=Answer(kind="echo"), latency=Latency(fixed=0.02)))
    write_input(tmp_path, 200)
    timer = after(server, 20, lambda: server.down(4.0))
    result, said = run_and_listen(make_unit(tmp_path, server.base_url))
    timer.join()
    assert (result.exit_code, len(records(tmp_path / "out" / "output.jsonl"))) == (0, 200)
    assert said.count("does not answer") == said.count("answers again") == 1


def test_an_endpoint_that_stays_away_ends_the_run_resumably(
    tmp_path: Path, fake_server: FakeServerFactory
) -> None:
    server = fake_server(Script(answer=Answer(kind="echo"), latency=Latency(fixed=0.02)))
    write_input(tmp_path, 100)
    timer = after(server, 20, server.stop)
    result = run(make_unit(tmp_path, server.base_url, endpoint_patience=0.5), resume_with="ns generate X")
    timer.join()
    assert (result.exit_code, result.units[0].status) == (1, "stopped")
    assert "has not answered for" in result.message
    assert "Resume with: ns generate X" in result.message
    kept = result.units[0].generated
    assert 0 < kept < 100
    other = fake_server(ECHO)
    again = run(make_unit(tmp_path, other.base_url))
    assert (again.exit_code, again.units[0].kept, len(other.records)) == (0, kept, 100 - kept)


@pytest.mark.parametrize("variable", ["", "SLURM_JOB_ID"])
def test_an_address_that_never_answered_is_given_up_soon_unless_a_scheduler_runs_us(
    tmp_path: Path, fake_server: FakeServerFactory, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setattr("newskills.run.engine.loop.FIRST_PATIENCE", 0.5)
    server = fake_server(ECHO)
    server.down(4)
    write_input(tmp_path, 5)
    unit = make_unit(tmp_path, server.base_url)
    spec = RunSpec(units=(unit,), output_dir=str(tmp_path))
    result = execute(spec, console=Console(file=io.StringIO()), environ={variable: "1"} if variable else {})
    assert result.exit_code == (0 if variable else 1)
    if not variable:
        assert "Nothing ever answered there: is the address correct?" in result.message
        assert "++endpoint_patience=1800" in result.message


def test_a_disk_that_stays_full(
    tmp_path: Path, fake_server: FakeServerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What could not be saved is counted, and nothing else is asked again."""
    monkeypatch.setattr("newskills.run.records.log.FULL_DISK_SECONDS", 0.2)
    with small_disk(tmp_path / "out", "256k"):
        server = fake_server(Script(answer=Answer(text="x" * 1000)))
        write_input(tmp_path, 400)
        unit = make_unit(tmp_path, server.base_url)
        result = run(unit)
        assert (result.exit_code, "No space is left" in result.message) == (1, True)
        kept, lost = len(records(unit.paths.log)), re.search(r"([\d,]+) finished lines are lost", result.message)
        assert lost is not None
        assert kept + int(lost[1]) == len(server.records)
        assert 50 < kept < 400
        enlarge(tmp_path / "out", "8m")
        result = run(unit)
        assert (result.exit_code, result.units[0].kept) == (0, kept)
        assert len(records(unit.merged)) == 400


def test_finished_replies_wait_for_space_on_a_full_disk(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    said = Said(when="wait in memory", then=lambda: enlarge(tmp_path / "out", "8m"))
    with small_disk(tmp_path / "out", "256k"):
        server = fake_server(Script(answer=Answer(text="x" * 1000)))
        write_input(tmp_path, 400)
        unit = make_unit(tmp_path, server.base_url, max_concurrent_requests=64)
        spec = RunSpec(units=(unit,), output_dir=str(tmp_path))
        result = execute(spec, console=Console(file=said, width=400), environ={})
        assert (result.exit_code, len(server.records)) == (0, 400)
        assert len(records(unit.merged)) == 400
    assert said.getvalue().count("No space is left") == 1
    assert "The disk has space again" in said.getvalue()


class Said(io.StringIO):
    """What a run says; `then` is done once it has said `when`."""

    def __init__(self, *, when: str, then: Callable[[], None]) -> None:
        super().__init__()
        self._when, self._then = when, then

    def write(self, text: str) -> int:
        if self._when in text:
            self._then()
        return super().write(text)
