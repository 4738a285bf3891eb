# SPDX-License-Identifier: Apache-2.0
import random

import pytest

from newskills.base import paired, power, stats


def answers(draw: random.Random, chances: list[float], samples: int) -> list[list[float]]:
    return [[float(draw.random() < p) for _ in range(samples)] for p in chances]


def test_the_variance_is_taken_apart() -> None:
    """Problems whose chance rises by 0 or 0.4: between 0.04; chance 0.3 or 0.7: within 0.21 on each side."""
    draw = random.Random(1)
    before = [0.3] * 4000
    after = [0.3 if i % 2 else 0.7 for i in range(4000)]
    found = power.measured_variance(answers(draw, before, 4), answers(draw, after, 4), paired=True)
    assert found.between == pytest.approx(0.04, abs=0.008)
    assert found.within == pytest.approx(0.42, abs=0.01)
    assert found.of(4) == pytest.approx(found.between + found.within / 4)


def test_single_samples_promise_nothing_of_more() -> None:
    draw = random.Random(2)
    found = power.measured_variance(answers(draw, [0.5] * 300, 1), answers(draw, [0.6] * 300, 1), paired=True)
    assert found.within == 0
    assert found.of(1) == found.of(16)


def test_unpaired_runs_need_more() -> None:
    draw = random.Random(3)
    chances = [draw.random() for _ in range(500)]
    before, after = answers(draw, chances, 4), answers(draw, chances, 4)
    there = [power.measured_variance(before, after, paired=how).of(4) for how in (True, False)]
    assert there[1] > 1.5 * there[0]
    with pytest.raises(ValueError, match="two problems"):
        power.measured_variance([[1.0]], [[0.0]], paired=False)


def test_what_is_needed_and_what_is_seen_agree() -> None:
    for variance, difference in ((0.3, 0.02), (0.05, 0.1)):
        for samples in (1, 4):
            of_problem = power.DifferenceVariance(variance, 0.1)
            problems = power.problems_needed(of_problem, samples, difference)
            assert power.detectable_difference(of_problem, samples, problems) == pytest.approx(
                difference, rel=0.01
            )
    of_problem = power.DifferenceVariance(0.3, 0.0)
    assert power.problems_needed(of_problem, 1, 0.02, power=0.9) > power.problems_needed(of_problem, 1, 0.02)


def test_the_upper_bound_is_that_of_clopper_and_pearson() -> None:
    """Reference values: scipy.stats.binomtest(k, n).proportion_ci(0.90).high."""
    for count, n, bound in ((0, 20, 0.1391083), (1, 200, 0.0234985), (30, 100, 0.3842206), (5, 5, 1.0)):
        assert stats.upper_share(count, n) == pytest.approx(bound, abs=2e-6)


def test_a_bound_on_the_variance_holds_in_95_percent_of_the_runs() -> None:
    draw = random.Random(9)
    held = 0
    for _ in range(300):
        before, after = answers(draw, [0.9] * 100, 1), answers(draw, [0.9] * 100, 1)
        found = power.measured_variance(before, after, paired=True)
        held += power.upper_bound(found, power.problem_differences(before, after)).of(1) >= 0.18
    assert held / 300 >= 0.93


def test_a_large_gain_does_not_hide_how_many_problems_differ() -> None:
    before, after = [[0.0]] * 20, [[1.0]] * 20
    found = power.upper_bound(
        power.measured_variance(before, after, paired=True), power.problem_differences(before, after)
    )
    assert found.of(1) == pytest.approx(1.0)


def simulated(draw: random.Random, problems: int, discordance: float, difference: float, runs: int) -> float:
    """Power of the exact test: discordant pairs are drawn, then who wins each."""
    seen = 0
    for _ in range(runs):
        pairs = paired.binomial(draw, problems, discordance)
        won = paired.binomial(draw, pairs, (1 + difference / discordance) / 2)
        seen += paired.mcnemar(pairs - won, won) < 0.05
    return seen / runs


@pytest.mark.parametrize(
    ("problems", "discordance", "difference"),
    [
        (393, 0.01, 0.01),
        (790, 0.01, 0.01),
        (300, 0.3, 0.1),
        (1000, 0.1, 0.03),
        (1900, 0.21, 0.03),
        (2000, 0.25, 0.04),
    ],
)
def test_the_power_of_mcnemars_test_is_what_a_simulation_shows(
    problems: int, discordance: float, difference: float
) -> None:
    shown = simulated(random.Random(problems), problems, discordance, difference, 3000)
    assert power.mcnemar_power(problems, discordance, difference) == pytest.approx(shown, abs=0.025)


@pytest.mark.parametrize(("problems", "spread", "difference"), [(8, 1.0, 1.0), (30, 1.0, 0.5), (200, 0.4, 0.08)])
def test_the_power_of_the_t_test_is_what_a_simulation_shows(
    problems: int, spread: float, difference: float
) -> None:
    draw = random.Random(problems)
    seen = 0
    for _ in range(3000):
        mean, deviation = stats.mean_std([draw.gauss(difference, spread) for _ in range(problems)])
        seen += stats.t_two_sided(mean / (deviation / problems**0.5), problems - 1) < 0.05
    assert power.t_power(problems, spread**2, difference) == pytest.approx(seen / 3000, abs=0.025)


@pytest.mark.parametrize("discordant", [0, 1, 3, 10])
def test_a_plan_from_few_discordant_pairs_keeps_its_promise(discordant: int) -> None:
    """Whatever share of problems differs, up to what so few of 200 do not exclude: the plan has its power."""
    before = [[1.0]] * 200
    after = [[float(number >= discordant)] for number in range(200)]
    variance = power.upper_bound(
        power.measured_variance(before, after, paired=True), power.problem_differences(before, after)
    )
    problems = power.problems_needed(variance, 1, 0.01)
    assert problems >= 785
    draw = random.Random(discordant)
    for discordance in (0.01, max(0.01, discordant / 200), stats.upper_share(discordant, 200)):
        assert simulated(draw, problems, discordance, 0.01, 2000) >= 0.77


@pytest.mark.slow
@pytest.mark.parametrize(("samples", "gain"), [(1, 0.08), (4, 0.06)])
def test_a_plan_gives_the_power_that_it_promises(
    samples: int, gain: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = random.Random(samples)

    def runs(n: int) -> tuple[list[list[float]], list[list[float]]]:
        chances = [draw.betavariate(2, 2) * (1 - gain) for _ in range(n)]
        return answers(draw, chances, samples), answers(draw, [p + gain for p in chances], samples)

    problems = power.problems_needed(power.measured_variance(*runs(4000), paired=True), samples, gain)
    some = [runs(problems) for _ in range(5)]
    p_values = [paired.paired_difference(*pair).p_value for pair in some]
    monkeypatch.setattr(paired, "RESAMPLES", 2)  # for intervals, which are not looked at
    assert [paired.paired_difference(*pair).p_value for pair in some] == p_values
    seen = sum(paired.paired_difference(*runs(problems)).p_value < 0.05 for _ in range(400))
    assert 0.72 <= seen / 400 <= 0.88
