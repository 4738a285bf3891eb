# SPDX-License-Identifier: Apache-2.0
"""Rollouts as sequences to learn from, in the token ids that were sampled.

What the model did not write (prompts, outputs of code and tools, a chat template's turns) stands in the sequences
that are learnt from, but has neither advantage nor log-probability, so that no loss counts it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

import msgspec
from msgspec import Struct

from newskills.base.errors import TrainingError
from newskills.train.loops.samples import Rollout
from newskills.train.verbs import CLIPS, Datum, LossConfig, LossName, LossOutput, ReferenceClient

MAX_LOGPROB_DIFF, MAX_TOKEN_KL = 20.0, 10.0
"""Bounds of a difference of log-probabilities, and of the divergence of one token."""
STRANGE = 3.0
"""Mean difference of log-probabilities in nats that no rounding and no staleness explains."""


class TrainingSequence(Struct, frozen=True):
    """A sequence to learn from, the places of the targets that the model wrote, and the number of its group."""

    datum: Datum
    written: Sequence[int]
    group: int = 0


def traces(rollout: Rollout, advantages: Sequence[float]) -> list[TrainingSequence]:
    """Return sequences for a policy loss; `advantages` of each turn.

    A turn that goes on from a sequence is added to it; where a template shows earlier turns differently later on, or
    another player begins, another sequence begins, in which earlier turns are only read.
    """
    made: list[_Growing] = []
    for turn, advantage in zip(rollout.turns, advantages, strict=True):
        prompt = list(turn.prompt)
        own = next((seq for seq in reversed(made) if prompt[: len(seq.tokens)] == seq.tokens), None)
        if own is None:
            own = _Growing(tokens=[], values=[])
            made.append(own)
        own.tokens = prompt
        for token, logprob in zip(turn.sampled.tokens, turn.sampled.logprobs, strict=True):
            own.values.append((len(own.tokens) - 1, logprob, advantage))
            own.tokens.append(token)
    return [_trace(seq.tokens, seq.values) for seq in made if seq.values]


class _Growing(Struct):
    """A sequence so far: its tokens, and (place, log-probability, advantage) of those that the model wrote."""

    tokens: list[int]
    values: list[tuple[int, float, float]]


def _trace(tokens: Sequence[int], values: Sequence[tuple[int, float, float]]) -> TrainingSequence:
    logprobs, advantages = [0.0] * (len(tokens) - 1), [0.0] * (len(tokens) - 1)
    for place, logprob, advantage in values:
        logprobs[place], advantages[place] = logprob, advantage
    datum = Datum(tokens=tokens[:-1], targets=tokens[1:], logprobs=logprobs, advantages=advantages)
    return TrainingSequence(datum, [place for place, *_ in values])


def sampler_gap(learnt: Sequence[TrainingSequence], output: LossOutput, cap: float) -> dict[str, float]:
    """Return `gap_metrics` of the tokens that the model wrote."""
    return gap_metrics(
        [
            output.logprobs[index][place] - (trace.datum.logprobs or ())[place]
            for index, trace in enumerate(learnt)
            for place in trace.written
        ],
        cap,
    )


def gap_metrics(gaps: Sequence[float], cap: float) -> dict[str, float]:
    """Measure how far the trainer's log-probabilities p are from the sampler's q; `gaps` = log p − log q of tokens.

    sampler_kl      mean of r − 1 − log r with r = p / q, an estimate of KL(q ‖ p)
                    (http://joschu.net/blog/kl-approx.html)
    importance_cut  share of the importance weights r above `cap`, where there is one

    Raises TrainingError where they have nothing in common: the sampler is another model.
    """
    if not gaps:
        return {}
    if (apart := fmean(map(abs, gaps))) > STRANGE:
        raise TrainingError(
            f"The log-probabilities of sampler and trainer differ by {apart:.1f} per token: they are not the same "
            "model, or number their tokens differently.",
            hint="Checkpoints are kept. Serve the sampler from the model folder that is trained, with its tokenizer.",
        )
    bounded = [min(max(gap, -20.0), 20.0) for gap in gaps]
    metrics = {"sampler_kl": fmean(math.expm1(gap) - gap for gap in bounded)}
    if cap:
        metrics["importance_cut"] = fmean(math.exp(gap) > cap for gap in bounded)
    return metrics


def policy_metrics(
    learnt: Sequence[TrainingSequence], output: LossOutput, loss: LossName, config: LossConfig
) -> dict[str, float]:
    """Measure the policy on what it learns from, by TRL's names; `output` is that of the last pass.

    entropy                 mean of −log p of what was sampled, an estimate of it
    ratio                   mean of p / q: of the policy that learns, and of the one that sampled
    clip_ratio/region_mean  share of the tokens that a clipped loss learns nothing from, as p is too far from q
    """
    logprobs: list[float] = []
    ratios: list[float] = []
    clipped: list[bool] = []
    low, high = config.bounds(loss) if loss in CLIPS else (0.0, math.inf)
    for values, trace in zip(output.logprobs, learnt, strict=True):
        datum, own = trace.datum, [values[place] for place in trace.written]
        old, advantages = datum.logprobs or (), datum.advantages or ()
        gaps = [value - old[place] for value, place in zip(own, trace.written, strict=True)]
        if loss == "gspo":
            gaps = [fmean(gaps)] * len(gaps)
        changes = [math.exp(min(max(gap, -20.0), 20.0)) for gap in gaps]
        logprobs += own
        ratios += changes
        clipped += [
            ratio < low if advantages[place] < 0 else ratio > high and advantages[place] > 0
            for ratio, place in zip(changes, trace.written, strict=True)
        ]
    if not logprobs:
        return {}
    metrics = {"entropy": -fmean(logprobs), "ratio": fmean(ratios)}
    return metrics | ({"clip_ratio/region_mean": fmean(clipped)} if loss in ("ppo", "gspo") else {})


def held_back(
    client: ReferenceClient, learnt: Sequence[TrainingSequence], weight: float, temperature: float = 1.0
) -> tuple[list[TrainingSequence], float]:
    """Return the data with the divergence from the reference weights folded into their advantages, and its mean.

    With d = log p_ref − log p, an advantage of d has the gradient of the
    reverse divergence, without bias (as https://arxiv.org/abs/2512.02556 corrects k3); its mean is estimated by
    k3 = exp(d) − d − 1, both at `temperature` (http://joschu.net/blog/kl-approx.html), cut at |d| = 20 and k3 = 10.
    """
    values: list[float] = []
    penalised = []
    references = client.reference_logprobs([trace.datum for trace in learnt], temperature)
    for trace, reference in zip(learnt, references, strict=True):
        datum = trace.datum
        advantages, own = list(datum.advantages or ()), datum.logprobs or ()
        for place in trace.written:
            gap = min(max(reference[place] - own[place], -MAX_LOGPROB_DIFF), MAX_LOGPROB_DIFF)
            values.append(min(math.exp(gap) - gap - 1, MAX_TOKEN_KL))
            advantages[place] += weight * gap
        changed = msgspec.structs.replace(datum, advantages=advantages)
        penalised.append(msgspec.structs.replace(trace, datum=changed))
    return penalised, fmean(values)
