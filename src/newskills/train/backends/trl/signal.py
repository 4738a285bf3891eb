# SPDX-License-Identifier: Apache-2.0
"""The signal of a step (`newskills.train.loops.signal`) with TRL's trainer, where its parts are made of whole groups.

TRL shuffles the samples of a step before it divides them; here each part gets its groups back, which changes neither
the sum of their gradients nor any draw. Measured in one process that trains LoRA pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from transformers import TrainerCallback
from trl.trainer.utils import split_tensor_dict

from newskills.train.backends.trl.processes import process_count
from newskills.train.loops.grpo import GrpoConfig
from newskills.train.loops.signal import GradientMoments, StepSignal, moments_of
from newskills.train.settings import TrainerSettings

PLACE = "place_in_step"
"""Where a sample stood before TRL shuffled it."""


def can_measure(config: GrpoConfig, settings: TrainerSettings, arguments: dict[str, Any]) -> bool:
    """Return whether the parts of a step are several, and hold whole groups."""
    whole = arguments["per_device_train_batch_size"] % config.group_size == 0
    several = arguments["gradient_accumulation_steps"] > 1
    return whole and several and config.iterations == 1 and settings.weights == "lora" and process_count() == 1


class GradientParts:
    """What each part of a step adds to the gradient."""

    def __init__(self, parameters: Sequence[torch.Tensor]) -> None:
        self._parameters = [parameter for parameter in parameters if parameter.requires_grad]
        self.reset()

    def reset(self) -> None:
        """Forget the parts of a step."""
        self._before = [torch.zeros_like(parameter) for parameter in self._parameters]
        self._halves = [[torch.zeros_like(parameter) for parameter in self._parameters] for _ in range(2)]
        self._squares, self.count = 0.0, 0

    def add(self) -> None:
        """Take the gradient so far, to which a part has just been added."""
        pairs = zip(self._parameters, self._before, strict=True)
        now = [
            before if parameter.grad is None else parameter.grad.detach().clone() for parameter, before in pairs
        ]
        part = torch._foreach_sub(now, self._before)
        torch._foreach_add_(self._halves[self.count % 2], part)
        self._squares += sum(value.square().sum().item() for value in part)
        self._before, self.count = now, self.count + 1

    def moments(self) -> GradientMoments:
        """Return the sums over the parts."""
        lengths = [sum(value.square().sum().item() for value in half) for half in self._halves]
        pairs = zip(*self._halves, strict=True)
        across = sum(torch.dot(left.flatten(), right.flatten()).item() for left, right in pairs)
        return moments_of(self._squares, (lengths[0], lengths[1]), across)


class SignalMeter(TrainerCallback):  # type: ignore[misc]  # of a package whose types are not read
    """Measures each step of a trainer. `metrics`: of the last step.

    The learning rate does not follow the signal here: how a step is divided must not change what is learnt.
    """

    def __init__(self, signal: StepSignal, parameters: Sequence[torch.Tensor], groups: int) -> None:
        """Prepare for parts of so many `groups`."""
        self._signal, self._groups = signal, groups
        self.parts = GradientParts(parameters)
        self.metrics: dict[str, float] = {}

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Measure the parts, once all of them are there."""
        self.metrics = self._signal.measured([self._groups] * self.parts.count, self.parts.moments())
        self.parts.reset()


class MeasuredParts:
    """Put before GRPOTrainer. `meter` is set before training begins, where steps can be measured."""

    meter: SignalMeter | None = None

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        outputs: dict[str, Any] = super()._generate_and_score_completions(inputs)  # type: ignore[misc]
        if self.meter is not None:
            outputs[PLACE] = torch.arange(len(outputs["completion_ids"]))
        return outputs

    def _prepare_inputs(self, generation_batch: Any) -> Any:
        this: Any = self
        before = this._buffered_inputs
        inputs = super()._prepare_inputs(generation_batch)  # type: ignore[misc]
        if self.meter is None or this._buffered_inputs is before:
            return inputs
        this._buffered_inputs = in_order(this._buffered_inputs)
        return this._buffered_inputs[this._step % this.args.steps_per_generation]

    def training_step(self, *args: Any, **kwargs: Any) -> Any:
        loss = super().training_step(*args, **kwargs)  # type: ignore[misc]
        if self.meter is not None:
            self.meter.parts.add()
        return loss


def in_order(parts: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return parts of the same sizes with the samples in the order in which they were drawn."""
    order = torch.cat([part[PLACE] for part in parts]).argsort()
    joined: dict[str, Any] = {}
    for name, value in parts[0].items():
        if isinstance(value, torch.Tensor) and value.ndim:
            joined[name] = torch.cat([part[name] for part in parts])[order.to(value.device)]
        elif isinstance(value, list):
            every = [item for part in parts for item in part[name]]
            joined[name] = [every[place] for place in order.tolist()]
        else:
            joined[name] = value
    divided: list[dict[str, Any]] = split_tensor_dict(joined, len(parts))
    return divided
