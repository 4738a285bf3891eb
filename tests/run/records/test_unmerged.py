# SPDX-License-Identifier: Apache-2.0
"""Chunks that were never merged, under both names that NeMo-Skills gives them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.commands.running import ns

from newskills.base.errors import DataError
from newskills.base.records import Row
from newskills.base.store import write_json, write_rows
from newskills.run.reporting.results import chunk_files, list_results
from newskills.run.reporting.summarize import SummaryOptions, summarize

NAMES = ("{stem}-chunk{k}.jsonl", "{stem}_chunk_{k}.jsonl")


def graded(first: int, count: int) -> list[Row]:
    return [
        {"id": str(n), "symbolic_correct": n % 2 == 0, "predicted_answer": "1"}
        for n in range(first, first + count)
    ]


def chunked(folder: Path, name: str, stem: str = "output-rs0", sizes: tuple[int, ...] = (3,) * 12) -> None:
    for k, size in enumerate(sizes):
        write_rows(folder / name.format(stem=stem, k=k), graded(sum(sizes[:k]), size))


def record(folder: Path, rows: int, merged: int) -> None:
    """The exit record of the first chunk, as our own runs leave it."""
    content = {"status": "done", "settings": {}, "rows": rows, "merged_rows": merged}
    write_json(folder / "output-rs0_chunk_0.jsonl.run.json", content)


@pytest.mark.parametrize("name", NAMES)
def test_they_are_summarised_as_one_file(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "eval-results" / "gsm8k"
    chunked(folder, name)
    record(folder, 3, 36)
    write_rows(folder / "output-rs1.jsonl", graded(0, 36))
    (found,) = list_results(tmp_path)
    assert [file.name for file in found.files] == ["output-rs0.jsonl", "output-rs1.jsonl"]
    (report,) = summarize(tmp_path, None, SummaryOptions()).reports
    mode = report.modes["pass@1[avg-of-2]"]
    assert (mode["num_entries"], mode["symbolic_correct"]) == (36, 50.0)


@pytest.mark.parametrize("name", NAMES)
def test_they_are_merged_without_naming_them(tmp_path: Path, name: str) -> None:
    chunked(tmp_path, name, "output")
    done = ns("ns merge_chunks output.jsonl", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "output.jsonl: 36 rows\n")
    assert [path.name for path in sorted(tmp_path.glob("*.jsonl"))] == ["output.jsonl"]


def test_a_gap_is_refused(tmp_path: Path) -> None:
    chunked(tmp_path, NAMES[0])
    (tmp_path / "output-rs0-chunk4.jsonl").unlink()
    with pytest.raises(DataError, match="not numbered from 0 without gaps"):
        chunk_files(tmp_path / "output-rs0.jsonl")
    done = ns("ns merge_chunks output-rs0.jsonl", cwd=tmp_path)
    assert done.returncode != 0
    assert "without gaps" in done.stderr


def test_a_run_that_goes_on_is_not_scored_by_its_first_chunks(tmp_path: Path) -> None:
    folder = tmp_path / "eval-results" / "gsm8k"
    chunked(folder, NAMES[1], sizes=(3, 3))
    assert list_results(tmp_path)[0].files == (), "nothing says that these are all"
    record(folder, 3, 9)
    assert list_results(tmp_path)[0].files == ()
    record(folder, 3, 6)
    assert len(list_results(tmp_path)[0].files) == 1
    (folder / "output-rs0_chunk_2.jsonl-async").touch()
    assert list_results(tmp_path)[0].files == ()
