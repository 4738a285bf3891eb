# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
from pathlib import Path

import pytest

from newskills.base.errors import DataError
from newskills.benchmarks.few_shot import few_shot_rows


def write_dev(
    path: Path, subjects: tuple[str, ...] = ("college_physics", "law"), prefix: str = "mmlu_few_shot_"
) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [
        {"problem": f"{subject} {n}?", "expected_answer": "ABCD"[n % 4], "examples_type": f"{prefix}{subject}"}
        for n in range(6)
        for subject in subjects
    ]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def test_the_split_beside_the_input_is_used_first(tmp_path: Path) -> None:
    write_dev(tmp_path / "here" / "dev.jsonl")
    rows = few_shot_rows("mmlu_few_shot_college-physics", None, tmp_path / "here" / "test.jsonl")
    assert rows is not None
    assert [row["problem"] for row in rows] == [f"college_physics {n}?" for n in range(5)]


def test_else_the_data_folder_is_looked_at(tmp_path: Path) -> None:
    write_dev(tmp_path / "data" / "mmlu" / "dev.jsonl")
    write_dev(tmp_path / "other" / "dev.jsonl", subjects=("",))
    for folder in ("nowhere", "other"):
        rows = few_shot_rows("mmlu_few_shot_law", tmp_path / "data", tmp_path / folder / "test.jsonl")
        assert rows is not None
        assert len(rows) == 5


def test_mmlu_pro_takes_its_validation_split(tmp_path: Path) -> None:
    write_dev(tmp_path / "mmlu-pro" / "validation.jsonl", ("computer_science",), "mmlu_pro_few_shot_")
    rows = few_shot_rows("mmlu_pro_few_shot_computer_science", tmp_path, tmp_path / "test.jsonl")
    assert rows is not None
    assert [row["problem"] for row in rows] == [f"computer_science {n}?" for n in range(5)]


def test_unknown_names_and_subjects(tmp_path: Path) -> None:
    write_dev(tmp_path / "mmlu" / "dev.jsonl")
    assert few_shot_rows("gsm8k_own", tmp_path, tmp_path / "test.jsonl") is None
    assert few_shot_rows("mmlu_few_shot_cooking", tmp_path, tmp_path / "test.jsonl") is None


def test_a_whole_split_is_a_set(tmp_path: Path) -> None:
    write_dev(tmp_path / "train.jsonl")
    rows = few_shot_rows("train", None, tmp_path / "test.jsonl")
    assert rows is not None
    assert [row["problem"] for row in rows[:3]] == ["college_physics 0?", "law 0?", "college_physics 1?"]
    assert few_shot_rows("train", None, tmp_path / "train.jsonl") is None
    assert few_shot_rows("../train", None, tmp_path / "deeper" / "test.jsonl") is None


def test_a_split_that_is_not_prepared_names_the_command(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="ns prepare_data mmlu --data_dir="):
        few_shot_rows("mmlu_few_shot_law", tmp_path, tmp_path / "test.jsonl")
