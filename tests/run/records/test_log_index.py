# SPDX-License-Identifier: Apache-2.0
"""What is kept beside large inputs and long logs: it saves reading, and never decides."""

from __future__ import annotations

import os
import random
import zlib
from array import array
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import FakeServerFactory
from tests.run.records.test_damage import at, zero
from tests.run.support import make_unit, records, run, run_and_listen, write_input
from tests.run.toy import NAME
from tests.server import Answer, Fault, Script

from newskills.base.errors import DataError, StorageError
from newskills.base.records import Score
from newskills.base.store import encode_line
from newskills.run.engine.unit import UnitRun
from newskills.run.records.input_map import keep_input, read_input
from newskills.run.records.log import GradeLine, content_key, log_line
from newskills.run.records.log_index import GradesFile, IndexFile, LogIndex, RecordKeys
from newskills.run.records.rows import Input, scan_rows

POSITION, SETTINGS = "_async_position", "0123abcd"
ROWS = 900
ECHO = Script(answer=Answer(kind="echo"))


def line(position: int) -> bytes:
    own = {"outcome": "unscored"} if position % 7 == 3 else {}
    return log_line(
        {"id": f"r{position}", "g": "x" * (position % 50), **own}, POSITION, position, "00ff", SETTINGS
    )


def graded(position: int) -> bytes:
    """Every fifth verdict is about another record, every sixth one is the sandbox's fault."""
    cause, other = ("sandbox" if position % 6 == 1 else None), position % 5 == 2
    score = Score(outcome="correct", fields={"g": "y" * (position % 9)}, grader="g", cause=cause)
    return encode_line(GradeLine(position=position, sum=zlib.crc32(line(position)) ^ other, score=score))


def loaded(folder: Path, *, kept: bool) -> LogIndex:
    index = LogIndex(40)
    files = (IndexFile(folder / "index", SETTINGS), GradesFile(folder / "grades-index", SETTINGS))
    assert index.load(folder / "log", POSITION, files[0] if kept else None) == []
    assert index.load_grades(folder / "grades", files[1] if kept else None) == []
    for file in files:
        file.close()
    return index


