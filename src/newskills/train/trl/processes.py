# SPDX-License-Identifier: Apache-2.0
"""Several processes that train together (accelerate launch, torchrun): who writes, and how they agree."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


def agreed(value: T) -> T:
    """The value of the first process, in all of them."""
    from accelerate import PartialState
    from accelerate.utils import broadcast_object_list

    if PartialState().num_processes == 1:
        return value
    box = [value]
    broadcast_object_list(box)
    return box[0]


def gathered(values: list[T]) -> list[T]:
    """The values of all processes, in their order, in all of them."""
    from accelerate import PartialState
    from accelerate.utils import gather_object

    if PartialState().num_processes == 1:
        return values
    found: list[T] = gather_object(values)
    return found
