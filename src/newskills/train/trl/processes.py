# SPDX-License-Identifier: Apache-2.0
"""Several processes that train together (accelerate launch, torchrun): how they agree."""

from __future__ import annotations

import os
from typing import TypeVar

from newskills.train.memory import Split

T = TypeVar("T")


def processes() -> int:
    """How many train together."""
    from accelerate import PartialState

    # The first who asks decides what the state is, for all who ask later.
    num_processes: int = PartialState(cpu=on_cpu()).num_processes
    return num_processes


def on_cpu() -> bool:
    """Whether nothing here computes but the CPU. Apple's GPU counts where PYTORCH_ENABLE_MPS_FALLBACK=1 says that the
    CPU does what it lacks.
    """
    import torch

    apple = os.environ.get("PYTORCH_ENABLE_MPS_FALLBACK") == "1" and torch.backends.mps.is_available()
    return not (torch.cuda.is_available() or apple)


def division() -> Split:
    """What accelerate launch was told to divide among the processes."""
    if os.environ.get("ACCELERATE_USE_FSDP", "").lower() == "true":
        return "fsdp"
    stages: dict[str, Split] = {"1": "zero1", "2": "zero2"}
    return stages.get(os.environ.get("ACCELERATE_DEEPSPEED_ZERO_STAGE", ""), "none")


def agreed(value: T) -> T:
    """The value of the first process, in all of them."""
    from accelerate.utils import broadcast_object_list

    if processes() == 1:
        return value
    box = [value]
    broadcast_object_list(box)
    return box[0]


def gathered(values: list[T]) -> list[T]:
    """The values of all processes, in their order, in all of them."""
    from accelerate.utils import gather_object

    if processes() == 1:
        return values
    all_values: list[T] = gather_object(values)
    return all_values
