# SPDX-License-Identifier: Apache-2.0
"""Several processes that train together (accelerate launch, torchrun): how they agree."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


def processes() -> int:
    """How many train together."""
    import torch
    from accelerate import PartialState

    # The first who asks decides what the state is, for all who ask later.
    found: int = PartialState(cpu=not torch.cuda.is_available()).num_processes
    return found


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
    found: list[T] = gather_object(values)
    return found
