# SPDX-License-Identifier: Apache-2.0
import random

import pytest

from newskills.base import paired, power


def answers(draw: random.Random, chances: list[float], samples: int) -> list[list[float]]:
    return [[float(draw.random() < p) for _ in range(samples)] for p in chances]


def test_the_variance_is_taken_apart() -> None:
    """Problems whose chance rises by 0 or 0.4: between 0.04; chance 0.3 or 0.7: within 0.21 on each side."""
    draw = random.Random(1)
    before = [0.3] * 4000
    after = [0.3 if i % 2 else 0.7 for i in range(4000)]
    found = power.measured(answers(draw, before, 4), answers(draw, after, 4), paired=True)
    assert found.between == pytest.approx(0.04, abs=0.008)
    assert found.within == pytest.approx(0.42, abs=0.01)
    assert found.of(4) == pytest.approx(found.between + found.within / 4)


def test_single_samples_promise_nothing_of_more() -> None:
    draw = random.Random(2)
    found = power.measured(answers(draw, [0.5] * 300, 1), answers(draw, [0.6] * 300, 1), paired=True)
    assert found.within == 0
    assert found.of(1) == found.of(16)


def test_unpaired_runs_need_more() -> None:
    draw = random.Random(3)
    chances = [draw.random() for _ in range(500)]
    before, after = answers(draw, chances, 4), answers(draw, chances, 4)
    there = [power.measured(before, after, paired=how).of(4) for how in (True, False)]
    assert there[1] > 1.5 * there[0]
    with pytest.raises(ValueError, match="two problems"):
        power.measured([[1.0]], [[0.0]], paired=False)


def test_what_is_needed_and_what_is_seen_agree() -> None:
    for variance, difference in ((0.3, 0.02), (0.05, 0.1)):
        problems = power.problems_needed(variance, difference)
        assert power.detectable_difference(variance, problems) == pytest.approx(difference, rel=0.01)
    assert power.problems_needed(0.3, 0.02, power=0.9) > power.problems_needed(0.3, 0.02)


@pytest.mark.slow
@pytest.mark.parametrize(("samples", "gain"), [(1, 0.08), (4, 0.06)])
def test_a_plan_gives_the_power_that_it_promises(
    samples: int, gain: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = random.Random(samples)

    def runs(n: int) -> tuple[list[list[float]], list[list[float]]]:
        chances = [draw.betavariate(2, 2) * (1 - gain) for _ in range(n)]
        return answers(draw, chances, samples), answers(draw, [p + gain for p in chances], samples)

    variance = power.measured(*runs(4000), paired=True).of(samples)
    problems = power.problems_needed(variance, gain)
    some = [runs(problems) for _ in range(5)]
    p_values = [paired.paired_difference(*pair).p_value for pair in some]
    monkeypatch.setattr(paired, "RESAMPLES", 2)  # for intervals, which are not looked at
    assert [paired.paired_difference(*pair).p_value for pair in some] == p_values
    seen = sum(paired.paired_difference(*runs(problems)).p_value < 0.05 for _ in range(400))
    assert 0.72 <= seen / 400 <= 0.88
