# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import pytest
from tests.recipes.improve.words import COUNT, spec_for, words_benchmark, write_training

from newskills.base.errors import ConfigError, DataError, LockedError
from newskills.base.store import hold_lock, read_rows, write_rows
from newskills.benchmarks.data import NotPreparedError
from newskills.benchmarks.reasoning.lessons import sorting_rows
from newskills.recipes.improve.loop import run_improvement
from newskills.recipes.improve.problems import decontaminate_rows, draw_problems, load_problems
from newskills.recipes.improve.records import ImproveSpec


@pytest.fixture
def spec(tmp_path: Path) -> ImproveSpec:
    write_training(tmp_path, "Item", ("yes", "no"))
    return spec_for(tmp_path, Path("smollm2"), words_benchmark(tmp_path, "words", "Item", "yes"))


def test_each_round_draws_new_problems_until_all_were_used() -> None:
    rows = [{"id": str(n)} for n in range(10)]
    rounds = [[row["id"] for row in draw_problems(rows, number, 4, 0)] for number in range(1, 6)]
    assert sorted(rounds[0] + rounds[1] + rounds[2][:2]) == sorted(row["id"] for row in rows)
    assert draw_problems(rows, 2, 4, 0) == draw_problems(rows, 2, 4, 0)
    assert draw_problems(rows, 1, 4, 1) != draw_problems(rows, 1, 4, 0)
    assert draw_problems(rows, 3, 20, 0) == rows
    assert all(len(set(ids)) == len(ids) for ids in rounds)


def test_a_form_that_all_problems_share_is_no_overlap_but_a_copy_is() -> None:
    """Every problem of the lesson has the same thirteen words and four numbers of its own."""
    test = [row["question"] for row in sorting_rows("test")]
    train = sorting_rows("train")[:50]
    assert decontaminate_rows(train, test, 0.5) == train
    copied = {"id": "x", "question": test[7].upper().replace(" ", "  ")}
    assert decontaminate_rows([*train, copied], test, 0.5) == train


def test_a_changed_copy_is_left_out() -> None:
    held_out = (
        "Weng earns 12 dollars an hour for babysitting. Yesterday, she just did 50 minutes of babysitting. "
        "How much did she earn?"
    )
    copy = held_out.replace("Weng", "Anna").replace("12", "18")
    rows = [{"id": "1", "problem": copy}, {"id": "2", "problem": "How many legs have nine dogs and seven hens?"}]
    assert [row["id"] for row in decontaminate_rows(rows, [held_out, "What is 2 + 2?"], 0.5)] == ["2"]


def test_problems_that_are_evaluated_on_are_never_trained_on(spec: ImproveSpec, tmp_path: Path) -> None:
    train = tmp_path / "train.jsonl"
    write_rows(train, [*read_rows(train), {"id": "x", "question": "item 5001", "expected_answer": "yes"}])
    with pytest.raises(DataError, match=rf"1 of {COUNT} questions of words \(test\) are in the training data"):
        load_problems(spec, print)


def test_the_split_that_is_evaluated_on_is_refused(spec: ImproveSpec, tmp_path: Path) -> None:
    own = spec_for(tmp_path, Path("smollm2"), spec.benchmark, training_data=None, split="test", solutions=())
    with pytest.raises(DataError, match=f"{COUNT} of {COUNT} questions of words") as caught:
        load_problems(own, print)
    assert "never trains on what it evaluates on" in caught.value.hint


def test_guards_are_not_trained_on_either(spec: ImproveSpec, tmp_path: Path) -> None:
    guard = words_benchmark(tmp_path, "guard", "Item", "yes")
    (tmp_path / "guard.py").write_text((tmp_path / "guard.py").read_text().replace("5000", "1000"))
    with pytest.raises(DataError, match=f"{COUNT} of {COUNT} questions of guard"):
        load_problems(spec_for(tmp_path, Path("smollm2"), spec.benchmark, guards=(guard,)), print)


def test_no_problem_is_left(spec: ImproveSpec, tmp_path: Path) -> None:
    write_rows(tmp_path / "train.jsonl", [{"id": 1, "question": "item, 5001!", "expected_answer": "yes"}])
    with pytest.raises(DataError, match=r"No training problem is left: all 1 of .*train\.jsonl are almost like"):
        load_problems(spec_for(tmp_path, Path("smollm2"), spec.benchmark, solutions=()), print)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "has no problems to train on"),
        ([{"id": 1, "question": "q"}, {"id": 1, "question": "r"}], "several problems with the id 1"),
        ([{"id": 1, "text_of_it": "q"}], "Training problem 1 has no question"),
    ],
)
def test_problems_that_cannot_be_used(
    spec: ImproveSpec, tmp_path: Path, rows: list[dict[str, object]], message: str
) -> None:
    write_rows(tmp_path / "train.jsonl", rows)
    with pytest.raises(DataError, match=message):
        load_problems(spec_for(tmp_path, Path("smollm2"), spec.benchmark, solutions=()), print)


def test_solutions_are_replies_to_training_problems(spec: ImproveSpec, tmp_path: Path) -> None:
    write_rows(tmp_path / "solutions.jsonl", [{"id": "other", "generation": "yes"}])
    with pytest.raises(DataError, match="has no reply to any training problem"):
        load_problems(spec, print)
    write_rows(tmp_path / "solutions.jsonl", [{"id": "train-1", "text": "yes"}])
    with pytest.raises(DataError, match="row 1: expected the fields `id`"):
        load_problems(spec, print)


def test_one_run_at_a_time(spec: ImproveSpec) -> None:
    with hold_lock(spec.output_dir / "lock", "it"), pytest.raises(LockedError, match="is in use by process"):
        run_improvement(spec, say=print)


def test_grpo_takes_no_replies_of_others(spec: ImproveSpec, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="own samples, so --solutions has no effect"):
        load_problems(spec_for(tmp_path, Path("smollm2"), spec.benchmark, method="grpo"), print)


def test_a_guard_is_another_benchmark(spec: ImproveSpec, tmp_path: Path) -> None:
    own = spec_for(tmp_path, Path("smollm2"), spec.benchmark, guards=(spec.benchmark,))
    with pytest.raises(ConfigError, match="--guard: words is evaluated already"):
        load_problems(own, print)
    load_problems(spec, print)
    guard = words_benchmark(tmp_path, "guard", "Thing", "yes")
    with pytest.raises(NotPreparedError) as caught:
        load_problems(spec_for(tmp_path, Path("smollm2"), spec.benchmark, guards=(guard,)), print, writes=False)
    assert caught.value.hint == f"Run: ns prepare_data {guard} --data_dir={tmp_path / 'data'}"
