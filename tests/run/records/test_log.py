# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import asyncio
import resource
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from newskills.base.aio import run
from newskills.base.errors import StorageError
from newskills.base.records import Row, Score
from newskills.base.store import encode_line, write_rows
from newskills.run.records.log import (
    Damage,
    Disk,
    GradeLine,
    GradeReader,
    GroupLog,
    LogReader,
    content_key,
    decode_record,
    log_line,
    log_lines,
    log_records,
    restore_log,
    set_aside,
)
from newskills.run.records.log_index import LogIndex, RecordKeys

POSITION = "_async_position"


def write_log(path: Path, positions: list[int]) -> None:
    path.write_bytes(b"".join(log_line({"id": f"r{p}", "g": "x"}, POSITION, p, "00ff") for p in positions))


def test_lines_arrive_in_order_at_the_offsets_that_were_told(tmp_path: Path) -> None:
    async def main() -> list[int]:
        with Disk() as disk:
            log = GroupLog(tmp_path / "log", disk, lambda error: None)
            offsets = []
            for n in range(500):
                offsets.append(log.append(encode_line({"n": n, "pad": "x" * (n % 50)})))
                if n % 40 == 0:
                    await asyncio.sleep(0.002)
            await log.flush()
            assert (tmp_path / "log").stat().st_size > offsets[-1]
            await log.close()
            await log.close()
        return offsets

    offsets = run(main)
    assert [offset for offset, _ in log_lines(tmp_path / "log")] == offsets
    with LogReader(tmp_path / "log") as reader:
        assert b'"n":77,' in reader.line(offsets[77])


def test_a_line_is_with_the_kernel_soon_without_being_asked(tmp_path: Path) -> None:
    async def main() -> None:
        with Disk() as disk:
            log = GroupLog(tmp_path / "log", disk, lambda error: None)
            log.append(b"{}\n")
            for _ in range(100):
                await asyncio.sleep(0.01)
                if (tmp_path / "log").stat().st_size:
                    break
            assert (tmp_path / "log").read_bytes() == b"{}\n"
            await log.close()

    run(main)


def test_a_disk_that_refuses_is_told_once(tmp_path: Path) -> None:
    async def main() -> list[StorageError]:
        told: list[StorageError] = []
        with Disk() as disk:
            log = GroupLog(tmp_path / "log", disk, told.append)
            for _ in range(3):
                log.append(b"{}\n" * 30)
                await log.flush()
            await log.close()
        return told

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))  # Python leaves SIGXFSZ ignored
    try:
        told = run(main)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert ["cannot write" in str(error) for error in told] == [True]
    assert (tmp_path / "log").read_bytes() == b"{}\n" * 30


def test_the_index_knows_what_is_there(tmp_path: Path) -> None:
    write_log(tmp_path / "log", [2, 0, 3])
    with (tmp_path / "log").open("ab") as file:
        file.write(b'{"_async_position": 1, "torn')
    index = LogIndex(5)
    index.load(tmp_path / "log", POSITION)
    assert [offset >= 0 for offset in index.offsets] == [True, False, True, True, False]
    assert (index.done, list(index.ungraded_positions())) == (3, [0, 2, 3])
    keys = RecordKeys(tmp_path / "log", POSITION)
    assert keys.key(index.offsets[2]) == content_key("r2", "00ff")
    keys.close()
    with LogReader(tmp_path / "log") as reader:
        assert decode_record(reader.line(index.offsets[3]), POSITION) == {"id": "r3", "g": "x"}


def test_a_verdict_on_another_record_does_not_count(tmp_path: Path) -> None:
    write_log(tmp_path / "log", [0, 1])
    index = LogIndex(3)
    index.load(tmp_path / "log", POSITION)
    score = Score(outcome="correct", fields={}, grader="g")
    grades = [
        GradeLine(position=0, sum=index.sums[0], score=score),
        GradeLine(position=1, sum=index.sums[1] ^ 1, score=score),
        GradeLine(position=2, sum=0, score=score),
        GradeLine(position=9, sum=0, score=score),
    ]
    (tmp_path / "grades").write_bytes(b"".join(map(encode_line, grades)))
    index.load_grades(tmp_path / "grades")
    assert list(index.ungraded_positions()) == [1]
    assert index.grade_at(2) < 0


WHOLE = log_line({"id": "r1", "g": "€" * 9}, POSITION, 1, "00ff", "5e7")


@pytest.mark.parametrize(
    "bad",
    [
        b"garbage\n",
        b'{"a": 1}\n',
        bytes(4096) + b"\n",
        log_line({"id": 1}, POSITION, 7, ""),
        log_line({"id": 1}, POSITION, -1, ""),
        WHOLE.replace("€€".encode(), b"\xe2\x82" * 2),
        WHOLE.replace("€€".encode(), bytes(6)),
        WHOLE[:40] + bytes(512) + WHOLE[20:],
    ],
)
def test_a_damaged_line_is_set_aside_and_the_others_count(tmp_path: Path, bad: bytes) -> None:
    log, aside = tmp_path / "log", tmp_path / "aside"
    log.write_bytes(WHOLE + bad + log_line({"id": "r2", "g": "x"}, POSITION, 2, "00ff", "5e7"))
    index = LogIndex(3)
    damaged = index.load(log, POSITION)
    assert ([line for _, line in damaged], index.done, index.settings) == ([bad], 2, {"5e7"})
    set_aside(log, damaged, aside)
    assert aside.read_bytes() == bad
    again = LogIndex(3)
    assert again.load(log, POSITION) == []
    assert (again.offsets, again.sums) == (index.offsets, index.sums)
    with LogReader(log) as reader:
        assert decode_record(reader.line(again.offsets[1]), POSITION) == {"id": "r1", "g": "€" * 9}


