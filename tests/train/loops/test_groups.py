# SPDX-License-Identifier: Apache-2.0
import pytest

from newskills.train.loops.groups import Group, measured, sample_rows
from newskills.train.loops.samples import Judged, Problem, Rollout, SampledTurn
from newskills.train.verbs import Sampled


def group(*judged: Judged) -> Group:
    problem = Problem([1], {"problem": "?"})
    turn = SampledTurn([1], Sampled(tokens=[1], logprobs=[0.0], stop_reason="stop"))
    rollout = Rollout(turns=[turn], row=problem.row, text="x", finish_reason="stop")
    return Group(problem, [rollout] * len(judged), list(judged), [[0.0]] * len(judged))


def test_components_of_rewards_are_measured_and_kept() -> None:
    found = [
        Judged(1.1, True, "4", "correct", {"verdict": 1.0, "box": 0.1}),
        Judged(-0.5, False, None, "no_answer", {"verdict": -0.5, "box": 0.0}),
        Judged(None, False, None, "unscored", why="grader: it broke"),
    ]
    means = measured([group(*found)])
    assert means["reward"] == pytest.approx(0.3)
    assert (means["reward/verdict"], means["reward/box"], means["unscored"]) == (0.25, 0.05, 1.0)
    shown = sample_rows([group(*found)], 1)[0]["responses"]
    assert [one.get("components") for one in shown] == [found[0].components, found[1].components, None]


def test_a_reward_of_one_component_is_measured_once() -> None:
    means = measured([group(Judged(1.0, True, "4", "correct", {"verdict": 1.0}))])
    assert means["reward"] == 1.0
    assert not any(name.startswith("reward/") for name in means)
