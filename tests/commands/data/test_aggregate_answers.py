# SPDX-License-Identifier: Apache-2.0
"""`ns aggregate_answers`: the common answer of several runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.commands.running import ns, rows_of, write

from newskills.base.errors import DataError
from newskills.run.reporting.aggregation import common_answer

HALVES = ("0.5", r"\frac12", "3", "3", r"\frac{1}{2}")


def runs(folder: Path, *answers: tuple[Any, ...], **more: Any) -> Path:
    """A folder with a file for each seed; `answers` has for each problem the answers of the seeds."""
    for seed in range(len(answers[0])):
        rows = [
            {"id": at, "problem": f"p{at}", "generation": f"g{seed}", "predicted_answer": given[seed], **more}
            for at, given in enumerate(answers)
        ]
        write(folder / f"output-rs{seed}.jsonl", rows)
    return folder


def test_the_majority_becomes_the_expected_answer(tmp_path: Path) -> None:
    folder = runs(
        tmp_path / "in", HALVES, ("7", None, "8", "8", None), (None,) * 5, outcome="wrong", grader="math@1"
    )
    done = ns("ns aggregate_answers in --output_dir=out", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "5 files; changed: 2 problems, 10 records" in done.stdout
    assert sorted(path.name for path in folder.iterdir()) == sorted(p.name for p in (tmp_path / "out").iterdir())
    files = [rows_of(tmp_path / "out" / f"output-rs{seed}.jsonl") for seed in range(5)]
    first = [rows[0] for rows in files]
    assert {row["expected_answer"] for row in first} == {"0.5"}
    assert [row["symbolic_correct"] for row in first] == [True, True, False, False, True]
    assert {(row["majority_votes"], row["total_votes"], row["fill_mode"]) for row in first} == {(3, 5, "majority")}
    assert not {"outcome", "grader"} & first[0].keys()
    assert [row["generation"] for row in first] == [f"g{seed}" for seed in range(5)]
    assert (files[0][1]["expected_answer"], files[0][1]["majority_votes"]) == ("8", 2)
    assert (files[0][2]["expected_answer"], files[0][2]["majority_votes"]) == (None, 0)
    assert files[0][2]["symbolic_correct"] is False


def test_one_record_for_each_problem(tmp_path: Path) -> None:
    runs(tmp_path / "in", ("1", "2", "2"), ("5", "6", "7"), (None, None, None))
    done = ns("ns aggregate-answers in --mode extract", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = rows_of(tmp_path / "in" / "output-agg.jsonl")
    assert [(row["predicted_answer"], row["generation"]) for row in rows] == [
        ("2", "g1"),
        ("5", "g0"),
        (None, "g0"),
    ]


def test_scores_of_a_reward_model(tmp_path: Path) -> None:
    rewards = (("1", 0.9), ("2", 0.5), ("2", 0.6))
    for seed, (answer, reward) in enumerate(rewards):
        write(
            tmp_path / "in" / f"output-rs{seed}.jsonl",
            [{"predicted_answer": answer, "reward_model_score": reward}],
        )
    for option, expected in (("majority", ("2", 1.1)), ("highest", ("1", 0.9))):
        done = ns(f"ns aggregate_answers in --output_dir=out --use_{option}_rm_score", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        (row,) = rows_of(tmp_path / "out" / "output-rs0.jsonl")
        assert (row["expected_answer"], row["answer_rm_score"]) == (expected[0], pytest.approx(expected[1]))
        assert "majority_votes" not in row


def test_what_is_filled_is_kept_where_that_is_wished(tmp_path: Path) -> None:
    runs(tmp_path / "in", ("1", "2", "2"), expected_answer="9", symbolic_correct=False)
    line = "ns aggregate_answers in --output_dir=out"
    assert ns(f"{line} --ignore_if_not_none", cwd=tmp_path).returncode == 0
    assert rows_of(tmp_path / "out" / "output-rs0.jsonl") == rows_of(tmp_path / "in" / "output-rs0.jsonl")
    assert ns(f"{line} --no-fill_symbolic_correct --fill_key=gold", cwd=tmp_path).returncode == 0
    (row,) = rows_of(tmp_path / "out" / "output-rs0.jsonl")
    assert (row["expected_answer"], row["gold"], "symbolic_correct" in row) == ("9", "2", False)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ("", "--output_dir"),
        ("--output_dir=out --require_num_files=4", "has 3 files"),
        ("--output_dir=out --input_files=x*.jsonl", "has no files x*.jsonl"),
        ("--output_dir=out --use_highest_rm_score", "not a finite number"),
        ("--output_dir=out --use_highest_rm_score --use_majority_rm_score", "exclude each other"),
    ],
)
def test_what_cannot_be_aggregated(tmp_path: Path, options: str, why: str) -> None:
    runs(tmp_path / "in", ("1", "2", "2"))
    done = ns(f"ns aggregate_answers in {options}", cwd=tmp_path)
    assert done.returncode == 2
    assert why in done.stderr.replace("\n", " ")
    assert not list(tmp_path.glob("out/*"))


def test_rows_of_other_problems_are_not_mixed(tmp_path: Path) -> None:
    runs(tmp_path / "in", ("1", "2"), ("3", "4"))
    path = tmp_path / "in" / "output-rs1.jsonl"
    write(path, rows_of(path)[::-1])
    done = ns("ns aggregate_answers in --output_dir=out", cwd=tmp_path)
    assert done.returncode == 2
    assert "Row 1 is not the same problem" in done.stderr


def test_a_missing_answer_is_read_from_the_generation() -> None:
    winner = common_answer(
        [{"generation": r"\boxed{4}"}, {"predicted_answer": "4"}, {"generation": "?"}, None], "majority"
    )
    assert (winner.answer, winner.score) == ("4", 2)


@pytest.mark.parametrize("reward", [None, float("nan"), float("inf"), True, "1"])
def test_a_score_that_is_none_is_refused(reward: Any) -> None:
    with pytest.raises(DataError, match="not a finite number"):
        common_answer([{"predicted_answer": "4", "reward_model_score": reward}], "majority_rm")


@given(st.lists(st.none() | st.integers(0, 3).map(str), min_size=1, max_size=9))
def test_the_winner_has_the_most_votes(answers: list[str | None]) -> None:
    winner = common_answer([{"predicted_answer": answer} for answer in answers], "majority")
    counts = [answers.count(answer) for answer in answers if answer is not None]
    assert winner.score == max(counts, default=0)
    assert winner.answer is None or answers[winner.chosen] == winner.answer
    first_best = next((a for a in answers if a is not None and answers.count(a) == max(counts)), None)
    assert winner.answer == first_best
