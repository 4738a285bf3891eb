# SPDX-License-Identifier: Apache-2.0
"""Which rounds are kept: a paired test whose level is spent over all rounds, and guards that must not get worse.

The levels of all tests add up to `alpha`, however many rounds there are, so the chance to keep some round that is no
better stays below `alpha`, however the tests depend (alpha-spending: J. Tian and A. Ramdas, "Online control of the
familywise error rate", Stat. Methods Med. Res. 30, 2021, arXiv:1910.04900).
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from newskills.base.errors import ConfigError
from newskills.base.paired import PairedDifference, mcnemar, paired_difference
from newskills.base.terminal import counted

Scores = Mapping[str, float]
"""Problem id → 1 (correct) or 0; what is unscored is missing."""


class GuardCheck(Struct, frozen=True, kw_only=True):
    """A guard in a round, against the initial model; points with their 95 % interval."""

    benchmark: str
    difference: float
    low: float
    high: float
    problems: int
    passed: bool


class GateTest(Struct, frozen=True, kw_only=True):
    """The test of a round on the held-out problems, in percent and points; `level` is what p must be below."""

    before: float
    after: float
    difference: float
    low: float
    high: float
    p_value: float
    level: float
    problems: int
    gained: int
    lost: int

    @property
    def better(self) -> bool:
        return self.difference > 0 and self.p_value < self.level


def gate_test(before: Scores, after: Scores, level: float) -> GateTest:
    """Compute the exact McNemar test on the problems that both have a score for. Raises ConfigError for fewer
    than two."""
    common = sorted(before.keys() & after.keys())
    comparison = _compare_common(before, after, common)
    return GateTest(
        before=100 * sum(before[name] for name in common) / len(common),
        after=100 * sum(after[name] for name in common) / len(common),
        difference=100 * comparison.difference,
        low=100 * comparison.low,
        high=100 * comparison.high,
        p_value=comparison.p_value,
        level=level,
        problems=len(common),
        gained=sum(after[name] > before[name] for name in common),
        lost=sum(after[name] < before[name] for name in common),
    )


def guard_check(benchmark: str, initial: Scores, after: Scores, margin: float) -> GuardCheck:
    """Check that a model is not worse than the initial one by `margin` points or more: the interval's lower end
    lies above -margin.

    Raises ConfigError for fewer than two problems with a score.
    """
    common = sorted(initial.keys() & after.keys())
    comparison = _compare_common(initial, after, common)
    return GuardCheck(
        benchmark=benchmark,
        difference=100 * comparison.difference,
        low=100 * comparison.low,
        high=100 * comparison.high,
        problems=len(common),
        passed=100 * comparison.low > -margin,
    )


def check_guard(benchmark: str, initial: Scores, margin: float) -> None:
    """Raise ConfigError for a guard with which no model could pass, not even the initial one."""
    check = guard_check(benchmark, initial, initial, margin)
    if not check.passed:
        raise ConfigError(
            f"The guard {benchmark} would fail even a model without any change: with {check.problems} problems a loss "
            f"of {-check.low:.1f} points cannot be excluded, and --margin is {margin:g}.",
            hint="Evaluate on more problems (++held_out), or raise --margin.",
        )


def check_gate(scores: Scores, level: float) -> None:
    """Raise ConfigError where no model could pass the first test, however good it is."""
    if why := why_closed(scores, level):
        raise ConfigError(
            f"The gate cannot open: {why}.", hint="Evaluate on more problems (++held_out), or on harder ones."
        )


def why_closed(scores: Scores, level: float) -> str:
    """Explain why no model could pass the next test, if so: too few problems are still wrong. Else empty."""
    wrong = sum(score < 1 for score in scores.values())
    if mcnemar(0, wrong) < level:
        return ""
    needed = next(count for count in range(wrong + 1, 1100) if mcnemar(0, count) < level)
    return (
        f"no gain could be told from chance any more: {wrong} of {counted(len(scores), 'held-out problem')} are wrong, "
        f"and p < {level:.2g} needs {needed} that turn correct"
    )


def _compare_common(before: Scores, after: Scores, common: list[str]) -> PairedDifference:
    if len(common) < 2:
        raise ConfigError(
            f"Only {counted(len(common), 'problem')} can be compared; the gate needs two at least.",
            hint="Evaluate on more problems (++held_out).",
        )
    return paired_difference([[before[name]] for name in common], [[after[name]] for name in common])
