# SPDX-License-Identifier: Apache-2.0
"""A run over an input file that has got more rows, or other ones in some places: only those are asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.conftest import FakeServer, FakeServerFactory
from tests.run.support import changed, make_unit, names, records, run, run_and_listen, write_input
from tests.server import Answer, Fault, Script

from newskills.base.errors import DataError
from newskills.base.records import Row
from newskills.run.engine.preflight import asks_nothing
from newskills.run.planning.spec import Unit
from newskills.run.records.grow import KeptRows, keep_answers
from newskills.run.records.log import log_line
from newskills.run.records.rows import scan_rows
from newskills.run.records.state import load_state

ECHO = Script(
    answer=Answer(kind="table", table={f"is {i} +": str(i + 1) for i in range(99)}, template="\\boxed{%s}")
)
ROWS = 6


@pytest.fixture
def server(fake_server: FakeServerFactory) -> FakeServer:
    return fake_server(ECHO)  # type: ignore[return-value]


@pytest.fixture
def unit(tmp_path: Path, server: FakeServer) -> Unit:
    write_input(tmp_path, ROWS)
    made = make_unit(tmp_path, server.base_url, eval_type="math", max_concurrent_requests=1)
    assert run(made).exit_code == 0
    return made


def rewrite(unit: Unit, rows: list[Row]) -> None:
    Path(unit.config.input_file).write_text("".join(json.dumps(row) + "\n" for row in rows))


def given(unit: Unit) -> list[Row]:
    return records(unit.config.input_file)


def problem(number: int, **more: object) -> Row:
    return {"problem": f"What is {number} + 1?", "expected_answer": str(number + 1), **more}


def asked(server: FakeServer, since: int) -> list[str]:
    return [str(record.body["messages"][-1]["content"]) for record in server.records[since:]]


def test_appended_rows_alone_are_asked(unit: Unit, server: FakeServer, tmp_path: Path) -> None:
    before, files = records(unit.merged), names(unit.merged.parent)
    write_input(tmp_path, ROWS + 3)
    assert not asks_nothing(unit)
    result, said = run_and_listen(unit)
    assert (result.exit_code, result.units[0].kept, result.units[0].generated) == (0, ROWS, 3)
    assert asked(server, ROWS) == [f"What is {i} + 1?" for i in range(ROWS, ROWS + 3)]
    assert "6 of 6 answers are kept, 3 rows are generated" in said
    after = records(unit.merged)
    assert after[:ROWS] == before
    assert [row["expected_answer"] for row in after] == [str(i + 1) for i in range(ROWS + 3)]
    assert result.ledger.correct == ROWS + 3
    assert names(unit.merged.parent) == files
    assert run(unit).units[0].kept == ROWS + 3
    assert asks_nothing(unit)
    assert len(server.records) == ROWS + 3


def test_a_changed_row_is_asked_again(unit: Unit, server: FakeServer) -> None:
    rows = given(unit)
    rows[2] = problem(50)
    rows[4]["expected_answer"] = "0"
    rewrite(unit, [*rows, problem(60)])
    assert run(unit).exit_code == 0
    assert asked(server, ROWS) == ["What is 50 + 1?", "What is 4 + 1?", "What is 60 + 1?"]
    after = records(unit.merged)
    assert [row["problem"] for row in after] == [*(row["problem"] for row in rows), "What is 60 + 1?"]
    assert [row["outcome"] for row in after] == ["correct"] * 4 + ["wrong", "correct", "correct"]


def test_rows_with_ids_of_their_own(tmp_path: Path, server: FakeServer) -> None:
    unit = make_unit(tmp_path, server.base_url, max_concurrent_requests=1)
    rewrite(unit, [problem(i, id=f"p{i}") for i in range(4)])
    run(unit)
    rewrite(unit, [problem(0, id="p0"), problem(9, id="p1"), *(problem(i, id=f"p{i}") for i in range(2, 5))])
    assert run(unit).exit_code == 0
    assert asked(server, 4) == ["What is 9 + 1?", "What is 4 + 1?"]
    assert [row["id"] for row in records(unit.merged)] == ["p0", "p1", "p2", "p3", "p4"]


def test_fewer_rows_are_refused(unit: Unit, server: FakeServer) -> None:
    before = unit.merged.read_bytes()
    rewrite(unit, given(unit)[:4])
    with pytest.raises(DataError, match=r"now has 4 rows, but .*output.jsonl has the answer to row 6"):
        run(unit)
    assert (unit.merged.read_bytes(), len(server.records)) == (before, ROWS)


def test_another_input_is_refused(unit: Unit, server: FakeServer) -> None:
    before, files = unit.merged.read_bytes(), names(unit.merged.parent)
    rewrite(unit, [*given(unit)[:2], *(problem(i) for i in range(20, 40))])
    with pytest.raises(DataError, match="changed: the content of the input file"):
        run(unit)
    assert (unit.merged.read_bytes(), names(unit.merged.parent), len(server.records)) == (before, files, ROWS)


def test_chunks_do_not_grow(unit: Unit, server: FakeServer, tmp_path: Path) -> None:
    """Their borders would move."""
    output = str(tmp_path / "chunks" / "output.jsonl")
    chunks = [changed(unit, output_file=output, num_chunks=2, chunk_id=chunk) for chunk in range(2)]
    assert run(*chunks).exit_code == 0
    write_input(tmp_path, ROWS + 2)
    with pytest.raises(DataError, match="the content of the input file"):
        run(*chunks)


def test_other_settings_are_refused_with_the_input(unit: Unit, tmp_path: Path) -> None:
    write_input(tmp_path, ROWS + 3)
    with pytest.raises(DataError, match="max_samples"):
        run(changed(unit, max_samples=7))


@pytest.mark.parametrize("done", [0, 2])
def test_a_run_that_broke_off_while_it_grew(unit: Unit, server: FakeServer, tmp_path: Path, done: int) -> None:
    write_input(tmp_path, ROWS + 4)
    server.script = Script(answer=ECHO.answer, faults=(Fault(kind="status", status=400, after=done),))
    run(unit)
    server.script, since = ECHO, len(server.records)
    write_input(tmp_path, ROWS + 5)
    result = run(unit)
    assert (result.exit_code, result.units[0].kept) == (0, ROWS + done)
    assert len(server.records) == since + 5 - done
    assert [row["expected_answer"] for row in records(unit.merged)] == [str(i + 1) for i in range(ROWS + 5)]


def test_a_kill_behind_the_log_and_before_the_state_loses_nothing(
    unit: Unit, server: FakeServer, tmp_path: Path
) -> None:
    write_input(tmp_path, ROWS + 2)
    state = load_state(unit.paths.state)
    assert state is not None
    source = scan_rows(Path(unit.config.input_file))
    assert keep_answers(unit, source, range(source.rows), frozenset(state.grade_fields), "0" * 8) is not None
    unit.paths.done.touch()
    assert run(unit).exit_code == 0
    assert len(server.records) == ROWS + 2
    assert [row["outcome"] for row in records(unit.merged)] == ["correct"] * (ROWS + 2)


def test_a_damaged_record_is_made_again(unit: Unit, server: FakeServer, tmp_path: Path) -> None:
    lines = unit.merged.read_bytes().splitlines(keepends=True)
    unit.merged.write_bytes(b"".join([*lines[:1], b"\0" * (len(lines[1]) - 1) + b"\n", *lines[2:]]))
    write_input(tmp_path, ROWS + 1)
    assert run(unit).exit_code == 0
    assert asked(server, ROWS) == ["What is 1 + 1?", f"What is {ROWS} + 1?"]


def test_what_was_cut_off_is_made_again_too(unit: Unit, server: FakeServer, tmp_path: Path) -> None:
    unit.merged.write_bytes(b"".join(unit.merged.read_bytes().splitlines(keepends=True)[: ROWS - 2]))
    write_input(tmp_path, ROWS + 1)
    assert run(unit).exit_code == 0
    assert asked(server, ROWS) == [f"What is {i} + 1?" for i in range(ROWS - 2, ROWS + 1)]


def test_a_file_that_is_gone_keeps_nothing(unit: Unit, tmp_path: Path) -> None:
    unit.merged.unlink()
    write_input(tmp_path, ROWS + 1)
    with pytest.raises(DataError, match="the content of the input file"):
        run(unit)


@pytest.mark.parametrize(("other", "kept"), [(3, True), (4, False)])
def test_half_of_the_answers_must_be_kept(unit: Unit, other: int, kept: bool) -> None:
    rewrite(unit, [problem(i + 50 * (i < other)) for i in range(ROWS)])
    before = unit.paths.output.read_bytes()
    source = scan_rows(Path(unit.config.input_file))
    found = keep_answers(unit, source, range(ROWS), frozenset(), "0123abcd")
    assert found == (KeptRows(before=ROWS, kept=ROWS - other) if kept else None)
    assert unit.paths.done.exists() is not kept
    assert unit.paths.log.exists() is kept
    assert unit.paths.output.read_bytes() == before
    if kept:
        assert [row["_async_position"] for row in records(unit.paths.log)] == [3, 4, 5]


def test_what_was_asked_is_kept_with_the_answer(unit: Unit) -> None:
    """The log names the request; only the hash of the settings is today's."""
    row = records(unit.merged)[0]
    source = scan_rows(Path(unit.config.input_file))
    rows = {sample.position: sample.id for sample in source.samples(range(2))}
    lines = [log_line({**row, **problem(i), "id": rows[i]}, "_async_position", i, f"key{i}", "ff") for i in rows]
    unit.paths.log.write_bytes(b"garbage\n".join(lines))
    assert keep_answers(unit, source, range(ROWS), frozenset({"outcome"}), "0123abcd") == KeptRows(
        before=2, kept=2
    )
    after = records(unit.paths.log)
    assert [(r["_async_key"], r["_async_settings"], "outcome" in r) for r in after] == [
        ("key0", "0123abcd", False),
        ("key1", "0123abcd", False),
    ]
