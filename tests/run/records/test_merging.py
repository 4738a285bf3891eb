# SPDX-License-Identifier: Apache-2.0
"""How rows of chunks are counted and joined, and when they are left as they are."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from tests.run.support import names

from newskills.base.errors import DataError, LockedError
from newskills.base.store import hold_lock
from newskills.run.records.chunks import count_chunks, count_lines, merge_chunks, merge_if_complete
from newskills.run.records.paths import OutputPaths, chunk_path, done_path
from newskills.run.records.state import RunState


@pytest.mark.parametrize(
    ("content", "rows"),
    [("", 0), ("\n", 0), (" \n\t\n", 0), ("{}\n", 1), ("{}\n\n{}\n \n{}\n", 3)],
)
def test_lines_that_hold_something_are_rows(tmp_path: Path, content: str, rows: int) -> None:
    (tmp_path / "a").write_text(content)
    (tmp_path / "b").write_text("{}\n{}\n")
    assert count_lines(tmp_path / "a") == rows
    assert count_chunks(tmp_path / "all", [tmp_path / "a", tmp_path / "b"], expected=rows + 2) == rows + 2
    assert merge_chunks(tmp_path / "all", [tmp_path / "a", tmp_path / "b"]) == rows + 2
    assert (tmp_path / "all").read_text() == content + "{}\n{}\n"
    assert names(tmp_path) == ["all", "all.done"]


@pytest.mark.parametrize("expected", [1, 3])
def test_a_wrong_total_is_refused_before_anything_is_written(tmp_path: Path, expected: int) -> None:
    (tmp_path / "a").write_text("{}\n{}\n")
    for join in (count_chunks, merge_chunks):
        with pytest.raises(DataError, match=rf"all have 2 rows, expected {expected}\."):
            join(tmp_path / "all", [tmp_path / "a"], expected=expected)
    assert names(tmp_path) == ["a"]


def test_no_chunks_and_torn_ones_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("{}\n{")
    for join in (count_chunks, merge_chunks):
        with pytest.raises(DataError, match=r"no chunks to merge into .*all\."):
            join(tmp_path / "all", [])
        with pytest.raises(DataError, match=r"last line of .*a is incomplete"):
            join(tmp_path / "all", [tmp_path / "a"])


def test_a_merged_file_that_the_disk_has_cut_keeps_its_chunks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    merged = tmp_path / "all"
    (tmp_path / "a").write_text("{}\n")
    stat = Path.stat
    cut = type("Cut", (), {"st_size": 2})

    def lying(path: Path, **options: Any) -> Any:
        return cut if path == merged else stat(path, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "stat", lying)
        with pytest.raises(DataError, match="has 2 bytes after merging 3"):
            merge_chunks(merged, [tmp_path / "a"])
    assert names(tmp_path) == ["a", "all"]


def chunks(folder: Path, *settings: dict[str, Any] | None) -> Path:
    """Finished chunks, with a state where they have settings."""
    merged = folder / "output.jsonl"
    for k, values in enumerate(settings):
        chunk = chunk_path(merged, k)
        chunk.write_text(f'{{"chunk":{k}}}\n')
        done_path(chunk).touch()
        if values is not None:
            RunState(status="done", settings={"chunk_id": k, **values}).save(OutputPaths(chunk).state)
    return merged


def test_chunks_that_were_made_in_different_ways_are_not_joined(tmp_path: Path) -> None:
    merged = chunks(tmp_path, {"t": 0.0, "only": 1}, None, {"t": 0.7})
    with pytest.raises(DataError) as error:
        merge_if_complete(merged, 3, 3)
    assert (
        "were made with different settings: output_chunk_2.jsonl has t 0.7, others have 0.0. They are kept"
        in str(error.value)
    )
    assert not merged.exists()
    assert all(chunk_path(merged, k).exists() for k in range(3))


def test_a_setting_that_only_some_chunks_know_is_no_matter(tmp_path: Path) -> None:
    merged = chunks(tmp_path, {"t": 0.0, "only": 1}, None, {"t": 0.0, "new": None})
    assert merge_if_complete(merged, 3, 3)
    assert merged.read_text() == '{"chunk":0}\n{"chunk":1}\n{"chunk":2}\n'


@pytest.mark.parametrize("missing", ["chunk", "marker"])
@pytest.mark.parametrize("at", range(3))
@pytest.mark.parametrize("first", range(3))
def test_a_chunk_is_done_where_both_its_file_and_its_marker_are(
    tmp_path: Path, missing: str, at: int, first: int
) -> None:
    merged = chunks(tmp_path, {}, {}, {})
    chunk = chunk_path(merged, at)
    (chunk if missing == "chunk" else done_path(chunk)).unlink()
    assert not merge_if_complete(merged, 3, 3, first=first)
    assert not merged.exists()


def test_a_merged_file_without_its_marker_is_merged_anew(tmp_path: Path) -> None:
    merged = chunks(tmp_path, {}, {})
    merged.write_text("torn")
    assert merge_if_complete(merged, 2, 2)
    assert merged.read_text() == '{"chunk":0}\n{"chunk":1}\n'


def test_a_marker_without_its_merged_file_is_no_result(tmp_path: Path) -> None:
    merged = chunks(tmp_path, {}, {})
    done_path(merged).touch()
    assert merge_if_complete(merged, 2, 2)
    assert merged.exists()


def test_another_merge_is_waited_for_ten_minutes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    merged, now = chunks(tmp_path, {}), [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "sleep", sleep)
    with (
        hold_lock(OutputPaths(merged).lock, "x"),
        pytest.raises(LockedError, match=r"The merge of .*output\.jsonl"),
    ):
        merge_if_complete(merged, 1, 1)
    assert now[0] == pytest.approx(600, abs=0.2)
