# SPDX-License-Identifier: Apache-2.0
"""Whether a training fits into the memory of this machine's devices, before anything is loaded."""

from __future__ import annotations

import os

from newskills.train.backends.trl.model import TrainingTask, precision_of
from newskills.train.backends.trl.processes import on_cpu, process_count, sharding_strategy
from newskills.train.memory import (
    TELLING,
    StepSize,
    TrainingPlan,
    check_memory,
    machine_memory,
    memory_by_use,
    needed_line,
    step_size,
)
from newskills.train.shape import ModelShape, model_shape


def check_fits(
    task: TrainingTask, sequences: int, length: int, scored: int, *, sampled: int = 0, reference: bool = False
) -> None:
    """Say what each device needs, and what would make it less where that is too much.

    Raises ConfigError where weights, gradients and moments alone do not fit, DataError for a config.json that cannot be
    read.
    """
    sizes = estimate_step(task, sequences, length, scored, sampled=sampled, reference=reference)
    if sizes is None:
        return
    capacity, device = _memory_capacity()
    warning = check_memory(*sizes, capacity, device)
    needed = memory_by_use(*sizes)
    if warning is not None:
        task.hooks.remark(warning)
    elif sum(needed.values()) >= TELLING:
        task.hooks.remark(f"The training {needed_line(needed, capacity, device)}.")


def estimate_step(
    task: TrainingTask, sequences: int, length: int, scored: int, *, sampled: int = 0, reference: bool = False
) -> tuple[ModelShape, TrainingPlan, StepSize] | None:
    """Return the arguments of `memory_by_use` for a step of `sequences` of `length` tokens, of which `scored` have
    logits; None where config.json names no sizes.

    Raises DataError for a config.json that cannot be read.
    """
    import torch

    shape = model_shape(task.base)
    if shape is None:
        return None
    settings, gpu = task.settings, torch.cuda.is_available()
    trl = settings.trl
    vllm = 0.0
    if sampled and trl.sampler == "vllm" and not trl.vllm_sleep:
        vllm = trl.vllm_memory * _memory_capacity()[0]
    plan = TrainingPlan(
        half=precision_of(settings) == torch.bfloat16,
        gpu=gpu,
        rank=settings.lora.rank if settings.weights == "lora" else 0,
        targets=settings.lora.targets,
        nf4=trl.quantization == "nf4",
        checkpointing=trl.gradient_checkpointing,
        split=sharding_strategy(),
        devices=process_count(),
        vllm=vllm,
        reference=reference,
    )
    if trl.sampler in ("vllm", "vllm_server"):
        sampled = 0
    step = step_size(sequences, trl.micro_batch_size, process_count(), length, scored, sampled=sampled)
    return shape, plan, step


def _memory_capacity() -> tuple[float, str]:
    """Return the bytes that a process of the training has, and what holds them."""
    import torch

    if not on_cpu() and torch.cuda.is_available():
        return float(torch.cuda.get_device_properties(torch.cuda.current_device()).total_memory), "GPU"
    return machine_memory() / int(os.environ.get("LOCAL_WORLD_SIZE", "1")), "process"
