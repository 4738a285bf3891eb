# SPDX-License-Identifier: Apache-2.0
"""Finished files that lost rows since: never scored as if they were whole, and made whole again."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from tests.conftest import FakeServer, FakeServerFactory
from tests.run.support import changed, make_unit, records, run, run_and_listen, write_input
from tests.server import Answer, Script

from newskills.base.errors import DataError, StorageError
from newskills.run.engine.preflight import is_finished
from newskills.run.planning.spec import RUN_FILE, RunSpec, Unit
from newskills.run.records.completeness import (
    check_complete,
    damage_of,
    expected_rows,
    is_cut,
    is_marked,
    row_count,
    take_over,
)
from newskills.run.records.rows import scan_rows
from newskills.run.records.state import load_state
from newskills.run.reporting.summarize import SummaryOptions, summarize_files

ROWS = 20
ANSWERS = Answer(kind="table", table={f"is {i} +": str(i + 1) for i in range(ROWS)}, template="\\boxed{%s}")


@pytest.fixture
def server(fake_server: FakeServerFactory) -> FakeServer:
    return fake_server(Script(answer=ANSWERS))  # type: ignore[return-value]


@pytest.fixture
def unit(tmp_path: Path, server: FakeServer) -> Unit:
    write_input(tmp_path, ROWS)
    made = make_unit(tmp_path, server.base_url, eval_type="math")
    assert run(made, resume_with="ns generate --again").exit_code == 0
    return made


def cut(path: Path, lines: int, torn: bytes = b"") -> None:
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:lines]) + torn)


def test_a_cut_file_is_refused_with_what_is_missing_and_how_to_make_it(unit: Unit) -> None:
    output = unit.merged
    whole = records(output)
    cut(output, 12)
    with pytest.raises(DataError) as error:
        summarize_files("gsm8k", [output], None, SummaryOptions())
    assert "finished with 20 rows and now has 12: 8 are missing: rows 13-20 of the input (ids " in str(error.value)
    assert whole[12]["id"] in str(error.value)
    assert "ns generate --again" in str(error.value)
    check_complete(output, first=12)
    with pytest.raises(DataError):
        check_complete(output, first=13)


def test_rows_that_are_gone_from_the_middle_are_named(unit: Unit) -> None:
    lines = unit.merged.read_bytes().splitlines(keepends=True)
    unit.merged.write_bytes(b"".join(lines[:3] + lines[5:9] + lines[10:]))
    with pytest.raises(DataError, match=r"3 are missing: rows 4-5, 10 of the input"):
        check_complete(unit.merged)


@pytest.mark.parametrize("torn", [b"", b'{"id": "torn", "gen'])
def test_only_the_missing_rows_are_made_again(unit: Unit, server: FakeServer, torn: bytes) -> None:
    whole, asked = records(unit.merged), len(server.records)
    cut(unit.merged, 12, torn)
    assert is_cut(unit)
    assert not is_finished(unit)
    result, said = run_and_listen(unit)
    assert (result.exit_code, result.units[0].rows, result.units[0].generated) == (0, ROWS, 8)
    assert len(server.records) == asked + 8
    assert "8 of 20 rows were lost" in said
    assert [(row["id"], row["outcome"], row["generation"]) for row in records(unit.merged)] == [
        (row["id"], row["outcome"], row["generation"]) for row in whole
    ]
    check_complete(unit.merged)
    assert result.ledger.correct == ROWS
    assert is_finished(unit)


def test_a_damaged_line_is_made_again(unit: Unit, server: FakeServer) -> None:
    asked, lines = len(server.records), unit.merged.read_bytes().splitlines(keepends=True)
    unit.merged.write_bytes(b"".join([*lines[:4], b"\0" * 40 + b"\n", *lines[6:]]))
    assert run(unit).units[0].generated == 2
    assert len(server.records) == asked + 2


@pytest.mark.parametrize("there", ["nothing", "an empty file", "an empty file without its exit record"])
def test_a_marker_alone_is_no_result(unit: Unit, server: FakeServer, there: str) -> None:
    asked = len(server.records)
    unit.merged.unlink()
    if there != "nothing":
        unit.merged.touch()
    if "without" in there:
        unit.paths.state.unlink()
    assert unit.paths.done.stat().st_size == 0
    assert not is_finished(unit)
    result = run(unit)
    assert (result.exit_code, result.units[0].generated, len(records(unit.merged))) == (0, ROWS, ROWS)
    assert len(server.records) == asked + ROWS


def test_a_merged_file_that_was_cut(unit: Unit, server: FakeServer, tmp_path: Path) -> None:
    chunks = [
        changed(unit, output_file=str(tmp_path / "chunked" / "output.jsonl"), num_chunks=3, chunk_id=k)
        for k in range(3)
    ]
    assert run(*chunks).exit_code == 0
    merged = chunks[0].merged
    whole, asked = records(merged), len(server.records)
    cut(merged, 10)
    with pytest.raises(DataError, match="finished with 20 rows and now has 10"):
        check_complete(merged)
    assert all(is_cut(chunk) for chunk in chunks)
    result = run(*chunks)
    assert (result.exit_code, sum(one.generated for one in result.units)) == (0, 10)
    assert len(server.records) == asked + 10
    assert [row["id"] for row in records(merged)] == [row["id"] for row in whole]
    assert not any(is_cut(chunk) for chunk in chunks)


def test_files_that_others_made_whole_are_left_alone(unit: Unit, server: FakeServer) -> None:
    asked = len(server.records)
    unit.merged.write_text("".join(f"{line} \n" for line in unit.merged.read_text().splitlines()))
    assert run(unit).units[0].kept == ROWS
    unit.paths.state.unlink()
    cut(unit.merged, 12)
    check_complete(unit.merged)
    assert len(server.records) == asked


def test_no_more_than_five_pieces_and_ids_are_told(unit: Unit) -> None:
    lines, whole = unit.merged.read_bytes().splitlines(keepends=True), records(unit.merged)
    unit.merged.write_bytes(b"".join(line for number, line in enumerate(lines) if number % 2))
    with pytest.raises(DataError) as error:
        check_complete(unit.merged)
    ids = ", ".join(str(row["id"]) for row in whole[:10:2])
    assert f"10 are missing: rows 1, 3, 5, 7, 9, … of the input (ids {ids}, …)." in str(error.value)


def test_five_pieces_are_told_without_more(unit: Unit) -> None:
    lines, whole = unit.merged.read_bytes().splitlines(keepends=True), records(unit.merged)
    unit.merged.write_bytes(b"".join(line for number, line in enumerate(lines) if number % 2 or number > 9))
    with pytest.raises(DataError) as error:
        check_complete(unit.merged)
    ids = ", ".join(str(row["id"]) for row in whole[:10:2])
    assert f"5 are missing: rows 1, 3, 5, 7, 9 of the input (ids {ids})." in str(error.value)


def test_a_file_of_more_or_as_many_rows_is_complete(unit: Unit) -> None:
    with unit.merged.open("ab") as file:
        file.write(b'{"id": "one more"}\n')
    check_complete(unit.merged)
    assert not is_cut(unit)
    assert row_count(unit.merged) == ROWS + 1


def test_a_torn_last_line_is_no_row(unit: Unit) -> None:
    unit.merged.write_bytes(unit.merged.read_bytes()[:-1])
    assert row_count(unit.merged) == ROWS - 1
    assert is_cut(unit)
    assert row_count(unit.merged.with_name("absent.jsonl")) == 0


@pytest.mark.parametrize(("depth", "told"), [(5, True), (6, False)])
def test_the_command_is_looked_for_in_six_folders_above(
    tmp_path: Path, server: FakeServer, depth: int, told: bool
) -> None:
    write_input(tmp_path, 4)
    folder = Path(tmp_path, "top", *"abcdefgh"[:depth])
    made = make_unit(tmp_path, server.base_url, output_file=str(folder / "output.jsonl"))
    assert run(made).exit_code == 0
    spec = RunSpec(units=(made,), output_dir="", resume_with="ns generate --again")
    (tmp_path / "top" / RUN_FILE).write_bytes(msgspec.json.encode(spec))
    for parent in folder.parents:
        if parent != tmp_path / "top":
            (parent / RUN_FILE).unlink(missing_ok=True)
    (folder / RUN_FILE).unlink(missing_ok=True)
    cut(made.merged, 2)
    with pytest.raises(DataError) as error:
        check_complete(made.merged)
    assert ("ns generate --again" in str(error.value)) is told
    assert ("run the command that wrote this file again" in str(error.value)) is not told


def test_of_a_whole_file_and_its_chunks_the_younger_record_counts(
    unit: Unit, server: FakeServer, tmp_path: Path
) -> None:
    assert expected_rows(unit.merged) == ROWS
    write_input(tmp_path, 6)
    chunks = [changed(unit, num_chunks=2, chunk_id=k, skip_filled=False) for k in range(2)]
    assert run(*chunks).exit_code == 0
    assert expected_rows(unit.merged) == 6
    whole = load_state(unit.paths.state)
    assert whole is not None
    whole.ended = (whole.ended or 0) + 3600
    whole.save(unit.paths.state)
    assert expected_rows(unit.merged) == ROWS
    assert expected_rows(tmp_path / "nothing.jsonl") is None


def test_without_the_input_the_rows_are_counted_and_not_named(unit: Unit, tmp_path: Path) -> None:
    (tmp_path / "input.jsonl").unlink()
    cut(unit.merged, 12)
    with pytest.raises(DataError, match=r"finished with 20 rows and now has 12: 8 are missing\.") as error:
        check_complete(unit.merged)
    assert "To generate them: ns generate --again" in str(error.value)


@pytest.mark.parametrize("bad", [b"no JSON\n", b'{"id": "\xff"}\n', b"[]\n", b'{"id": [1]}\n'])
def test_a_line_that_cannot_be_read_is_no_row_and_those_behind_it_are(unit: Unit, bad: bytes) -> None:
    lines = unit.merged.read_bytes().splitlines(keepends=True)
    unit.merged.write_bytes(b"".join([*lines[:2], bad, *lines[3:6], *lines[7:19]]))
    with pytest.raises(DataError, match=r"2 are missing: rows 3, 7, 20 of the input"):
        check_complete(unit.merged)


def test_a_run_file_that_cannot_be_read_tells_no_command(unit: Unit) -> None:
    for folder in list(unit.merged.parents)[:2]:
        (folder / RUN_FILE).write_text("{")
    cut(unit.merged, 12)
    with pytest.raises(DataError, match=r"8 are missing.*run the command that wrote this file again"):
        check_complete(unit.merged)


def test_only_bytes_that_differ_are_told_of(unit: Unit) -> None:
    data = bytearray(unit.merged.read_bytes())
    lines = unit.merged.read_bytes().splitlines(keepends=True)
    begins = sum(map(len, lines[:7]))
    for at in (begins + 5, sum(map(len, lines[:15])) + 5):
        data[at] ^= 1
    unit.merged.write_bytes(data)
    told = f"up to {len(lines[7]) + len(lines[15]):,} bytes from byte {begins:,} on differ"
    assert [(part.start, part.stop) for part in damage_of(unit.merged)] == [
        (begins, begins + len(lines[7])),
        (sum(map(len, lines[:15])), sum(map(len, lines[:16]))),
    ]
    with pytest.raises(DataError) as error:
        check_complete(unit.merged)
    assert told in str(error.value)
    assert "To generate the rows in them again: ns generate --again" in str(error.value)


def test_what_is_taken_over_is_counted_and_what_has_changed_is_set_aside(unit: Unit) -> None:
    data = bytearray(unit.merged.read_bytes())
    lines = unit.merged.read_bytes().splitlines(keepends=True)
    data[sum(map(len, lines[:7])) + 9] ^= 1
    unit.merged.write_bytes(data)
    for path in (unit.paths.grades, unit.paths.grades_index, unit.paths.index):
        path.touch()
    source = scan_rows(Path(unit.config.input_file))
    assert take_over(unit, source, range(ROWS), frozenset({"outcome"}), "0123abcd") == ROWS - 1
    kept = records(unit.paths.log)
    assert [row["_async_position"] for row in kept] == [p for p in range(ROWS) if p != 7]
    assert {row["_async_settings"] for row in kept} == {"0123abcd"}
    assert not any("outcome" in row for row in kept)
    assert unit.paths.damaged.read_bytes() == bytes(data[sum(map(len, lines[:7])) : sum(map(len, lines[:8]))])
    for path in (unit.paths.grades, unit.paths.grades_index, unit.paths.index, unit.paths.done):
        assert not path.exists()


def test_where_nothing_is_left_there_is_no_log(unit: Unit) -> None:
    unit.merged.write_text("no JSON\n" * ROWS)
    source = scan_rows(Path(unit.config.input_file))
    assert take_over(unit, source, range(ROWS), frozenset(), "0123abcd") == 0
    assert (unit.paths.log.exists(), unit.paths.output.exists(), unit.paths.done.exists()) == (False, False, False)


def test_damaged_bytes_that_cannot_be_set_aside_stop_the_run(unit: Unit) -> None:
    data = bytearray(unit.merged.read_bytes())
    data[9] ^= 1
    unit.merged.write_bytes(data)
    unit.paths.damaged.mkdir()
    with pytest.raises(StorageError, match=r"output\.jsonl-damaged"):
        take_over(unit, scan_rows(Path(unit.config.input_file)), range(ROWS), frozenset(), "0123abcd")
    assert unit.merged.read_bytes() == data


@pytest.mark.parametrize("marked", ["merged", "unit", "no marker", "no file"])
def test_a_unit_is_finished_where_a_marker_and_its_file_say_so(tmp_path: Path, marked: str) -> None:
    unit = make_unit(tmp_path, "", num_chunks=2, chunk_id=1)
    output = unit.merged if marked == "merged" else unit.paths.output
    output.parent.mkdir()
    if marked != "no file":
        output.touch()
    if marked != "no marker":
        output.with_name(f"{output.name}.done").touch()
    assert is_marked(unit) is (marked in ("merged", "unit"))
