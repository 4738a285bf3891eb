# SPDX-License-Identifier: Apache-2.0
"""How much of a step's gradient is signal, and how many groups it would take to have more of it.

The gradient of a step is the mean of those of its groups. It is computed in a few parts, of several groups each: from
the lengths of what each part adds and of the sum follow, without bias, the squared length |G|² of the true gradient and
the trace tr Σ of the covariance of one group (https://arxiv.org/abs/1812.06162, appendix A). tr Σ / |G|² is the noise
scale in groups, and two independent steps of n groups have an expected cosine of about n / (n + noise scale): the
signal, from 0 (chance) to 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from statistics import fmean
from typing import Protocol, runtime_checkable

from msgspec import Struct

from newskills.base.errors import ConfigError
from newskills.train.loops.folder import KeptStateLog, TrainingLog
from newskills.train.loops.remarks import FEW, spread_share
from newskills.train.loops.traces import MAX_LOGPROB_DIFF, TrainingSequence
from newskills.train.verbs import Datum, LossConfig, LossName, LossOutput, TrainingClient

POOLED_STEPS = 20
"""So many of the latest steps are pooled: that of a single one is mostly chance itself."""
FIRST_STEPS = 5
"""Before so many steps are measured, nothing is said or decided by them."""
PARTS = 4
"""In so many parts a step is measured: more of them take longer where samples are short."""
WEAK = 0.3
"""A signal below this is told: most of what a step does to the weights is then a random walk."""
ADVISED_SHARE = 10
"""An estimate of more groups than so many times `max_groups` is not told: it is of a gradient that is all noise."""
GRADIENT, NOISE = "gradient_square", "gradient_variance"
"""Metrics of single steps: the estimates of |G|² and of tr Σ."""


class GradientMoments(Struct, frozen=True, kw_only=True):
    """Sums over the gradients that parts have added to that of a step.

    squares  sum of the squared lengths of what each part added
    total    squared length of their sum, which is the gradient of the step
    cosine   between the sums of every other part and of the rest; None where one of both is empty
    """

    squares: float
    total: float
    cosine: float | None


def moments_of(squares: float, halves: tuple[float, float], across: float) -> GradientMoments:
    """Return the moments, from the squared lengths of the sums of every other part and of the rest, and their inner
    product."""
    return GradientMoments(
        squares=squares,
        total=max(0.0, sum(halves) + 2 * across),
        cosine=across / math.sqrt(halves[0] * halves[1]) if all(halves) else None,
    )


@runtime_checkable
class GroupGradientClient(Protocol):
    """Weights that can tell the gradients of parts of a step apart."""

    def forward_backward_parts(
        self, parts: Sequence[Sequence[Datum]], loss: LossName, config: LossConfig | None = None
    ) -> tuple[LossOutput, GradientMoments]:
        """Add the gradient of the loss, as `forward_backward` of all data, and measure that of each part."""
        ...


@runtime_checkable
class KeptWeightsClient(Protocol):
    """Weights that can be compared with saved ones."""

    def kept_logprobs(self, data: Sequence[Datum], state: str, temperature: float = 1.0) -> list[list[float]]:
        """Return log-probabilities under the weights of a saved state; empty: those before any training."""
        ...


class SignalConfig(Protocol):
    """The settings of a loop that the signal depends on."""

    @property
    def batch_size(self) -> int: ...
    @property
    def temperature(self) -> float: ...
    @property
    def min_signal(self) -> float: ...
    @property
    def max_groups(self) -> int: ...


class StepSignal:
    """Measures the gradient of each step, and decides how many groups the next one takes."""

    def __init__(self, config: SignalConfig, folder: TrainingLog, remark: Callable[[str], None]) -> None:
        self._config, self._folder, self._remark = config, folder, remark
        self._told = 0

    def check(self, client: TrainingClient) -> None:
        """Raise ConfigError for a `min_signal` where the client cannot tell groups apart."""
        if self._config.min_signal and not isinstance(client, GroupGradientClient):
            raise ConfigError(
                "This trainer cannot measure the gradients of groups, which ++min_signal needs.",
                hint="Leave it out and set a larger ++batch_size, or use --backend=cpu.",
            )

    def wanted(self) -> int:
        """Return the number of groups with which the next step reaches `min_signal`, from `batch_size` up to
        `max_groups`."""
        config = self._config
        gradients, noises = self._history()
        if not config.min_signal or len(gradients) < FIRST_STEPS:
            return config.batch_size
        groups = groups_for(config.min_signal, noise_scale(gradients, noises))
        wanted = int(min(max(groups, config.batch_size), max(config.max_groups, config.batch_size)))
        if wanted > config.batch_size and wanted != self._told:
            self._told = wanted
            signal = signal_of(config.batch_size, noise_scale(gradients, noises))
            self._remark(
                f"signal {signal:.2f} of 1: {config.batch_size} groups are too few, taking {wanted}"
                f"{' (++max_groups)' if wanted < groups else ''}"
            )
        return wanted

    def backward(
        self,
        client: TrainingClient,
        learnt: Sequence[TrainingSequence],
        groups: int,
        loss: LossName,
        bounds: LossConfig | None,
    ) -> tuple[LossOutput, dict[str, float]]:
        """Add the gradient of the sequences to learn from, which are of so many `groups` in order; return what it is
        like, as far as the client can tell parts apart."""
        if not isinstance(client, GroupGradientClient):
            return client.forward_backward([sequence.datum for sequence in learnt], loss, bounds), {}
        count = min(groups, PARTS)
        starts = [groups * part // count for part in range(count + 1)]
        parts = [
            [sequence.datum for sequence in learnt if start <= sequence.group < end]
            for start, end in pairwise(starts)
        ]
        output, moments = client.forward_backward_parts([part for part in parts if part], loss, bounds)
        return output, self.measured([end - start for start, end in pairwise(starts)], moments)

    def kept_gap(self, client: TrainingClient, learnt: Sequence[TrainingSequence]) -> dict[str, float]:
        """Return the divergence from the weights that are kept so far, the best by held-out problems, in nats a token,
        by a sample of each group."""
        if not isinstance(client, KeptWeightsClient) or not isinstance(self._folder, KeptStateLog):
            return {}
        learnt = list({sequence.group: sequence for sequence in reversed(learnt)}.values())
        data = [sequence.datum for sequence in learnt]
        kept = client.kept_logprobs(data, self._folder.kept_state(), self._config.temperature)
        gaps = [
            max(-MAX_LOGPROB_DIFF, min(MAX_LOGPROB_DIFF, logprobs[place] - own[place]))
            for sequence, logprobs in zip(learnt, kept, strict=True)
            for own in (sequence.datum.logprobs or (),)
            for place in sequence.written
        ]
        return {"kl_kept": fmean(math.expm1(gap) - gap for gap in gaps)}

    def measured(self, sizes: Sequence[int], moments: GradientMoments) -> dict[str, float]:
        """Return what a step of parts of so many groups is like, with the steps before it; tell once where that is
        weak."""
        groups = sum(sizes)
        if groups < 2:
            return {}
        gradient, noise = estimates(sizes, moments)
        gradients, noises = self._history()
        scale = noise_scale([*gradients, gradient], [*noises, noise])
        metrics = {GRADIENT: gradient, NOISE: noise, "signal": signal_of(groups, scale)}
        if math.isfinite(scale):
            metrics["noise_scale"] = scale
        if moments.cosine is not None:
            metrics["halves_cosine"] = moments.cosine
        self._tell_weak(len(gradients) + 1, groups, scale)
        return metrics

    def _tell_weak(self, steps: int, groups: int, scale: float) -> None:
        """Tell once that the signal is weak, and what would make it stronger."""
        if self._told or self._config.min_signal or steps < FIRST_STEPS or signal_of(groups, scale) >= WEAK:
            return
        if spread_share(self._folder) < FEW:  # more groups without spread are no remedy: `flat_remark` has one
            return
        self._told = groups
        more = groups_for(WEAK, scale)
        if more <= ADVISED_SHARE * self._config.max_groups:
            advice = f", about {more:.0f} would give {WEAK}"
        else:
            advice = "; the gradient cannot be told from noise yet"
        self._remark(
            f"signal {signal_of(groups, scale):.2f} of 1: {groups} groups are too few{advice}. Set "
            f"++min_signal={WEAK} (or a larger ++batch_size); ++control=shuffled shows how much of a change is chance."
        )

    def _history(self) -> tuple[list[float], list[float]]:
        """Return the estimates of earlier steps."""
        gradients, noises = (
            [value for _, value in self._folder.scores(name)][-POOLED_STEPS:] for name in (GRADIENT, NOISE)
        )
        return gradients, noises


def estimates(sizes: Sequence[int], moments: GradientMoments) -> tuple[float, float]:
    """Return the unbiased estimates of |G|², which may be negative, and of tr Σ; `sizes`: groups of each part.

    A part of m of n groups adds Σ g / n, so that squares and total are expected to be |G|² Σ m² / n² + tr Σ / n and
    |G|² + tr Σ / n.
    """
    groups = sum(sizes)
    share = sum(size * size for size in sizes) / groups**2
    gradient = (moments.total - moments.squares) / (1 - share)
    return gradient, groups * (moments.total - gradient)


def noise_scale(gradients: Sequence[float], noises: Sequence[float]) -> float:
    """Return tr Σ / |G|², pooled over steps; infinite where no gradient was seen through the noise."""
    gradient, noise = sum(gradients), sum(noises)
    if gradient > 0:
        return noise / gradient
    return math.inf


def signal_of(groups: int, scale: float) -> float:
    """Return the expected cosine of the gradients of two independent steps of so many groups."""
    return groups / (groups + scale)


def groups_for(signal: float, scale: float) -> float:
    """Return the number of groups for a signal, rounded up; infinite where the noise scale is."""
    if math.isfinite(scale):
        return math.ceil(round(signal / (1 - signal) * scale, 6))
    return math.inf
