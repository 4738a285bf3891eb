# SPDX-License-Identifier: Apache-2.0
"""Held-out problems on the way are compared with those before the first step, problem by problem."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file
from tests.train.loops.test_loops import EXAMPLES, GRPO, PROBLEMS, SMALL, decode, metrics, sevens
from tests.train.tiny import tiny_folder

from newskills.base.paired import mcnemar, spent_level
from newskills.base.store import read_rows
from newskills.train.backends.cpu.trainer import STATE, CpuTrainer
from newskills.train.loops.evaluation import HeldOut, change_of, harmful, kept_apart, steps_between
from newskills.train.loops.folder import TrainingFolder
from newskills.train.loops.grpo import grpo
from newskills.train.loops.samples import Judged, Problem, Scorer
from newskills.train.loops.schedule import rate_at
from newskills.train.loops.sft import SftConfig, sft
from newskills.train.loops.stepping import Hooks, Progress
from newskills.train.settings import EvalSettings

COUNT = 60
HELD = [Problem([1, 2, 3 + number % 9], {"number": number}) for number in range(COUNT)]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_folder(tmp_path_factory.mktemp("model") / "tiny")


def right(numbers: Sequence[set[int]], returns: int = 0) -> HeldOut:
    """Each evaluation finds the next set of problems solved."""
    left: Iterator[set[int]] = iter(numbers)

    def reward(samples: Sequence[tuple[dict[str, Any], str, str]]) -> list[Judged]:
        solved = next(left)
        return [Judged(float(row["number"] in solved), row["number"] in solved) for row, _, _ in samples]

    settings = EvalSettings(
        every=2, max_tokens=3, batch_size=COUNT, max_problems=COUNT, stop_worse=0.05, returns=returns
    )
    return HeldOut(problems=HELD, scorer=Scorer(reward, decode, [0]), settings=settings)


def fine_tuned(model: Path, path: Path, held_out: HeldOut, steps: int = 8, **more: Any) -> tuple[bool, list[str]]:
    remarks: list[str] = []
    config = SftConfig(steps=steps, batch_size=4, save_every=0)
    folder = TrainingFolder(path, {})
    try:
        hooks = Hooks(held_out=held_out, remark=remarks.append, **more)
        return sft(CpuTrainer(model, SMALL), EXAMPLES, config, folder, hooks), remarks
    finally:
        folder.close()


START, SAME, HARMED = set(range(30)), set(range(1, 31)), set(range(18))
RECOVERING, COLLAPSED = set(range(24)), {1, 2}


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


def rates(path: Path, steps: int = 8) -> list[float]:
    """The learning rates by what the schedule would give."""
    rows = [row for row in metrics(path) if row["step"]]
    return [
        row["learning_rate"] / rate_at(row["step"] - 1, steps, SftConfig(steps=steps).learning_rate, "linear")
        for row in rows
    ]


def waited(path: Path) -> list[int]:
    return [row["step"] for row in metrics(path) if "waiting" in row]


def returned(path: Path) -> dict[int, int]:
    return {row["step"]: row["returned"] for row in metrics(path) if "returned" in row}


def test_a_run_with_a_lasting_loss_goes_back_and_learns_more_slowly(model: Path, tmp_path: Path) -> None:
    better = SAME | {40}
    held_out = right([START, better, HARMED, HARMED - {17} | {18}, better], returns=2)
    ended, remarks = fine_tuned(model, tmp_path, held_out)
    assert ended
    assert rates(tmp_path) == pytest.approx([1, 1, 1, 1, 1, 1, 0.25, 0.25])
    assert (waited(tmp_path), returned(tmp_path)) == ([4], {6: 2})
    names = [f"checkpoint-{step:06d}/adapter_model.safetensors" for step in (2, 6, 8)]
    before, back, later = ((tmp_path / name).read_bytes() for name in names)
    assert before == back != later
    assert remarks[1].endswith("That is a loss; the run goes back unless the next evaluation is better")
    assert (
        "That is a loss: the run goes on from the weights of step 2 with 0.25 of its learning rate" in remarks[2]
    )
    states = [
        (row["step"], row["state_path"]) for row in read_rows(tmp_path / "checkpoints.jsonl") if row["final"]
    ]
    assert states == [(8, "checkpoint-000008")]


def test_a_run_that_recovers_by_itself_is_left_alone(model: Path, tmp_path: Path) -> None:
    """Better than the evaluation before it, though still worse than the start; then no longer worse."""
    assert mcnemar(6, 0) < 0.05 < mcnemar(5, 0)
    ended, remarks = fine_tuned(model, tmp_path, right([START, HARMED, RECOVERING, START, HARMED], returns=2))
    assert ended
    assert (waited(tmp_path), returned(tmp_path)) == ([2, 4], {})
    assert rates(tmp_path) == pytest.approx([1] * 8)
    assert not any("goes on from" in remark or "ends here" in remark for remark in remarks)
    assert [remark.endswith("unless the next evaluation is better") for remark in remarks] == [
        True,
        True,
        False,
        False,
    ]


def test_a_loss_that_a_later_look_no_longer_shows_at_its_level_still_lasts(model: Path, tmp_path: Path) -> None:
    """The level of a look falls; one that decides about a loss seen before has the whole level."""
    worse = START - set(range(8)) | {40}
    assert spent_level(2, 0.05) < mcnemar(8, 1) < 0.05
    fine_tuned(model, tmp_path, right([START, worse - {8}, worse, START, START], returns=2))
    assert (waited(tmp_path), returned(tmp_path)) == ([2], {4: 0})


def test_a_run_that_has_collapsed_goes_back_at_once(model: Path, tmp_path: Path) -> None:
    fine_tuned(model, tmp_path, right([START, COLLAPSED, SAME, SAME, SAME], returns=2))
    assert (waited(tmp_path), returned(tmp_path)) == ([], {2: 0})


def test_a_run_goes_back_to_the_initial_weights_and_ends_in_the_end(model: Path, tmp_path: Path) -> None:
    """The optimizer begins anew, too."""
    ended, remarks = fine_tuned(model, tmp_path, right([START, *[HARMED] * 6], returns=2), steps=14)
    assert ended
    assert rates(tmp_path, 14) == pytest.approx([1] * 4 + [0.25] * 4 + [0.0625] * 4)
    assert (waited(tmp_path), returned(tmp_path)) == ([2, 6, 10], {4: 0, 8: 0})
    assert "goes on from the initial weights with 0.062 of" in remarks[3]
    assert remarks[4].endswith("That is a loss; the run ends unless the next evaluation is better")
    assert "so the run ends here" in remarks[5]
    for step in (4, 8):
        pairs = load_file(tmp_path / f"checkpoint-{step:06d}/adapter_model.safetensors")
        assert not any(value.any() for name, value in pairs.items() if "lora_B" in name)
        assert json.loads((tmp_path / f"checkpoint-{step:06d}" / STATE).read_text())["steps"] == 0
    folder = TrainingFolder(tmp_path, {})
    assert folder.unchanged
    folder.close()


@pytest.mark.parametrize("done", range(1, 10))
def test_a_run_that_went_back_resumes_as_if_it_had_not_been_stopped(
    model: Path, tmp_path: Path, done: int
) -> None:
    """Wherever it was stopped: it knows whether a loss is waited out, and what it was."""
    found = [START, SAME | {40}, HARMED, RECOVERING, RECOVERING, START]
    assert fine_tuned(model, tmp_path / "whole", right(found, returns=1), steps=10)[0]
    assert (waited(tmp_path / "whole"), returned(tmp_path / "whole")) == ([4, 6], {8: 2})
    stops, asked = iter([False] * (done - 1) + [True]), 1 + done // 2
    held_out = right(found[:asked], returns=1)
    assert not fine_tuned(model, tmp_path / "parts", held_out, steps=10, stop=lambda: next(stops))[0]
    assert fine_tuned(model, tmp_path / "parts", right(found[asked:], returns=1), steps=10)[0]
    assert metrics(tmp_path / "parts") == metrics(tmp_path / "whole")
    assert rates(tmp_path / "parts", 10) == pytest.approx([1] * 8 + [0.25] * 2)


def test_a_run_that_was_killed_while_it_waited_looks_again(model: Path, tmp_path: Path) -> None:
    """What was written after the last checkpoint, of step 2, is gone with what it said of a loss."""
    found = [START, SAME | {40}, HARMED, RECOVERING, RECOVERING, START]
    assert fine_tuned(model, tmp_path / "whole", right(found, returns=1), steps=10)[0]

    def end(progress: Progress) -> None:
        if progress.done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fine_tuned(model, tmp_path / "parts", right(found[:3], returns=1), steps=10, on_step=end)
    assert waited(tmp_path / "parts") == [4]
    assert fine_tuned(model, tmp_path / "parts", right(found[2:], returns=1), steps=10)[0]
    assert metrics(tmp_path / "parts") == metrics(tmp_path / "whole")


class Onward:
    """The verbs of a trainer that cannot go back."""

    def __init__(self, client: CpuTrainer) -> None:
        for verb in ("sample", "forward_backward", "optim_step", "save_state", "load_state"):
            setattr(self, verb, getattr(client, verb))


def test_weights_that_cannot_go_back_end_the_run(model: Path, tmp_path: Path) -> None:
    folder, remarks = TrainingFolder(tmp_path, {}), list[str]()
    hooks = Hooks(held_out=right([START, HARMED, HARMED], returns=3), remark=remarks.append)
    client: Any = Onward(CpuTrainer(model, SMALL))
    assert sft(client, EXAMPLES, SftConfig(steps=8, batch_size=4, save_every=0), folder, hooks)
    folder.close()
    assert metrics(tmp_path)[-1]["step"] == 4
    assert remarks[0].endswith("That is a loss; the run ends unless the next evaluation is better")
    assert "so the run ends here" in remarks[1]


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
