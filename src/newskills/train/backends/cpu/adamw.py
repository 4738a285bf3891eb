# SPDX-License-Identifier: Apache-2.0
"""Adam with decoupled weight decay (https://arxiv.org/abs/1711.05101), with the numbers of torch.optim.AdamW.

torch's own loads torch's compiler when it is made, a third of the CPU time that a training takes before its first step.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from newskills.train.verbs import AdamParams

MOMENTS = ("exp_avg", "exp_avg_sq")
STEP = "step"


class AdamW:
    """`state`: of each parameter that has been stepped, its moments and how often it was."""

    def __init__(self, parameters: Sequence[Tensor]) -> None:
        self._parameters = list(parameters)
        self.state: dict[Tensor, dict[str, Tensor]] = {}

    def zero_grad(self) -> None:
        for parameter in self._parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self, adam: AdamParams) -> None:
        """Move all parameters that have a gradient."""
        stepped = [parameter for parameter in self._parameters if parameter.grad is not None]
        if not stepped:
            return
        gradients = [parameter.grad for parameter in stepped if parameter.grad is not None]
        states = [self._state_of(parameter) for parameter in stepped]
        means, squares = ([state[name] for state in states] for name in MOMENTS)
        for state in states:
            state[STEP] += 1
        steps = [float(state[STEP]) for state in states]
        if adam.weight_decay:
            torch._foreach_mul_(stepped, 1 - adam.learning_rate * adam.weight_decay)
        torch._foreach_lerp_(means, gradients, 1 - adam.beta1)
        torch._foreach_mul_(squares, adam.beta2)
        torch._foreach_addcmul_(squares, gradients, gradients, 1 - adam.beta2)
        scales = torch._foreach_sqrt(squares)
        torch._foreach_div_(scales, [(1 - adam.beta2**step) ** 0.5 for step in steps])
        torch._foreach_add_(scales, adam.eps)
        torch._foreach_addcdiv_(
            stepped, means, scales, [-adam.learning_rate / (1 - adam.beta1**step) for step in steps]
        )

    def restore(self, parameter: Tensor, steps: int, moments: Sequence[Tensor]) -> None:
        """Restore the state of a parameter after so many steps; `moments` in the order of `MOMENTS`."""
        self.state[parameter] = {STEP: torch.tensor(float(steps)), **dict(zip(MOMENTS, moments, strict=True))}

    def _state_of(self, parameter: Tensor) -> dict[str, Tensor]:
        if parameter not in self.state:
            self.restore(parameter, 0, [torch.zeros_like(parameter) for _ in MOMENTS])
        return self.state[parameter]