def test_damaged_verdicts_do_not_count(tmp_path: Path) -> None:
    write_log(tmp_path / "log", [0, 1])
    index = LogIndex(2)
    index.load(tmp_path / "log", POSITION)
    score = Score(outcome="correct", fields={}, grader="g")
    good = encode_line(GradeLine(position=1, sum=index.sums[1], score=score))
    (tmp_path / "grades").write_bytes(bytes(30) + b"\n" + good)
    assert len(index.load_grades(tmp_path / "grades")) == 1
    assert list(index.ungraded_positions()) == [0]


@settings(max_examples=50)
@given(cut=st.integers(0, 400))
def test_any_torn_log_gives_the_whole_lines_before_the_tear(
    cut: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("torn")
    write_log(folder / "log", list(range(6)))
    content = (folder / "log").read_bytes()[:cut]
    (folder / "log").write_bytes(content)
    index = LogIndex(6)
    index.load(folder / "log", POSITION)
    assert index.done == content.count(b"\n")


def test_lines_are_read_from_a_place_on_without_blank_and_torn_ones(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b'{"a":1}\n  \n{"b":2}\n\n{"c"')
    assert list(log_lines(tmp_path / "log")) == [(0, b'{"a":1}\n'), (11, b'{"b":2}\n')]
    assert list(log_lines(tmp_path / "log", 8)) == [(11, b'{"b":2}\n')]
    assert list(log_lines(tmp_path / "absent")) == []
    assert list(log_records(tmp_path / "log")) == [{"a": 1}, {"b": 2}]
    assert list(log_records(tmp_path / "log", lambda offset, line: offset == 0 and line == b'{"a":1}\n')) == [
        {"b": 2}
    ]


def test_what_a_record_asked_is_known_by_64_bits_of_both_parts() -> None:
    assert content_key("r1", "00ff") == 0x51C05202B3D3A9C3
    assert len({content_key("a", "b"), content_key("ab", ""), content_key("", "ab"), content_key("b", "a")}) == 4
    assert content_key("\ud800", "") == content_key("?", "")


def test_a_finished_file_becomes_a_log_without_its_verdicts(tmp_path: Path) -> None:
    """A failed generation keeps its outcome; what lacks an answer is left out, and keeps its place."""
    lost = {"outcome": "unscored", "outcome_cause": "timeout"}
    rows: list[Row] = [
        {"id": "r0", "outcome": "correct", "outcome_cause": None, "why": "x"},
        {"id": "r1", "todo": 1, "outcome": "correct"},
        {"id": "r2", **lost, "error": "late"},
        {"id": "r3", **lost},
        {"id": "r4", "outcome": "wrong", "error": "of the model"},
    ]
    write_rows(tmp_path / "output", rows)
    drop = frozenset({"outcome", "outcome_cause", "why"})
    restore_log(tmp_path / "output", tmp_path / "log", POSITION, drop, "todo", settings="0123abcd")
    read = list(log_lines(tmp_path / "log"))
    assert [decode_record(line, POSITION) for _, line in read] == [
        {"id": "r0"},
        {"id": "r2", **lost, "error": "late"},
        {"id": "r3"},
        {"id": "r4", "error": "of the model"},
    ]
    index = LogIndex(5)
    assert index.load(tmp_path / "log", POSITION) == []
    assert ([at >= 0 for at in index.offsets], index.settings) == ([True, False, True, True, True], {"0123abcd"})
    restore_log(tmp_path / "output", tmp_path / "log", POSITION, drop, settings="0123abcd")
    assert len(list(log_lines(tmp_path / "log"))) == 5


@pytest.mark.parametrize("refused", ["log", "aside"])
def test_damage_that_cannot_be_set_aside_stops_the_run(tmp_path: Path, refused: str) -> None:
    (tmp_path / refused).mkdir()
    with pytest.raises(StorageError, match="log"):
        set_aside(tmp_path / "log", [Damage(0, b"bad\n")], tmp_path / "aside")


@pytest.mark.parametrize(("position", "checksum", "offset"), [(2, 7, 0), (1, 8, 0), (1, 7, 1), (1, 7, 999)])
def test_a_verdict_is_read_where_it_is_on_that_very_record(
    tmp_path: Path, position: int, checksum: int, offset: int
) -> None:
    score = Score(outcome="correct", fields={"a": 1}, grader="g")
    (tmp_path / "grades").write_bytes(encode_line(GradeLine(position=1, sum=7, score=score)))
    with GradeReader(tmp_path / "grades") as reader:
        assert reader.score(0, 1, 7) == score
        assert reader.score(offset, position, checksum) is None
