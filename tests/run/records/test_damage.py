# SPDX-License-Identifier: Apache-2.0
"""Files of a run that a broken disk has changed: what can be read counts, the rest is made again."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest
from tests.conftest import FakeServerFactory
from tests.run.support import changed, make_unit, records, run, run_and_listen, write_input
from tests.run.toy import NAME
from tests.server import Answer, Fault, Script

from newskills.base.errors import DataError
from newskills.run.planning.spec import Unit
from newskills.run.records.completeness import check_complete

ECHO = Script(answer=Answer(kind="echo"))
BLOCK = 512


def begun(folder: Path, start: FakeServerFactory, units: int = 1, **settings: object) -> list[Unit]:
    """Units of 60 rows, of which 20 are done."""
    write_input(folder, 60)
    made = [
        make_unit(folder, "", output_file=str(folder / "out" / f"output-rs{k}.jsonl"), **settings)
        for k in range(units)
    ]
    for unit in made:
        stops = Script(answer=Answer(kind="echo"), faults=(Fault(kind="status", status=400, after=20),))
        assert run(at(unit, start(stops).base_url, max_concurrent_requests=1)).exit_code == 1
    return made


def at(unit: Unit, base_url: str, **settings: object) -> Unit:
    """The unit, asking another server."""
    return changed(unit, server=msgspec.structs.replace(unit.config.server, base_url=base_url), **settings)


def zero(path: Path, at: int, size: int = BLOCK) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(bytes(size))


def test_a_zero_block_in_a_log_costs_what_stood_there(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(ECHO)
    (unit,) = begun(tmp_path, fake_server, eval_type=NAME)
    before = unit.paths.log.read_bytes()
    done = before.count(b"\n")
    zero(unit.paths.log, 3 * BLOCK)
    touched = before[: 4 * BLOCK].count(b"\n") - before[: 3 * BLOCK].count(b"\n") + 1
    result, said = run_and_listen(at(unit, server.base_url))
    assert (result.exit_code, result.units[0].kept) == (0, done - touched)
    assert len(server.records) == 60 - done + touched
    assert "output-rs0.jsonl-damaged; the rows in them are generated again" in said
    assert unit.paths.damaged.read_bytes().count(b"\0") == BLOCK
    assert [r["generation"] for r in records(unit.merged)] == [f"What is {i} + 1?" for i in range(60)]
    assert all("_async" not in name for record in records(unit.merged) for name in record)


def test_one_damaged_file_does_not_block_the_others(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(ECHO)
    units = begun(tmp_path, fake_server, 3)
    zero(units[0].paths.log, 0, units[0].paths.log.stat().st_size)
    zero(units[1].paths.state, 0)
    result = run(*(at(unit, server.base_url) for unit in units))
    assert (result.exit_code, [unit.kept for unit in result.units]) == (0, [0, 20, 20])
    assert units[1].paths.state.with_name("output-rs1.jsonl.run.json-damaged").exists()


def test_a_lost_state_is_made_anew_from_records_with_the_same_settings(
    tmp_path: Path, fake_server: FakeServerFactory
) -> None:
    server = fake_server(ECHO)
    (unit,) = begun(tmp_path, fake_server, eval_type=NAME)
    unit.paths.state.unlink()
    with pytest.raises(DataError, match=r"other settings; changed: unknown \(output-rs0.jsonl.run.json is lost"):
        run(at(unit, server.base_url, generation_key="answer"))
    assert server.records == []
    result, said = run_and_listen(at(unit, server.base_url))
    assert (result.exit_code, result.units[0].kept, len(server.records)) == (0, 20, 40)
    assert "20 rows of output-rs0.jsonl-async match these settings" in said
    assert result.units[0].output_tokens == sum(r["num_generated_tokens"] for r in records(unit.merged))


def test_a_log_without_settings_is_not_ours(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(ECHO)
    (unit,) = begun(tmp_path, fake_server)
    unit.paths.log.write_bytes(unit.paths.log.read_bytes().replace(b"_async_settings", b"_other_settings"))
    unit.paths.state.unlink()
    with pytest.raises(DataError, match="another program"):
        run(at(unit, server.base_url))


def test_damaged_verdicts_and_cached_replies_are_made_again(
    tmp_path: Path, fake_server: FakeServerFactory
) -> None:
    server = fake_server(ECHO)
    (unit,) = begun(tmp_path, fake_server, eval_type=NAME, enable_litellm_cache=True)
    unit.paths.grades.write_bytes(bytes(BLOCK) + b"\n")
    zero(unit.paths.replies, BLOCK)
    assert run(at(unit, server.base_url)).exit_code == 0
    assert all(record["outcome"] in ("correct", "wrong") for record in records(unit.merged))


def test_what_killed_runs_were_writing_is_removed(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(ECHO)
    (unit,) = begun(tmp_path, fake_server)
    left = [unit.merged.with_name(f".output-rs0.jsonl{kind}.4194999.tmp") for kind in (".run.json", "", "-async")]
    left.append(tmp_path / ".run.json.4194999.tmp")
    other = unit.merged.with_name(".notes.txt.4194999.tmp")
    for path in (*left, other):
        path.write_text("{")
    assert run(at(unit, server.base_url)).exit_code == 0
    assert [path.name for path in (*left, other) if path.exists()] == [other.name]


def scribble(path: Path, places: list[int]) -> None:
    """A letter of the text at each place becomes another one: what is read is still JSON."""
    data = bytearray(path.read_bytes())
    for place in places:
        while not chr(data[place]).isdigit():
            place += 1
        data[place] = ord("0") + (data[place] - ord("0") + 1) % 10
    path.write_bytes(data)


def test_a_changed_digit_in_an_open_log_is_noticed(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(ECHO)
    (unit,) = begun(tmp_path, fake_server, eval_type=NAME)
    text = unit.paths.log.read_bytes()
    scribble(unit.paths.log, [text.index(b"What is 3 +"), text.index(b"What is 11 +")])
    assert run(at(unit, server.base_url)).exit_code == 0
    assert {record.prompt for record in server.records} >= {"What is 3 + 1?", "What is 11 + 1?"}
    assert [r["generation"] for r in records(unit.merged)] == [f"What is {i} + 1?" for i in range(60)]


@pytest.mark.parametrize("kind", ["zeros", "digit"])
def test_a_finished_file_that_has_changed_is_not_believed(
    tmp_path: Path, fake_server: FakeServerFactory, kind: str
) -> None:
    write_input(tmp_path, 200, note="x" * 100)
    server = fake_server(ECHO)
    unit = make_unit(tmp_path, server.base_url, eval_type=NAME)
    assert run(unit).exit_code == 0
    whole = unit.paths.output.read_bytes()
    if kind == "zeros":
        half = len(whole) // 2
        zero(unit.paths.output, half, len(whole) - half)
    else:
        scribble(unit.paths.output, [whole.index(b"What is 150 +")])
    with pytest.raises(DataError, match="differ from their checksums") as refused:
        check_complete(unit.paths.output)
    assert "To generate the rows in them again" in str(refused.value)
    asked = len(server.records)
    result, said = run_and_listen(unit)
    assert (result.exit_code, result.units[0].status) == (0, "done")
    again = {record.prompt for record in list(server.records)[asked:]}
    assert "What is 150 + 1?" in again
    assert "What is 5 + 1?" not in again
    assert "rows were lost; they are generated again" in said
    assert [r["generation"] for r in records(unit.paths.output)] == [f"What is {i} + 1?" for i in range(200)]
    assert unit.paths.damaged.exists()


def test_a_finished_file_that_was_copied_is_believed(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    write_input(tmp_path, 20)
    server = fake_server(ECHO)
    unit = make_unit(tmp_path, server.base_url)
    assert run(unit).exit_code == 0
    os.utime(unit.paths.output, (1, 1))
    check_complete(unit.paths.output)
    assert run(unit).units[0].kept == 20
    assert len(server.records) == 20
