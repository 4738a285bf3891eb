# SPDX-License-Identifier: Apache-2.0
"""The index of records: what it keeps, how it goes on, and what it makes of broken, huge and growing files."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from tests.view.results import benchmark, mixed, record, write_lines

from newskills.base.errors import DataError
from newskills.base.store import hold_lock
from newskills.view import index as module
from newskills.view.discovery import discover_all
from newskills.view.folders import Folders
from newskills.view.index import FileIndex
from newskills.view.rows import NO_TOKENS, OUTCOME_NAMES


def opened(folder: Path, name: str = "") -> FileIndex:
    """The index of the only file of records below `folder`, or of the one called `name`, brought up to date."""
    folders = Folders([folder])
    files = [
        file
        for run in discover_all(folders).runs.values()
        for results in run.benchmarks.values()
        for file in results.files
        if name in ("", file.path.name)
    ]
    index = FileIndex(files[0], folders, folder / "cache")
    index.update()
    return index


def outcomes(index: FileIndex) -> list[str]:
    return [OUTCOME_NAMES[code] for code in index.columns("outcome")[0]]


def test_columns_tell_what_the_records_say(tmp_path: Path) -> None:
    rows = [
        record(0),
        record(1, outcome="wrong"),
        record(2, outcome="unscored"),
        record(3, subset_for_metrics="a"),
    ]
    rows[1]["num_generated_tokens"] = None
    benchmark(tmp_path, "sums", [rows])
    index = opened(tmp_path)
    assert outcomes(index) == ["correct", "wrong", "unscored", "correct"]
    tokens, subset, cause = index.columns("tokens", "subset", "cause")
    assert list(tokens) == [10, NO_TOKENS, 12, 13]
    assert [index.head.subsets[code] for code in subset] == ["", "", "", "a"]
    assert [index.head.causes[code] for code in cause] == ["", "model", "provider", ""]
    line, length = index.line(2, 1 << 20)
    assert json.loads(line) == rows[2]
    assert length == len(line)
    assert json.loads(line)["id"] == index.line(2, 1 << 20)[0].decode().split('"')[3]


def test_what_is_kept_is_not_read_again_and_goes_on_where_the_file_has_grown(tmp_path: Path) -> None:
    folder = benchmark(tmp_path, "sums", [mixed(20, 5)])
    first = opened(tmp_path)
    kept = (folder / ".view/output.jsonl.rows").stat()
    again = opened(tmp_path)
    assert again.rows == first.rows == 20
    assert (folder / ".view/output.jsonl.rows").stat().st_mtime_ns == kept.st_mtime_ns
    with (folder / "output.jsonl").open("a") as file:
        file.write(json.dumps(record(20)) + "\n")
    again.update()
    assert again.rows == opened(tmp_path).rows == 21
    assert json.loads(again.line(20, 1 << 20)[0])["id"] == "p20"


@pytest.mark.parametrize("change", ["shorter", "other", "same size"])
def test_a_file_that_became_another_one_is_indexed_anew(tmp_path: Path, change: str) -> None:
    folder = benchmark(tmp_path, "sums", [mixed(20, 5)])
    path = folder / "output.jsonl"
    index = opened(tmp_path)
    text = path.read_text()
    if change == "shorter":
        write_lines(path, mixed(3, 9))
    elif change == "other":
        path.unlink()
        write_lines(path, mixed(40, 9, shift=3))
    else:
        path.write_text(text.replace('"outcome": "correct"', '"outcome": "wrong"  '))
        os.utime(path, ns=(1, 1))
    index.update()
    assert index.rows == {"shorter": 3, "other": 40, "same size": 20}[change]
    assert outcomes(index) == outcomes(opened(tmp_path))
    if change == "same size":
        assert set(outcomes(index)) == {"wrong"}


def test_corrupted_lines_are_counted_and_half_a_line_waits_for_its_rest(tmp_path: Path) -> None:
    folder = benchmark(tmp_path, "sums", [[record(0), "{nonsense", '["a list"]', "", record(1)]])
    index = opened(tmp_path)
    assert outcomes(index) == ["correct", "damaged", "damaged", "correct"]
    assert index.head.damaged == 2
    text = json.dumps(record(2)) + "\n"
    with (folder / "output.jsonl").open("a") as file:
        file.write(text[:30])
        file.flush()
        index.update()
        assert index.rows == 4
        file.write(text[30:])
    index.update()
    assert outcomes(index)[4:] == ["correct"]
    assert index.head.damaged == 2


def test_a_line_that_is_too_long_is_known_by_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LONGEST_LINE", 5000)
    benchmark(tmp_path, "sums", [[record(0), record(1, generation="x" * 20_000), record(2)]])
    index = opened(tmp_path)
    assert outcomes(index) == ["correct", "damaged", "correct"]
    line, length = index.line(1, 100)
    assert len(line) == 100
    assert length > 20_000
    assert json.loads(index.line(2, 1 << 20)[0])["id"] == "p2"


def test_a_run_at_work_is_read_from_its_logs(tmp_path: Path) -> None:
    folder = tmp_path / "eval-results/sums"
    raw = [{**record(n), "_async_position": n, "_async_key": "k", "_async_settings": "s"} for n in (2, 0, 1)]
    for row in raw:
        for name in ("outcome", "symbolic_correct", "predicted_answer", "why"):
            row.pop(name)
    write_lines(folder / "output.jsonl-async", raw)
    verdict = {"outcome": "wrong", "fields": {"predicted_answer": "9"}, "grader": "math@6", "why": "exact (box)"}
    write_lines(
        folder / "output.jsonl-grades", [{"position": 0, "sum": 1, "score": {**verdict, "cause": "model"}}]
    )
    index = opened(tmp_path)
    assert outcomes(index) == ["", "wrong", ""]
    assert b'"wrong"' in (index.verdict(1) or b"")
    assert index.verdict(0) is None
    write_lines(folder / "output.jsonl", mixed(3, 10))
    (folder / "output.jsonl-async").unlink()
    assert outcomes(opened(tmp_path)) == ["correct"] * 3
    assert not (folder / ".view/output.jsonl-async.rows").exists()


def test_verdicts_of_other_systems_count(tmp_path: Path) -> None:
    rows = [
        {"generation": "a", "symbolic_correct": True, "predicted_answer": "a"},
        {"generation": "b", "is_correct": False},
        {"generation": "", "symbolic_correct": False, "predicted_answer": None},
        {"generation": "c", "judgement": "Reasoning: fine. Judgement: Yes"},
        {"generation": "d"},
    ]
    benchmark(tmp_path, "sums", [rows])
    assert outcomes(opened(tmp_path)) == ["correct", "wrong", "no_answer", "correct", ""]


def test_where_the_folder_cannot_be_written_the_index_lies_in_the_cache(tmp_path: Path) -> None:
    folder = benchmark(tmp_path, "sums", [mixed(5, 5)])
    (folder / ".view").write_text("in the way")
    index = opened(tmp_path)
    assert index.rows == 5
    assert list((tmp_path / "cache").rglob("output.jsonl.rows"))


def test_one_process_indexes_and_others_read_what_it_has_done(tmp_path: Path) -> None:
    folder = benchmark(tmp_path, "sums", [mixed(5, 5)])
    with hold_lock(folder / ".view/output.jsonl.lock", "The index"):
        assert opened(tmp_path).rows == 0
    assert opened(tmp_path).rows == 5


def test_a_number_that_there_is_not_is_an_error(tmp_path: Path) -> None:
    benchmark(tmp_path, "sums", [mixed(5, 5)])
    with pytest.raises(DataError, match="5 records; there is none with number 5"):
        opened(tmp_path).line(5, 10)


def test_nothing_is_written_but_the_index(tmp_path: Path) -> None:
    folder = benchmark(tmp_path, "sums", [mixed(5, 5)])
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    opened(tmp_path)
    after = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    assert {path.parent for path in after.keys() - before.keys()} == {folder / ".view"}
    assert all(after[path] == time for path, time in before.items())
