# SPDX-License-Identifier: Apache-2.0
import math
import operator
import random
from statistics import fmean

import pytest

from newskills.train.loops.groups import Group, gradient_length, measured, sample_rows, weighted_advantages
from newskills.train.loops.grpo import GrpoConfig
from newskills.train.loops.samples import Judged, Problem, Rollout, SampledTurn
from newskills.train.settings import Baseline
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


def sampled(*chances: float) -> Rollout:
    """Tokens that the model gave these chances."""
    reply = Sampled(
        tokens=[1] * len(chances), logprobs=[math.log(chance) for chance in chances], stop_reason="stop"
    )
    return Rollout(turns=[SampledTurn([1], reply)], row={}, text="x", finish_reason="stop")


def test_unlikely_samples_weigh_more_in_the_baseline() -> None:
    rollouts = [sampled(0.9, 0.9), sampled(0.9, 0.1), sampled(0.5), sampled(0.2)]
    lengths = [0.1**2 + 0.1**2, 0.1**2 + 0.9**2, 0.5**2, 0.8**2]
    assert [gradient_length(rollout) for rollout in rollouts] == pytest.approx(lengths, abs=1e-5)
    rewards = [1.0, 0.0, 0.0, None]
    found = weighted_advantages(rewards, rollouts)
    baseline = lengths[0] / sum(lengths[:3])
    assert found == pytest.approx([1 - baseline, -baseline, -baseline, 0.0], abs=1e-5)
    assert baseline < 0.03  # where the mean is a third
    assert weighted_advantages([1.0, 1.0, None], rollouts[:3]) == [0.0] * 3
    assert weighted_advantages([1.0, 0.0], [sampled(1.0), sampled(1.0)]) == [0.5, -0.5]


def softmax_gradients(chances: list[float], draws: list[int], baseline: Baseline) -> list[float]:
    """The policy gradient of logits by a group of one-token samples, of which the first token is right."""
    rollouts = [sampled(chances[draw]) for draw in draws]
    rewards = [float(draw == 0) for draw in draws]
    config = GrpoConfig(steps=1, baseline=baseline)
    advantages = config.advantages(rewards, rollouts)
    return [
        sum(
            advantage * ((draw == token) - chances[token])
            for advantage, draw in zip(advantages, draws, strict=True)
        )
        for token in range(len(chances))
    ]


def test_the_weighted_baseline_makes_the_gradient_of_a_group_less_noisy() -> None:
    """One right answer of chance 0.6, and twenty wrong ones: the policy gradient is known."""
    chances = [0.6] + [0.02] * 20
    truth = [chances[0] * ((token == 0) - chance) for token, chance in enumerate(chances)]
    draw, cosines = random.Random(3), {}
    groups = [draw.choices(range(21), chances, k=8) for _ in range(400)]
    for name in ("mean", "weighted"):
        values = [softmax_gradients(chances, group, name) for group in groups]
        long = [value for value in values if any(value)]
        cosines[name] = fmean(
            sum(map(operator.mul, value, truth)) / math.hypot(*value) / math.hypot(*truth) for value in long
        )
    assert cosines["weighted"] > 0.95 > cosines["mean"]
