# SPDX-License-Identifier: Apache-2.0
"""`++max_total_tokens`, `++max_cost`: a run stops in time, loses nothing, and resumes with more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.conftest import FakeServerFactory
from tests.run.support import changed, make_unit, records, run, write_input
from tests.server import Answer, Script

from newskills.run.planning.spec import Unit

WORDS = "one two three four five six seven eight nine ten"
PRICES = {"price_per_million_input_tokens": 1000.0, "price_per_million_output_tokens": 2000.0}


def unit_of(folder: Path, base_url: str, **settings: Any) -> Unit:
    write_input(folder, rows=200)
    return make_unit(folder, base_url, **settings)


def test_tokens_are_not_exceeded_and_the_same_command_goes_on(
    tmp_path: Path, fake_server: FakeServerFactory
) -> None:
    server = fake_server(Script(answer=Answer(text=WORDS)))
    unit = unit_of(tmp_path, server.base_url, max_total_tokens=900, max_concurrent_requests=64)
    stopped = run(unit, resume_with="ns again")
    assert stopped.exit_code == 4
    assert "++max_total_tokens=900" in stopped.message
    assert "of 200 rows are done. Resume with a larger budget: ns again" in stopped.message
    (result,) = stopped.units
    assert result.status == "stopped"
    spent = (result.input_tokens or 0) + (result.output_tokens or 0)
    assert 850 < spent <= 900
    asked = len(server.records)
    assert asked == result.generated
    assert not unit.paths.output.exists()

    assert run(unit).exit_code == 4
    assert len(server.records) == asked
    rest = run(changed(unit, max_total_tokens=100_000))
    assert rest.exit_code == 0
    assert len(server.records) == 200
    assert len(records(unit.paths.output)) == 200


def test_money_by_the_prices_of_the_server(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(answer=Answer(text=WORDS)))
    stopped = run(unit_of(tmp_path, server.base_url, server=PRICES, max_cost=1.0))
    assert stopped.exit_code == 4
    (result,) = stopped.units
    assert result.cost is not None
    assert 0.9 < result.cost <= 1.0


def test_a_budget_without_prices_is_refused() -> None:
    with pytest.raises(ValueError, match=r"\+\+server.price_per_million_input_tokens=PRICE"):
        make_unit(Path("x"), "http://127.0.0.1:9/v1", max_cost=1.0)


def test_finished_files_of_the_run_count(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(answer=Answer(text=WORDS)))
    first = unit_of(tmp_path, server.base_url, max_samples=20, max_total_tokens=10_000)
    other = changed(first, output_file=str(tmp_path / "out" / "other.jsonl"))
    assert run(first).exit_code == 0
    used = sum((result.input_tokens or 0) + (result.output_tokens or 0) for result in run(first).units)
    budget = used + used // 2
    for sequential in (False, True):
        small = [changed(unit, max_total_tokens=budget) for unit in (first, other)]
        both = run(*small, sequential=sequential)
        assert both.exit_code == 4
        assert [result.status for result in both.units] == ["done", "stopped"]
        assert both.units[1].generated + both.units[1].kept == 10


def test_a_server_that_counts_no_tokens_is_told_of(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(answer=Answer(text=WORDS), usage="none"))
    stopped = run(unit_of(tmp_path, server.base_url, max_total_tokens=900))
    assert stopped.exit_code == 2
    assert "does not say how many tokens" in stopped.message


def test_a_budget_is_no_setting_that_a_resume_must_share(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(answer=Answer(text=WORDS)))
    unit = unit_of(tmp_path, server.base_url, max_samples=30, max_total_tokens=200)
    assert run(unit).exit_code == 4
    whole = run(msgspec.structs.replace(unit, config=msgspec.structs.replace(unit.config, max_total_tokens=None)))
    assert whole.exit_code == 0
