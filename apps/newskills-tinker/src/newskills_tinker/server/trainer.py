# SPDX-License-Identifier: Apache-2.0
"""The cpu trainer with what a service needs besides the verbs: passes without gradient, states of other runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import torch
from torch import Tensor

from newskills.base.errors import DataError
from newskills.train.backends.cpu.adamw import MOMENTS
from newskills.train.backends.cpu.llama import LoraConfig
from newskills.train.backends.cpu.trainer import ADAPTER, OPTIMIZER, STATE, CpuTrainer
from newskills.train.verbs import Datum, LossConfig, LossName, LossOutput


class ServedTrainer(CpuTrainer):
    all_logprobs = True

    def check(self, data: Sequence[Datum]) -> None:
        """Raise DataError for no data, and for tokens that the model does not know."""
        if not data:
            raise DataError("The request has no data.")
        for index, datum in enumerate(data):
            if len(datum.tokens) != len(datum.targets):
                raise DataError(
                    f"Datum {index} has {len(datum.tokens)} tokens but {len(datum.targets)} target_tokens; "
                    "the input is x[:-1], the targets are x[1:]."
                )
            self.check_tokens(datum.tokens, f"Datum {index}")
            self.check_tokens(datum.targets, f"Datum {index}")

    def check_tokens(self, tokens: Sequence[int], what: str) -> None:
        """Raise DataError where there is no token, or one that the model does not know."""
        size = self.model.shape.vocab_size
        if not tokens:
            raise DataError(f"{what} has no tokens.")
        if wrong := [token for token in tokens if not 0 <= token < size]:
            raise DataError(f"{what} has the token {wrong[0]}; the model's vocabulary has {size}.")

    def forward(self, data: Sequence[Datum], loss: LossName, config: LossConfig) -> LossOutput:
        """Compute what `forward_backward` does, without gradient."""
        total, logprobs = 0.0, []
        with torch.no_grad():
            for part in self._parts(data):
                value, part_logprobs = self._pass(part, loss, config)
                total += value.item()
                logprobs += part_logprobs
        return LossOutput(loss=total, logprobs=logprobs)

    def scores(self, tokens: Sequence[int]) -> list[float | None]:
        """Return the log-probability of each token after those before it; None for the first."""
        if len(tokens) < 2:
            return [None] * len(tokens)
        datum = Datum(tokens=tokens[:-1], targets=tokens[1:], weights=[1.0] * (len(tokens) - 1))
        return [None, *self.forward([datum], "cross_entropy", LossConfig()).logprobs[0]]

    def pairs(self) -> dict[str, Tensor]:
        """Return a copy of the LoRA matrices."""
        return {name: value.detach().clone() for name, value in self.named.items()}

    def load_pairs(self, pairs: Mapping[str, Tensor]) -> None:
        with torch.no_grad():
            for name, value in self.named.items():
                value.copy_(pairs[name])

    def restore(self, folder: Path, *, optimizer: bool) -> None:
        """Restore the weights of a saved state, whatever they began with; the optimizer's too, or a fresh one.

        Raises DataError for a state of other shapes.
        """
        pairs = read_pairs(folder)
        moments: dict[str, Tensor] = {}
        steps = 0
        if optimizer:
            moments, steps = _load_tensors(folder / OPTIMIZER), _read_state(folder).steps
        for name, value in self.named.items():
            if name not in pairs or pairs[name].shape != value.shape:
                raise DataError(f"{folder} does not fit this model: {name} is missing or of another shape.")
        self.load_pairs(pairs)
        self.optimizer.state.clear()
        self.optimizer.zero_grad()
        if steps:
            for name, value in self.named.items():
                self.optimizer.restore(value, steps, [moments[f"{name}.{moment}"] for moment in MOMENTS])
        self.steps = steps


class SavedState(msgspec.Struct, frozen=True):
    """What a saved state says of itself, as far as it matters here."""

    lora: LoraConfig
    steps: int


def read_pairs(folder: Path) -> dict[str, Tensor]:
    """Read the LoRA matrices of a saved state or adapter. Raises DataError."""
    return _load_tensors(folder / ADAPTER)


def _read_state(folder: Path) -> SavedState:
    try:
        return msgspec.json.decode((folder / STATE).read_bytes(), type=SavedState)
    except (OSError, msgspec.DecodeError) as error:
        raise DataError(
            f"{folder} contains no optimizer state: {error}.",
            hint="Load its weights alone, or a state from `weights/`.",
        ) from error


def _load_tensors(path: Path) -> dict[str, Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file(path)
    except (OSError, SafetensorError) as error:
        raise DataError(f"{path} cannot be read: {error}.") from error