def same(index: LogIndex, other: LogIndex) -> bool:
    mine, theirs = (
        (found.offsets, found.sums, found.done, list(map(found.grade_at, range(found.rows))))
        for found in (index, other)
    )
    return mine == theirs


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    shares=st.tuples(*[st.floats(0, 1)] * 4),
    more=st.integers(0, 5),
)
def test_what_is_kept_tells_the_same_as_the_log(
    seed: int, shares: tuple[float, ...], more: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A power cut leaves any beginning of both; a run goes on, and is cut again."""
    folder = tmp_path_factory.mktemp("kept")
    order = random.Random(seed).sample(range(40), 40)
    (folder / "log").write_bytes(b"".join(map(line, order[:30])))
    (folder / "grades").write_bytes(b"".join(map(graded, order[:25])))
    loaded(folder, kept=True)
    for name, share in zip(("log", "index", "grades", "grades-index"), shares, strict=True):
        os.truncate(folder / name, int(share * (folder / name).stat().st_size))
    for name in ("log", "grades"):
        whole = (folder / name).read_bytes().rpartition(b"\n")
        (folder / name).write_bytes(b"".join(whole[:2]))
    assert same(loaded(folder, kept=True), loaded(folder, kept=False))
    for name, made in (("log", line), ("grades", graded)):
        with (folder / name).open("ab") as file:
            file.writelines(map(made, order[30 : 30 + more]))
    assert same(loaded(folder, kept=True), loaded(folder, kept=False))


@pytest.mark.parametrize("head", [b"", b"ns-log1\nffffffff", b"something else that is long enough"])
def test_what_another_run_has_kept_does_not_count(tmp_path: Path, head: bytes) -> None:
    (tmp_path / "log").write_bytes(b"".join(map(line, range(20))))
    loaded(tmp_path, kept=True)
    entries = (tmp_path / "index").read_bytes()[16:]
    (tmp_path / "index").write_bytes(head + entries)
    (tmp_path / "log").write_bytes(b"".join(map(line, range(19, 4, -1))))
    assert same(loaded(tmp_path, kept=True), loaded(tmp_path, kept=False))
    (tmp_path / "log").write_bytes(b"".join(map(line, range(3, 9))))
    assert same(loaded(tmp_path, kept=True), loaded(tmp_path, kept=False))


def test_a_log_that_is_not_read_again(
    tmp_path: Path, fake_server: FakeServerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The resume asks what is missing; damage in what it did not read is found in the end, and costs one more run."""
    monkeypatch.setattr("newskills.run.engine.preflight.MIN_KEPT_ROWS", 1)
    monkeypatch.setattr("newskills.run.engine.unit.CHECKED_ROWS", 2)
    write_input(tmp_path, ROWS)
    stops = Script(answer=Answer(kind="echo"), faults=(Fault(kind="status", status=400, after=600),))
    unit = make_unit(tmp_path, "")
    assert run(at(unit, fake_server(stops).base_url)).exit_code == 1
    log = unit.paths.log.read_bytes()
    done = log.count(b"\n")
    zero(unit.paths.log, len(log) // 2, 40)
    server = fake_server(ECHO)
    result, said = run_and_listen(at(unit, server.base_url))
    assert (result.exit_code, result.units[0].kept, len(server.records)) == (1, done, ROWS - done)
    assert "changed since row" in result.message
    assert "damaged" not in said
    result, said = run_and_listen(at(unit, server.base_url))
    assert result.exit_code == 0
    assert "moved to output.jsonl-damaged" in said
    assert [row["generation"] for row in records(unit.merged)] == [f"What is {i} + 1?" for i in range(ROWS)]
    assert not unit.paths.index.exists()


def test_verdicts_that_are_not_read_again(
    tmp_path: Path, fake_server: FakeServerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Damage in one of them is found in the end; the next run makes it again, and asks the model nothing."""
    monkeypatch.setattr("newskills.run.engine.preflight.MIN_KEPT_ROWS", 1)
    write_input(tmp_path, 60)
    server = fake_server(ECHO)
    unit = make_unit(tmp_path, server.base_url, eval_type=NAME)

    def full(*_: object) -> None:
        raise StorageError("The disk is full.")

    with monkeypatch.context() as disk:
        disk.setattr(UnitRun, "_write_final", full)
        assert run(unit).exit_code != 0
    zero(unit.paths.grades, unit.paths.grades.stat().st_size // 2, 20)
    result = run(unit)
    assert "output.jsonl-grades changed since row" in result.message
    result, told = run_and_listen(unit)
    assert (result.exit_code, len(server.records)) == (0, 60)
    assert "moved to output.jsonl-damaged" in told
    assert all(row["outcome"] in ("correct", "wrong") for row in records(unit.merged))
    assert not unit.paths.grades_index.exists()


def test_a_large_input_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("newskills.run.records.input_map.MIN_MAPPED_ROWS", 1)
    path = write_input(tmp_path, ROWS)
    path.write_text(path.read_text().replace("\n", "\n\n", 300))
    keep_input(read_input(path, tmp_path), tmp_path)
    assert not list(tmp_path.glob(".input-*")), "it has changed just now, and might again"
    monkeypatch.setattr("newskills.run.records.input_map._SETTLED_SECONDS", -1.0)
    first = read_input(path, tmp_path)
    keep_input(first, tmp_path)
    monkeypatch.setattr("newskills.run.records.input_map.scan_rows", None)
    again = read_input(path, tmp_path)
    assert (again.rows, again.digest, again.distinct, again.marks) == (ROWS, first.digest, True, first.marks)
    parts = [range(3), range(255, 259), range(700, 701)]
    lines = list(again.lines(range(100, ROWS), parts=parts))
    assert [(row.position, row.at) for row in lines] == [(p, 100 + p) for part in parts for p in part]
    assert [again.sample(row).row["expected_answer"] for row in lines] == [str(row.at + 1) for row in lines]
    assert lines[0].place == 201
    assert lines[-1].place == 801 + 300


def test_an_input_that_changed_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one of the same size whose time was set back."""
    monkeypatch.setattr("newskills.run.records.input_map.MIN_MAPPED_ROWS", 1)
    monkeypatch.setattr("newskills.run.records.input_map._SETTLED_SECONDS", -1.0)
    path = write_input(tmp_path, 20)
    times = path.stat()
    source = read_input(path, tmp_path)
    keep_input(source, tmp_path)
    digest = source.digest
    path.write_text(path.read_text().replace("What", "Whom"))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert read_input(path, tmp_path).digest == scan_rows(path).digest != digest
    path.unlink()
    with pytest.raises(DataError, match="There is no file"):
        read_input(path, tmp_path)


def entries(*places: tuple[int, int, int]) -> array[int]:
    """(position, offset, checksum) as they stand in the files."""
    return array(
        "Q", [word for position, offset, checksum in places for word in (position | checksum << 32, offset)]
    )


OWN = 1 << 63
"""Beside an offset: the record has its outcome already."""


@pytest.mark.parametrize("bad", [(1, 100, 7), (1, 101, 7), (3, 20, 7), (4, 20, 7)])
def test_behind_an_entry_that_cannot_be_right_nothing_counts(bad: tuple[int, int, int]) -> None:
    """Its line begins behind the end of the log, of 100 bytes here, or its row behind the last one."""
    index = LogIndex(3)
    index.add(2, 5, b"an older record", gradable=True)
    assert index.add_entries(entries((2, 0, 2**32 - 1), (0, 99 | OWN, 8), bad, (1, 30, 9)), 100) == 2
    assert (list(index.offsets), list(index.sums), index.done) == ([99, -1, 0], [8, 0, 2**32 - 1], 2)
    assert [index.grade_at(p) for p in range(3)] == [-2, -1, -1]
    good = entries((2, 50, 2**32 - 1), (0, 99, 1), bad, (0, 60, 8))
    assert index.add_grade_entries(good, 100) == 2, "the second one is about another record"
    assert [index.grade_at(p) for p in range(3)] == [-2, -1, 50]
    assert index.add_grade_entries(entries((1, 60, 0)), 100) == 1
    assert index.grade_at(1) == -1, "there is no record of that row"


def test_without_a_grader_no_verdict_is_known() -> None:
    index = LogIndex(2, graded=False)
    index.add(0, 0, b"x", gradable=False)
    index.add_grade(0, 7)
    assert index.add_entries(entries((1, 5, 3)), 9) == 1
    assert index.add_grade_entries(entries((1, 5, 3)), 9) == 1
    assert [index.grade_at(p) for p in range(2)] == [-1, -1]
    assert (index.done, list(index.ungraded_positions())) == (2, [0, 1])


def test_a_record_that_came_again_counts_once_and_the_later_one_decides() -> None:
    index = LogIndex(2)
    for offset, line in ((0, b"a"), (10, b"b")):
        index.add(1, offset, line, gradable=True)
    assert (index.done, index.offsets[1], index.sums[1]) == (1, 10, zlib.crc32(b"b"))
    index.clear()
    assert (index.done, list(index.offsets), list(index.sums), index.grade_at(1)) == (0, [-1, -1], [0, 0], -1)


@pytest.mark.parametrize("missing", range(5))
def test_all_rows_of_a_range_are_done_where_none_is_missing(missing: int) -> None:
    index = LogIndex(5)
    for position in set(range(5)) - {missing}:
        index.add(position, 0, b"x", gradable=True)
    for first in range(6):
        for last in range(first, 6):
            assert index.all_done(first, last) is not (first <= missing < last)


def test_forgotten_verdicts_leave_what_records_carry_themselves() -> None:
    index = LogIndex(4)
    for position, gradable in enumerate((True, True, False, False)):
        index.add(position, 0, b"x", gradable=gradable)
    index.add_grade(0, 0)
    index.add_grade(1, 77)
    index.clear_grades()
    assert [index.grade_at(p) for p in range(4)] == [-1, -1, -2, -2]


def test_files_whose_last_entry_is_wrong_tell_nothing(tmp_path: Path) -> None:
    """Of verdicts: those of before are forgotten, and read from the log."""
    (tmp_path / "log").write_bytes(b"".join(map(line, range(20))))
    (tmp_path / "grades").write_bytes(b"".join(map(graded, range(20))))
    loaded(tmp_path, kept=True)
    whole = (tmp_path / "grades-index").read_bytes()
    first = len(graded(0))
    (tmp_path / "grades").write_bytes(b"".join(map(graded, range(19, -1, -1))))
    assert (tmp_path / "grades").stat().st_size > first
    assert same(loaded(tmp_path, kept=True), loaded(tmp_path, kept=False))
    assert (tmp_path / "grades-index").read_bytes() != whole


@pytest.mark.parametrize("kind", ["a folder in its place", "a full disk"])
def test_an_index_that_cannot_be_written_is_gone_and_no_harm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    (tmp_path / "log").write_bytes(b"".join(map(line, range(20))))
    if kind == "a folder in its place":
        (tmp_path / "index").mkdir()
    kept = IndexFile(tmp_path / "index", SETTINGS)
    index = LogIndex(40)
    assert kept.load_into(index, tmp_path / "log") == 0
    if kind == "a full disk":
        kept.close()
        full = open("/dev/full", "wb", buffering=0)  # noqa: SIM115 - `drop` closes it
        monkeypatch.setattr(kept, "_file", full)
        kept.add(0, 0, 0)
        assert full.closed
        assert not (tmp_path / "index").exists()
    kept.add(1, 1, 1)
    kept.close()
    kept.drop()


def test_keys_of_records_and_of_none(tmp_path: Path) -> None:
    lines = [line(0), log_line({"id": 1}, POSITION, 1, ""), b"garbage\n"]
    (tmp_path / "log").write_bytes(b"".join(lines))
    keys = RecordKeys(tmp_path / "log", POSITION)
    assert keys.key(0) == content_key("r0", "00ff")
    assert [keys.key(len(b"".join(lines[:k]))) for k in (1, 2)] == [0, 0]
    keys.close()


def test_an_input_is_kept_from_two_hundred_thousand_rows_on(tmp_path: Path) -> None:
    def kept(**changed: Any) -> bool:
        source = Input(
            path=tmp_path / "in", rows=200_000, digest="d", distinct=True, version=(1,), marks=array("Q", [0])
        )
        keep_input(msgspec.structs.replace(source, **changed), tmp_path)
        files = list(tmp_path.glob(".input-*.map"))
        for file in files:
            file.unlink()
        return bool(files)

    assert kept()
    assert not kept(rows=199_999)
    assert not kept(version=())
    assert not kept(distinct=False)
    assert not kept(marks=array("Q"))
    assert not list(tmp_path.iterdir())


def test_what_was_kept_on_a_machine_with_another_order_of_bytes_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("newskills.run.records.input_map.MIN_MAPPED_ROWS", 1)
    monkeypatch.setattr("newskills.run.records.input_map._SETTLED_SECONDS", -1.0)
    path = write_input(tmp_path, 20)
    keep_input(read_input(path, tmp_path), tmp_path)
    monkeypatch.setattr(
        "newskills.run.records.input_map.scan_rows", lambda path, distinct: pytest.fail("it is read")
    )
    assert read_input(path, tmp_path).rows == 20
    monkeypatch.setattr("sys.byteorder", "other")
    with pytest.raises(pytest.fail.Exception):
        read_input(path, tmp_path)


@pytest.mark.parametrize(("age", "trusted"), [(2.0, False), (3.0, False), (3.5, True)])
def test_a_file_is_trusted_three_seconds_after_its_last_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, age: float, trusted: bool
) -> None:
    path = write_input(tmp_path, 3)
    changed = 1 << 30
    version = (1, 2, (changed - 60) * 10**9, changed * 10**9)
    monkeypatch.setattr("newskills.run.records.input_map._file_version", lambda path: version)
    monkeypatch.setattr("newskills.run.records.input_map.time.time", lambda: changed + age)
    assert bool(read_input(path, tmp_path).version) is trusted
    assert read_input(path, None).version == ()
