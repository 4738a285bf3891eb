# SPDX-License-Identifier: Apache-2.0
"""Graders that run code: beside generation, from files, and when the sandbox is gone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import FakeServerFactory
from tests.run.executing import NAME, Mirror, serving
from tests.run.support import changed, make_unit, names, records, run, write_input
from tests.server import Answer, Script

from newskills.base.errors import SandboxError
from newskills.base.protocols import ExecutingGrader
from newskills.base.records import Row
from newskills.graders import make_grader
from newskills.graders.worker import make
from newskills.run.grade import ExecutedGrading, grade_rows
from newskills.run.records.state import load_state
from newskills.sandbox.config import SandboxConfig

ROWS = 30
ANSWERS = Answer(kind="table", table={f"is {i} +": str(i + 1 if i % 3 else 0) for i in range(ROWS)}, template="%s")


@pytest.fixture
def sandbox() -> Iterator[tuple[Mirror, SandboxConfig]]:
    mirror = Mirror()
    with serving(mirror) as port:
        yield mirror, SandboxConfig(host="127.0.0.1", port=port)


def answers(count: int) -> Iterator[Row]:
    for n in range(count):
        yield {"id": str(n), "generation": str(n), "expected_answer": str(n if n % 3 else 0), "why": "old"}


def test_verdicts_come_while_generating(
    tmp_path: Path, fake_server: FakeServerFactory, sandbox: tuple[Mirror, SandboxConfig]
) -> None:
    server = fake_server(Script(answer=ANSWERS))
    write_input(tmp_path, ROWS)
    result = run(make_unit(tmp_path, server.base_url, eval_type=NAME, sandbox=sandbox[1]))
    assert (result.exit_code, result.ledger.correct, result.ledger.wrong) == (0, 20, 10)
    found = records(tmp_path / "out" / "output.jsonl")
    assert [r["is_correct"] for r in found] == [bool(n % 3) for n in range(ROWS)]
    assert sandbox[0].done == ROWS
    assert names(tmp_path / "out") == ["output.jsonl", "output.jsonl.done", "output.jsonl.run.json"]


def test_more_records_than_the_window(
    tmp_path: Path,
    fake_server: FakeServerFactory,
    sandbox: tuple[Mirror, SandboxConfig],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("newskills.run.engine.grader_pool.MAX_WAITING_SAMPLES", 3)
    server = fake_server(Script(answer=ANSWERS))
    write_input(tmp_path, ROWS)
    result = run(make_unit(tmp_path, server.base_url, eval_type=NAME, sandbox=sandbox[1]))
    assert (result.ledger.total, result.ledger.correct, sandbox[0].done) == (ROWS, 20, ROWS)
    assert sandbox[0].most <= 3


def test_a_sandbox_that_stumbles_is_asked_again(
    tmp_path: Path, fake_server: FakeServerFactory, sandbox: tuple[Mirror, SandboxConfig]
) -> None:
    sandbox[0].flaky = {"2", "3"}
    server = fake_server(Script(answer=ANSWERS))
    write_input(tmp_path, ROWS)
    result = run(make_unit(tmp_path, server.base_url, eval_type=NAME, sandbox=sandbox[1]))
    assert (result.ledger.correct, result.ledger.unscored) == (20, 0)


def test_a_sandbox_that_breaks_stops_the_run_and_costs_no_answer(
    tmp_path: Path, fake_server: FakeServerFactory, sandbox: tuple[Mirror, SandboxConfig]
) -> None:
    mirror, config = sandbox
    mirror.broken = True
    server = fake_server(Script(answer=ANSWERS))
    write_input(tmp_path, ROWS)
    unit = make_unit(tmp_path, server.base_url, eval_type=NAME, sandbox=config, max_concurrent_requests=ROWS)
    broken = run(unit)
    assert broken.exit_code == 1
    assert "out of order" in broken.message
    assert broken.ledger.wrong == 0
    assert not unit.paths.done.exists()
    asked, before = len(server.records), load_state(unit.paths.state)
    assert before is not None
    mirror.broken = False
    fixed = run(unit)
    assert (fixed.exit_code, fixed.ledger.correct, fixed.ledger.wrong, fixed.ledger.unscored) == (0, 20, 10, 0)
    assert len(server.records) == asked + ROWS - before.done


def test_without_a_sandbox_no_model_is_asked(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(answer=ANSWERS))
    write_input(tmp_path, ROWS)
    result = run(make_unit(tmp_path, server.base_url, eval_type=NAME, sandbox=SandboxConfig(port=1)))
    assert result.exit_code == 1
    assert "sandbox" in result.message
    assert server.records == []


def test_a_finished_file_is_graded_again(
    tmp_path: Path, fake_server: FakeServerFactory, sandbox: tuple[Mirror, SandboxConfig]
) -> None:
    server = fake_server(Script(answer=ANSWERS))
    write_input(tmp_path, ROWS)
    unit = make_unit(tmp_path, server.base_url, eval_type="exact", sandbox=sandbox[1])
    run(unit)
    result = run(changed(unit, eval_type=NAME))
    assert (result.ledger.correct, len(server.records)) == (20, ROWS)
    assert all("is_correct" in r and "symbolic_correct" not in r for r in records(unit.merged))


def test_rows_of_a_file_in_order_and_bounded(sandbox: tuple[Mirror, SandboxConfig]) -> None:
    found = list(grade_rows(answers(300), NAME, {}, sandbox[1]))
    assert [row["id"] for row in found] == [str(n) for n in range(300)]
    assert [row["outcome"] for row in found[:4]] == ["correct", "correct", "correct", "wrong"]
    assert "why" not in found[0]
    assert 1 < sandbox[0].most <= 64


def test_rows_are_read_as_they_are_needed(sandbox: tuple[Mirror, SandboxConfig]) -> None:
    read = []

    def rows() -> Iterator[Row]:
        for row in answers(10_000):
            read.append(row)
            yield row

    graded = grade_rows(rows(), NAME, {}, sandbox[1])
    for _ in range(10):
        next(graded)
    graded.close()  # type: ignore[attr-defined]
    assert len(read) < 100


def test_one_set_of_rows_after_another_in_the_same_sandbox(sandbox: tuple[Mirror, SandboxConfig]) -> None:
    grader = make_grader(NAME, {})
    assert isinstance(grader, ExecutingGrader)
    with ExecutedGrading() as grading:
        for count in (30, 3):
            graded = list(grading.grade_rows(answers(count), grader, sandbox[1]))
            assert [row["is_correct"] for row in graded] == [n == 0 or n % 3 > 0 for n in range(count)]
        stopped = grading.grade_rows(answers(30), grader, sandbox[1])
        next(stopped)
        stopped.close()  # type: ignore[attr-defined]
        with pytest.raises(SandboxError):
            list(grading.grade_rows(answers(3), grader, SandboxConfig(port=1)))
        assert len(list(grading.grade_rows(answers(3), grader, sandbox[1]))) == 3, "one that fails costs no other"


def test_a_file_without_a_sandbox(sandbox: tuple[Mirror, SandboxConfig]) -> None:
    with pytest.raises(SandboxError):
        list(grade_rows(answers(3), NAME, {}, SandboxConfig(port=1)))
    sandbox[0].broken = True
    with pytest.raises(SandboxError, match="out of order"):
        list(grade_rows(answers(30), NAME, {}, sandbox[1]))


def test_a_worker_process_does_not_run_code() -> None:
    with pytest.raises(Exception, match="runs code"):
        make({"name": NAME, "config": {}})
