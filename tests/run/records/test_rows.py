# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.base.reading.row_forms import FORMS

from newskills.base.errors import DataError
from newskills.base.store import file_digest
from newskills.run.records.rows import chunk_bounds, content_id, scan_rows


def write(folder: Path, *rows: object) -> Path:
    path = folder / "in.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def ids(path: Path) -> list[str]:
    found = scan_rows(path)
    return [sample.id for sample in found.samples(range(found.rows))]


def test_own_ids_are_kept(tmp_path: Path) -> None:
    assert ids(write(tmp_path, {"id": "a"}, {"id": 7}, {"id": "c"})) == ["a", "7", "c"]


def test_rows_without_id_are_known_by_content_whatever_the_order_of_keys(tmp_path: Path) -> None:
    first, second = ids(write(tmp_path, {"a": 1, "b": 2}, {"a": 2}))
    assert first == content_id({"b": 2, "a": 1})
    assert first != second


def test_equal_rows_are_numbered(tmp_path: Path) -> None:
    first, second, third, other = ids(write(tmp_path, {"a": 1}, {"a": 1}, {"a": 1}, {"a": 2}))
    assert (second, third) == (f"{first}-2", f"{first}-3")
    assert "-" not in other


def test_ids_that_are_not_unique_give_way_to_content(tmp_path: Path) -> None:
    path = write(tmp_path, {"id": "x", "a": 1}, {"id": "x", "a": 2}, {"id": "y"}, {"id": True})
    found = scan_rows(path)
    samples = list(found.samples(range(found.rows)))
    assert len({sample.id for sample in samples}) == 4
    assert samples[0].id == content_id({"id": "x", "a": 1})
    assert samples[0].row["original_id"] == "x"
    assert samples[2].id == "y"


def test_blank_lines_do_not_count(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text('{"a":1}\n\n{"a":2}\n   \n')
    found = scan_rows(path)
    assert [s.position for s in found.samples(range(found.rows))] == [0, 1]


def test_positions_begin_at_the_chunk(tmp_path: Path) -> None:
    found = scan_rows(write(tmp_path, *({"n": n} for n in range(5))))
    assert [(s.position, s.row["n"]) for s in found.samples(range(2, 4))] == [(0, 2), (1, 3)]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty"),
        (b"\n \n", "is empty"),
        (b'{"a":1}\n{"a":\n', "line 2: invalid JSON"),
        (b'{"a":1}\n[1]\n', "line 2: expected a JSON object"),
        (b'{"a":"\xff"}\n', "line 1: invalid JSON"),
    ],
)
def test_bad_files_are_refused(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "in.jsonl"
    path.write_bytes(content)
    with pytest.raises(DataError, match=says):
        scan_rows(path)


def test_a_file_that_is_known_to_be_distinct_is_not_decoded(tmp_path: Path) -> None:
    path = write(tmp_path, {"id": 1}, {"id": 2})
    found = scan_rows(path)
    assert (found.distinct, found.digest) == (True, file_digest(path))
    path.write_text("no JSON\n" * 2)
    assert scan_rows(path, (file_digest(path), 2)).rows == 2
    with pytest.raises(DataError, match="invalid JSON"):
        scan_rows(path, (found.digest, 2))
    assert not scan_rows(write(tmp_path, {"id": 1}, {"id": 1, "a": 2})).distinct


def test_lines_that_are_passed_over_are_not_decoded(tmp_path: Path) -> None:
    path = write(tmp_path, {"id": 1}, {"id": 2})
    found = scan_rows(path)
    path.write_text('\nno JSON\n{"id": 2}\n')
    first, second = found.lines(range(2))
    assert (second.place, second.at, second.position, found.sample(second).id) == (3, 1, 1, "2")
    with pytest.raises(DataError, match="line 2"):
        found.sample(first)


def test_a_missing_file_names_its_neighbours(tmp_path: Path) -> None:
    write(tmp_path, {"a": 1})
    with pytest.raises(DataError, match=r"There is no file .*test\.jsonl.*in\.jsonl"):
        scan_rows(tmp_path / "test.jsonl")


@given(st.integers(0, 200), st.integers(1, 20))
def test_chunks_cover_everything_once(rows: int, chunks: int) -> None:
    parts = [chunk_bounds(rows, chunks, k, -1) for k in range(chunks)]
    assert [row for part in parts for row in part] == list(range(rows))
    sizes = [len(part) for part in parts]
    assert max(sizes) - min(sizes) <= 1
    assert sizes == sorted(sizes, reverse=True)


def test_max_samples_counts_within_the_chunk() -> None:
    assert chunk_bounds(10, 3, 1, 2) == range(4, 6)
    assert chunk_bounds(10, None, None, 100) == range(10)
    assert chunk_bounds(2, 4, 3, -1) == range(2, 2)


FORMED = [{"id": f"row-{n}", "problem": f"Zeile {n}\n“{'x' * n}”"} for n in range(600)]


@pytest.mark.parametrize("name", FORMS)
def test_rows_of_every_form_are_read_from_any_place_and_in_any_order(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(FORMS[name](FORMED))
    found = scan_rows(path)
    assert (found.rows, found.distinct, found.digest) == (600, True, file_digest(path))
    assert [sample.row for sample in found.samples(range(300, 590))] == FORMED[300:590]
    order = [7, 0, 280, 3]
    drawn = [found.sample(line) for line in found.lines(range(300, 590), order)]
    assert [sample.row for sample in drawn] == [FORMED[300 + position] for position in order]
    assert [sample.position for sample in drawn] == order
    assert scan_rows(path, (found.digest, 600)).digest == found.digest
