# SPDX-License-Identifier: Apache-2.0
"""Held-out problems on the way are compared with those before the first step, problem by problem."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.train.loops.test_loops import EXAMPLES, GRPO, PROBLEMS, SMALL, decode, metrics, sevens
from tests.train.tiny import tiny_folder

from newskills.base.paired import mcnemar, spent_level
from newskills.base.store import read_rows
from newskills.train.backends.cpu.trainer import CpuTrainer
from newskills.train.loops.evaluation import HeldOut, change_of, harmful, kept_apart, steps_between
from newskills.train.loops.folder import TrainingFolder
from newskills.train.loops.grpo import grpo
from newskills.train.loops.samples import Judged, Problem, Scorer
from newskills.train.loops.sft import SftConfig, sft
from newskills.train.loops.stepping import Hooks
from newskills.train.settings import EvalSettings

COUNT = 60
HELD = [Problem([1, 2, 3 + number % 9], {"number": number}) for number in range(COUNT)]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_folder(tmp_path_factory.mktemp("model") / "tiny")


def right(numbers: Sequence[set[int]]) -> HeldOut:
    """Each evaluation finds the next set of problems solved."""
    left: Iterator[set[int]] = iter(numbers)

    def reward(samples: Sequence[tuple[dict[str, Any], str, str]]) -> list[Judged]:
        solved = next(left)
        return [Judged(float(row["number"] in solved), row["number"] in solved) for row, _, _ in samples]

    settings = EvalSettings(every=2, max_tokens=3, batch_size=COUNT, max_problems=COUNT, stop_worse=0.05)
    return HeldOut(problems=HELD, scorer=Scorer(reward, decode, [0]), settings=settings)


def fine_tuned(model: Path, path: Path, held_out: HeldOut, **more: Any) -> tuple[bool, list[str]]:
    remarks: list[str] = []
    config = SftConfig(steps=8, batch_size=4, save_every=0)
    folder = TrainingFolder(path, {})
    try:
        hooks = Hooks(held_out=held_out, remark=remarks.append, **more)
        return sft(CpuTrainer(model, SMALL), EXAMPLES, config, folder, hooks), remarks
    finally:
        folder.close()


START, SAME, HARMED = set(range(30)), set(range(1, 31)), set(range(18))


def test_a_run_that_does_harm_ends_at_once_with_its_best_weights(model: Path, tmp_path: Path) -> None:
    ended, remarks = fine_tuned(model, tmp_path, right([START, SAME | {40}, HARMED]))
    assert ended
    rows = {row["step"]: row for row in metrics(tmp_path)}
    assert max(rows) == 4
    assert (rows[2]["eval_change"], rows[2]["eval_p"]) == (pytest.approx(1 / COUNT), mcnemar(1, 2))
    assert (rows[4]["eval_change"], rows[4]["eval_p"]) == (pytest.approx(-12 / COUNT), mcnemar(12, 0))
    assert rows[4]["eval_change_low"] < -12 / COUNT < rows[4]["eval_change_high"] < 0
    assert len(remarks) == 2
    assert "so the run ends here" in remarks[1]
    states = [(row["step"], row["state_path"], row["final"]) for row in read_rows(tmp_path / "checkpoints.jsonl")]
    assert states[-2:] == [(4, "checkpoint-000004", False), (4, "checkpoint-000002", True)]
    assert (tmp_path / "checkpoint-000004/adapter_model.safetensors").is_file()
    folder = TrainingFolder(tmp_path, {})
    said = folder.verdict()
    folder.close()
    assert "reward 0.500 after step 0, 0.300 after step 4, -0.200 (95 %" in said
    assert f"p = {mcnemar(12, 0):.1g}, {COUNT} problems)" in said
    assert "the model is that of step 2 (0.517), the best of 3 measured; the last one is checkpoint-000004" in said


def test_a_run_goes_on_where_a_loss_may_be_chance(model: Path, tmp_path: Path) -> None:
    worse = START - {1, 2, 3, 4, 5}
    assert mcnemar(5, 0) > spent_level(1, 0.05)
    ended, remarks = fine_tuned(model, tmp_path, right([START, worse, worse, worse, worse]))
    assert ended
    assert metrics(tmp_path)[-1]["step"] == 8
    assert not any("ends here" in remark for remark in remarks)


def test_a_resumed_run_compares_with_its_first_evaluation(model: Path, tmp_path: Path) -> None:
    """It neither asks again nor forgets what each problem was worth."""
    stops = iter([False, False, True])
    assert not fine_tuned(model, tmp_path, right([START, SAME]), stop=lambda: next(stops))[0]
    assert fine_tuned(model, tmp_path, right([HARMED]))[0]
    rows = {row["step"]: row for row in metrics(tmp_path)}
    assert max(rows) == 4
    assert rows[4]["eval_p"] == mcnemar(12, 0)
    assert [row["step"] for row in read_rows(tmp_path / "evaluations.jsonl")] == [0, 2, 4]


def test_levels_of_all_looks_add_up() -> None:
    assert sum(spent_level(look, 0.05) for look in range(1, 10_000)) == pytest.approx(0.05, rel=1e-3)
    lost = change_of([[1.0]] * 12 + [[0.0]] * 8, [[1.0]] * 5 + [[0.0]] * 15)
    assert lost["eval_p"] == mcnemar(7, 0)
    assert harmful(lost, 1, 0.05)
    assert not harmful(lost, 2, 0.05)
    assert not harmful(lost, 1, 0.0)
    gained = change_of([[0.0]] * 20, [[1.0]] * 20)
    assert not harmful(gained, 1, 0.05)


def test_problems_that_could_not_be_graded_are_not_compared() -> None:
    assert change_of([[], [1.0], [0.0]], [[1.0], [], [1.0]]) == {}
    assert change_of([[], [0.0], [0.0]], [[1.0], [1.0], [1.0]])["eval_change"] == 1.0


def test_evaluations_take_about_a_fifth_of_the_time() -> None:
    assert steps_between(200, 64) == 5
    assert steps_between(400, 64) == 10
    assert steps_between(200, 8) == 40
    assert steps_between(20, 64) == 5


def test_a_quarter_of_the_problems_is_held_out_at_most() -> None:
    problems = [Problem([index], {}) for index in range(2000)]
    assert [len(kept_apart(problems[:count], 200)[1]) for count in (79, 80, 800, 2000)] == [0, 20, 200, 200]


def test_reinforcement_ends_early_too(model: Path, tmp_path: Path) -> None:
    folder = TrainingFolder(tmp_path, {})
    held_out = right([START, HARMED])
    scorer = Scorer(sevens, decode, [0])
    assert grpo(CpuTrainer(model, SMALL), PROBLEMS, GRPO, folder, scorer, Hooks(held_out=held_out))
    folder.close()
    assert metrics(tmp_path)[-1]["step"] == 2
    assert folder.unchanged
