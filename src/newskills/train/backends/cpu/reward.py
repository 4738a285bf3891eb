# SPDX-License-Identifier: Apache-2.0
"""A reward model in this process: the cpu trainer's Llama with a head that makes one number of the last token.

On disk it is a LlamaForSequenceClassification with one label, as transformers, TRL and vLLM read it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from newskills.base.errors import ConfigError, DataError, TrainingError
from newskills.train.backends.cpu.layout import Layout
from newskills.train.backends.cpu.trainer import MICRO_TOKENS, CpuTrainer
from newskills.train.backends.cpu.weights import (
    LLAMA,
    REWARD_ARCHITECTURE,
    Shape,
    read_shape,
    read_tensors,
)
from newskills.train.convert.merge import HEAD, PREFIX
from newskills.train.loops.dpo import Pair
from newskills.train.loops.reward_model import PairScores
from newskills.train.verbs import NOT_FINITE

SPREAD = 0.02
"""Standard deviation of a new head's values, as transformers begins."""


class CpuRewardModel(CpuTrainer):
    """`model` is a causal model, which gets a new head, or a reward model."""

    head: Tensor

    def _read(self, model: Path, weights: Mapping[str, Tensor] | None) -> tuple[Shape, Mapping[str, Tensor]]:
        tensors = weights or read_tensors(model)
        shape = read_shape(model, (LLAMA,))
        if "lm_head.weight" not in tensors:  # a reward model has none
            shape = msgspec.structs.replace(shape, tie_word_embeddings=True)
        return shape, tensors

    def _trainable_tensors(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        if HEAD in tensors:
            head = tensors[HEAD].float().clone()
        else:
            head = new_head(self.model.shape.hidden_size, self.config.lora.seed)
        self.head = head.requires_grad_()
        return {**super()._trainable_tensors(tensors), f"{PREFIX}{HEAD}": self.head}

    def prefer(self, pairs: Sequence[Pair]) -> list[PairScores]:
        """Add the gradient of the mean loss; return the scores of the pairs. Raises TrainingError for a loss that is
        not finite, DataError."""
        scores: list[PairScores] = []
        for part in _micro_batches([_pair_sequences(pair) for pair in pairs]):
            values = self._values([sequence for pair in part for sequence in pair])
            loss = -F.logsigmoid(values[::2] - values[1::2]).sum() / len(pairs)
            if not torch.isfinite(loss):
                self.optimizer.zero_grad()
                raise TrainingError(
                    f"The loss of step {self.steps + 1} is {loss.item()}; training stopped.", hint=NOT_FINITE
                )
            loss.backward()
            scores += [
                PairScores(*two) for two in zip(*(values[side::2].tolist() for side in (0, 1)), strict=True)
            ]
        return scores

    def scores(self, pairs: Sequence[Pair]) -> list[PairScores]:
        """Compute scores without gradient. Raises DataError for a reply that is longer than the model's context."""
        values = self.values([sequence for pair in pairs for sequence in _pair_sequences(pair)])
        return [PairScores(*two) for two in zip(values[::2], values[1::2], strict=True)]

    def values(self, sequences: Sequence[Sequence[int]]) -> list[float]:
        """Return a number for each sequence of token ids. Raises DataError for one that does not fit."""
        with torch.inference_mode():
            parts = _micro_batches([(sequence,) for sequence in sequences])
            return [value for part in parts for value in self._values([only for (only,) in part]).tolist()]

    def _values(self, sequences: Sequence[Sequence[int]]) -> Tensor:
        context = self.model.shape.max_position_embeddings
        if (longest := max(map(len, sequences))) > context:
            raise DataError(f"A text of {longest} tokens does not fit into the model's context of {context}.")
        layout = Layout(sequences)
        ends = torch.tensor([len(sequence) for sequence in sequences]).cumsum(0) - 1
        last = self.model(layout)[layout.where[ends]]
        return last.float() @ self.head[0]


def new_head(width: int, seed: int) -> Tensor:
    """Return a new head [1, width] of random numbers."""
    return torch.randn(1, width, generator=torch.Generator().manual_seed(seed)) * SPREAD


def load_reward_model(folder: Path, threads: int = 0, dtype: str = "auto") -> CpuRewardModel:
    """Load the reward model of `folder`. Raises DataError, ConfigError for a folder with a model of another kind."""
    from newskills.train.backends.cpu.llama import LoraConfig
    from newskills.train.backends.cpu.trainer import CpuTrainerConfig

    if read_shape(folder, (LLAMA,)).architectures[0] != REWARD_ARCHITECTURE:
        raise ConfigError(
            f"{folder} is not a reward model: its config.json does not say {REWARD_ARCHITECTURE}.",
            hint="ns reward_model trains one.",
        )
    return CpuRewardModel(folder, CpuTrainerConfig(lora=LoraConfig(rank=1), dtype=dtype, threads=threads))


def _pair_sequences(pair: Pair) -> tuple[Sequence[int], Sequence[int]]:
    first, second = ([*reply.tokens, reply.targets[-1]] for reply in (pair.chosen, pair.rejected))
    return first, second


def _micro_batches(groups: Sequence[tuple[Sequence[int], ...]]) -> Iterator[list[tuple[Sequence[int], ...]]]:
    """Yield groups that are computed at once: of at most `MICRO_TOKENS`, or one alone."""
    part: list[tuple[Sequence[int], ...]] = []
    size = 0
    for group in groups:
        more = sum(map(len, group))
        if part and size + more > MICRO_TOKENS:
            yield part
            part, size = [], 0
        part.append(group)
        size += more
    if part:
        yield part
