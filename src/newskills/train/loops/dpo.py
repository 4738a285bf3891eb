# SPDX-License-Identifier: Apache-2.0
"""Direct preference optimisation (https://arxiv.org/abs/2305.18290): of two replies to one prompt, make one likelier.

With m = β · ((log p(chosen) − log p_ref(chosen)) − (log p(rejected) − log p_ref(rejected))), sums over the tokens of
a reply, the loss of a pair is −log σ(m), and that of a batch is the mean. Beside it, `sft_weight` times the mean of
−log p over the tokens of the chosen replies: without it, the loss is content if both replies become unlikely, the
rejected one more so (iterative RPO, https://arxiv.org/abs/2404.19733).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from types import TracebackType
from typing import ClassVar, NamedTuple

from msgspec import Struct

from newskills.base.errors import ConfigError, DataError
from newskills.base.store import AppendLog, read_rows
from newskills.train.loops.folder import TrainingFolder
from newskills.train.loops.method import MethodSettings
from newskills.train.loops.schedule import batch_at
from newskills.train.loops.sft import scaled
from newskills.train.loops.stepping import Hooks, TrainingSteps
from newskills.train.numbers import sigmoid, softplus
from newskills.train.settings import Schedule
from newskills.train.verbs import Datum, ReferenceClient, TrainingClient

REFERENCES = "reference.jsonl"
"""Log-probabilities under the initial model, one line per pair: {pair, chosen, rejected}."""


class Pair(Struct, frozen=True, kw_only=True):
    """Two replies to one prompt. Their weights are 1 on the tokens of the reply and 0 on the prompt."""

    chosen: Datum
    rejected: Datum


class DpoConfig(MethodSettings, frozen=True, kw_only=True):
    """steps of batch_size pairs; save_every steps a checkpoint (0 = only at the end)."""

    name: ClassVar[str] = "dpo"
    title: ClassVar[str] = "DPO"
    needs: ClassVar[type] = ReferenceClient

    steps: int
    batch_size: int = 8
    beta: float = 0.1
    sft_weight: float = 1.0
    learning_rate: float = 5e-5
    schedule: Schedule = "linear"
    warmup_steps: int = 0
    weight_decay: float = 0.0
    max_grad_norm: float = 1.0
    save_every: int = 20
    seed: int = 0

    def train(self, client: TrainingClient, data: Sequence[Pair], folder: TrainingFolder, hooks: Hooks) -> bool:
        """Train on pairs, as `dpo`."""
        return dpo(client, data, self, folder, hooks)


class PairLogprobs(NamedTuple):
    """Log-probabilities of the two replies of a pair, in nats."""

    chosen: float
    rejected: float


class PairLoss(NamedTuple):
    """Of one pair: its loss, the rewards β · (log p − log p_ref) of its replies, and the slope of the loss in m."""

    loss: float
    chosen_reward: float
    rejected_reward: float
    slope: float


def pair_loss(own: PairLogprobs, reference: PairLogprobs, beta: float) -> PairLoss:
    """Compute the loss at the log-probabilities of the model and of the reference."""
    chosen, rejected = beta * (own.chosen - reference.chosen), beta * (own.rejected - reference.rejected)
    margin = chosen - rejected
    return PairLoss(softplus(-margin), chosen, rejected, -sigmoid(-margin))


def dpo(
    client: TrainingClient,
    pairs: Sequence[Pair],
    config: DpoConfig,
    folder: TrainingFolder,
    hooks: Hooks = Hooks(),  # noqa: B008 - frozen
) -> bool:
    """Train from the last checkpoint of `folder` on; return whether the run has ended (False: it was stopped).

    The gradient is that of the loss, in two passes: one finds the log-probabilities, the other learns each reply with
    the slope that its pair has there as its weight. The reference is asked once per pair, with the first batch that
    holds it, so that it equals the model before the first step to the last digit; later epochs and a run that goes on
    read what it said.

    Raises DataError without pairs, ConfigError where the trainer has no reference weights, TrainingError where the
    loss is no number (the last checkpoint stays).
    """
    if not pairs:
        raise DataError("There is nothing to train on.", hint="Check the pairs of chosen and rejected replies.")
    if not isinstance(client, ReferenceClient):
        raise ConfigError(
            "This trainer has no reference weights, which DPO needs.", hint="Use --backend=cpu or --backend=trl."
        )

    with (
        ReferenceCache(folder.path / REFERENCES, writes=folder.writes) as cache,
        TrainingSteps(client, config, folder, hooks) as steps,
    ):
        for step in steps:
            places = batch_at(range(len(pairs)), step, config.batch_size, config.seed)
            data = _replies([pairs[place] for place in places])
            own = _by_pair(data, client.logprobs(data))
            if unknown := [place for place in places if place not in cache]:
                replies = _replies([pairs[place] for place in unknown])
                cache.add(unknown, _by_pair(replies, client.reference_logprobs(replies)))
            reference = [cache[place] for place in places]
            losses = [pair_loss(mine, theirs, config.beta) for mine, theirs in zip(own, reference, strict=True)]
            adam = steps.adam(step)
            measured = _measured(losses, own, data)
            measured["loss"] += config.sft_weight * measured["nll"]
            metrics = {**measured, "learning_rate": adam.learning_rate, "tokens": sum(map(token_count, data))}
            changed = {"grad_norm": 0.0}
            if weighted := _weighted(data, losses, config):
                client.forward_backward(weighted, "cross_entropy")
                changed = client.optim_step(adam)
            steps.done(metrics | changed)
    return steps.ended


class ReferenceCache:
    """What the initial model gives to pairs, by their place; on disk before it is used, so that no run asks twice.

    A context manager: the file is closed with it. Raises StorageError.
    """

    def __init__(self, path: Path, *, writes: bool) -> None:
        self._log = AppendLog(path) if writes else None
        rows = read_rows(path) if path.is_file() else ()
        self._known = {row["pair"]: PairLogprobs(row["chosen"], row["rejected"]) for row in rows}

    def __contains__(self, place: int) -> bool:
        return place in self._known

    def __getitem__(self, place: int) -> PairLogprobs:
        return self._known[place]

    def add(self, places: Sequence[int], logprobs: Sequence[PairLogprobs]) -> None:
        for place, both in zip(places, logprobs, strict=True):
            self._known[place] = both
            if self._log is not None:
                self._log.append({"pair": place, "chosen": both.chosen, "rejected": both.rejected})
        if self._log is not None:
            self._log.sync()

    def __enter__(self) -> ReferenceCache:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._log is not None:
            self._log.close()


def _replies(pairs: Sequence[Pair]) -> list[Datum]:
    """Put both replies of a pair beside each other, so that a trainer can compute their prompt once."""
    return [reply for pair in pairs for reply in (pair.chosen, pair.rejected)]


def _by_pair(data: Sequence[Datum], logprobs: Sequence[Sequence[float]]) -> list[PairLogprobs]:
    sums = reply_logprobs(data, logprobs)
    return [PairLogprobs(*two) for two in zip(sums[::2], sums[1::2], strict=True)]


def _weighted(data: Sequence[Datum], losses: Sequence[PairLoss], config: DpoConfig) -> list[Datum]:
    """Return the replies with the negative slope of the mean loss as their weights; none where a slope is 0."""
    likelier = config.sft_weight / sum(map(token_count, data[::2]))
    slopes = [config.beta * pair.slope / len(losses) for pair in losses]
    factors = [factor for slope in slopes for factor in (likelier - slope, slope)]
    return [scaled(datum, factor) for datum, factor in zip(data, factors, strict=True) if factor]


def _measured(losses: Sequence[PairLoss], own: Sequence[PairLogprobs], data: Sequence[Datum]) -> dict[str, float]:
    """Return means over the pairs, by TRL's names; `nll`: −log p of a token of the chosen replies."""
    return {
        "loss": fmean(pair.loss for pair in losses),
        "nll": -sum(pair.chosen for pair in own) / sum(map(token_count, data[::2])),
        "rewards/chosen": fmean(pair.chosen_reward for pair in losses),
        "rewards/rejected": fmean(pair.rejected_reward for pair in losses),
        "rewards/margins": fmean(pair.chosen_reward - pair.rejected_reward for pair in losses),
        "rewards/accuracies": fmean(float(pair.chosen_reward > pair.rejected_reward) for pair in losses),
    }


def reply_logprobs(data: Sequence[Datum], logprobs: Sequence[Sequence[float]]) -> list[float]:
    """Return log p of each reply: the sum over its tokens."""
    return [
        sum(weight * value for weight, value in zip(datum.weights or (), values, strict=True))
        for datum, values in zip(data, logprobs, strict=True)
    ]


def token_count(datum: Datum) -> float:
    """Return the number of tokens of a reply."""
    return sum(datum.weights or ())
