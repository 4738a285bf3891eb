# SPDX-License-Identifier: Apache-2.0
"""GPQA is gated and its authors ask not to spread it: a fixture with invented questions in its exact raw form."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from random import Random

import pytest

from newskills.base.errors import DataError
from newskills.base.store import read_rows
from newskills.benchmarks import get_benchmark
from newskills.benchmarks.data import load_rows, prepare
from newskills.benchmarks.downloads.fetch import FetchOptions

COLUMNS = (
    "Pre-Revision Question", "Question", "Correct Answer", "Incorrect Answer 1", "Incorrect Answer 2",
    "Incorrect Answer 3", "Explanation", "Subdomain", "High-level domain", "Writer's Difficulty Estimate", "Record ID",
)  # fmt: skip


def item(number: int) -> dict[str, str]:
    return {
        "Pre-Revision Question": "draft",
        "Question": f"Which is number {number},\nof these? ",
        "Correct Answer": f" right  {number}\n",
        "Incorrect Answer 1": f"first {number}",
        "Incorrect Answer 2": f"second {number} [title]more",
        "Incorrect Answer 3": f"[3+2] {number}",
        "Explanation": "because",
        "Subdomain": "Organic Chemistry",
        "High-level domain": "Chemistry",
        "Writer's Difficulty Estimate": "Hard graduate level (could be answered by an expert)"
        if number % 2
        else "",
        "Record ID": f"rec{number}",
    }


@pytest.fixture
def mirror_with_gpqa(tmp_path: Path) -> Path:
    folder = tmp_path / "mirror" / "huggingface.co" / "datasets" / "Idavidrein" / "gpqa"
    folder.mkdir(parents=True)
    for split, count in (("diamond", 6), ("main", 3), ("extended", 2)):
        buffer = io.StringIO(newline="")
        writer = csv.DictWriter(buffer, COLUMNS)
        writer.writeheader()
        writer.writerows(item(number) for number in range(count))
        (folder / f"gpqa_{split}.csv").write_text(buffer.getvalue(), newline="")
    return tmp_path / "mirror"


def test_rows(mirror_with_gpqa: Path, tmp_path: Path) -> None:
    benchmark = get_benchmark("gpqa")
    options = FetchOptions(mirror=str(mirror_with_gpqa), offline=True)
    done = prepare(benchmark, data_dir=tmp_path / "data", options=options)
    assert [(split.split, split.provenance.rows) for split in done.splits] == [
        ("diamond", 6),
        ("main", 3),
        ("extended", 2),
    ]
    rows = list(read_rows(load_rows(benchmark, data_dir=tmp_path / "data")))
    generator = Random(42)
    for number, row in enumerate(rows):
        options_now = [f"first {number}", f"second {number}. more", f"[3+2] {number}", f"right {number}"]
        generator.shuffle(options_now)
        assert [row[letter] for letter in "ABCD"] == options_now
        assert row[row["expected_answer"]] == f"right {number}"
        assert row["problem"] == f"Which is number {number},\nof these? \n\n{row['options']}"
        assert row["options"].splitlines()[0] == f"A) {options_now[0]}"
        assert row["subset_for_metrics"] == "Organic Chemistry"
        assert row["difficulty"] == ("Hard graduate level" if number % 2 else None)
        assert row["explanation"] == "because"
        assert sorted(row["option_order"]) == [0, 1, 2, 3]
    assert len({row["expected_answer"] for row in rows}) > 1


def test_each_split_starts_the_shuffle_anew(mirror_with_gpqa: Path, tmp_path: Path) -> None:
    benchmark = get_benchmark("gpqa")
    prepare(benchmark, data_dir=tmp_path, options=FetchOptions(mirror=str(mirror_with_gpqa), offline=True))
    orders = [
        [row["option_order"] for row in read_rows(load_rows(benchmark, split, tmp_path))][:2]
        for split in ("diamond", "main", "extended")
    ]
    assert orders[0] == orders[1] == orders[2]


def test_a_changed_schema_is_named(mirror_with_gpqa: Path, tmp_path: Path) -> None:
    path = mirror_with_gpqa / "huggingface.co/datasets/Idavidrein/gpqa/gpqa_diamond.csv"
    path.write_text(path.read_text().replace("Subdomain", "Area"))
    with pytest.raises(DataError, match=r"line 2: the field 'Subdomain' is missing"):
        prepare(
            get_benchmark("gpqa"),
            data_dir=tmp_path,
            options=FetchOptions(mirror=str(mirror_with_gpqa), offline=True),
        )
