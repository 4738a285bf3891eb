# SPDX-License-Identifier: Apache-2.0
"""Several processes that train together (accelerate launch, torchrun): how they agree."""

from __future__ import annotations

import os
from typing import Any, TypeVar

from newskills.base.errors import ConfigError
from newskills.train.memory import Split

T = TypeVar("T")


def process_count() -> int:
    """Return how many processes train together."""
    from accelerate import PartialState

    # The first who asks decides what the state is, for all who ask later.
    num_processes: int = PartialState(cpu=on_cpu()).num_processes
    return num_processes


def on_cpu() -> bool:
    """Return whether nothing here computes but the CPU. Apple's GPU counts where PYTORCH_ENABLE_MPS_FALLBACK=1 says
    that the CPU does what it lacks.
    """
    import torch

    apple = os.environ.get("PYTORCH_ENABLE_MPS_FALLBACK") == "1" and torch.backends.mps.is_available()
    return not (torch.cuda.is_available() or apple)


def sharding_strategy() -> Split:
    """Return what accelerate launch was told to divide among the processes.

    Raises ConfigError for a DeepSpeed file of one's own that cannot be read.
    """
    if os.environ.get("ACCELERATE_USE_FSDP", "").lower() == "true":
        return "fsdp"
    stages: dict[str, Split] = {"1": "zero1", "2": "zero2", "3": "zero3"}
    return stages.get(_zero_stage(), "none")


def _zero_stage() -> str:
    """Return the stage as accelerate's DeepSpeedPlugin finds it: a file's word goes before the variable's, whose
    default is 2.
    """
    used = os.environ.get("ACCELERATE_USE_DEEPSPEED", "").lower() == "true"
    stage = os.environ.get("ACCELERATE_DEEPSPEED_ZERO_STAGE", "2" if used else "")
    own = _of_deepspeed_file("zero_optimization.stage", "auto")
    return stage if own in (None, "auto") else str(own)


def saves_zero3() -> bool:
    """Return whether checkpoints of ZeRO-3 hold the model: a file's word goes before the variable's. Raises
    ConfigError as `sharding_strategy`."""
    by_variable = os.environ.get("ACCELERATE_DEEPSPEED_ZERO3_SAVE_16BIT_MODEL", "false").lower() == "true"
    own = _of_deepspeed_file("zero_optimization.stage3_gather_16bit_weights_on_model_save", False)
    return by_variable if own is None else own is True


def _of_deepspeed_file(key: str, otherwise: object) -> Any:
    """Return a value of the DeepSpeed file of one's own, `otherwise` where it does not name it; None: there is no
    file."""
    config = os.environ.get("ACCELERATE_DEEPSPEED_CONFIG_FILE", "none")
    if config == "none":
        return None
    from accelerate.utils.deepspeed import HfDeepSpeedConfig

    try:
        return HfDeepSpeedConfig(config).get_value(key, otherwise)
    except (OSError, ValueError) as error:
        raise ConfigError(f"ACCELERATE_DEEPSPEED_CONFIG_FILE cannot be read: {error}") from error


def data_parallel_size() -> int:
    """Return among how many processes the sequences of a step are shared out: some may share one sequence."""
    return process_count() // int(os.environ.get("PARALLELISM_CONFIG_CP_SIZE", "1"))


def broadcast_from_first(value: T) -> T:
    """Return the value of the first process, in all of them."""
    from accelerate.utils import broadcast_object_list

    if process_count() == 1:
        return value
    box = [value]
    broadcast_object_list(box)
    return box[0]


def gather_all(values: list[T]) -> list[T]:
    """Return the values of all processes, in their order, in all of them."""
    from accelerate.utils import gather_object

    if process_count() == 1:
        return values
    all_values: list[T] = gather_object(values)
    return all_values
