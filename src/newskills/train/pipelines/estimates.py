# SPDX-License-Identifier: Apache-2.0
"""How much memory of each GPU a training of NeMo-RL or verl needs with FSDP, by the formula of `train.memory`.

An estimate: their defaults may change, and nobody has measured it. Both keep weights in float32, divide them among all
GPUs, multiply in bfloat16, and compute all logits of a micro-batch at once.
"""

from __future__ import annotations

from msgspec import Struct

from newskills.train.memory import StepSize, TrainingPlan, memory_by_use, needed_line
from newskills.train.settings import PROJECTIONS
from newskills.train.shape import ModelShape


class ClusterStep(Struct, frozen=True, kw_only=True):
    """A micro-batch on one GPU.

    devices        among which the weights are divided
    tokens         of the micro-batch, in sequences of `length`
    logit_bytes    of a logit with its gradient
    rank           of LoRA pairs; None: all weights
    checkpointing  activations are computed again
    models         that are trained: two with a critic
    """

    devices: int
    tokens: int
    length: int
    logit_bytes: int
    rank: int | None = None
    checkpointing: bool = False
    models: int = 1


def memory_line(shape: ModelShape, step: ClusterStep) -> str:
    """Return `needs about 23.4 GB on each GPU: weights 8.1, …; an estimate, without vLLM`."""
    plan = TrainingPlan(
        half=True,
        gpu=True,
        rank=step.rank or 0,
        targets=PROJECTIONS,
        checkpointing=step.checkpointing,
        split="fsdp",
        devices=step.devices,
    )
    sequences = max(1, step.tokens // step.length)
    size = StepSize(sequences=sequences, length=step.length, scored=0, passes=2)
    needed = memory_by_use(shape, plan, size)
    needed["logits"] = float(sequences * step.length * shape.vocab * step.logit_bytes)
    if step.models > 1:
        needed["critic"] = (step.models - 1) * sum(needed[name] for name in ("weights", "gradients", "optimizer"))
    return f"{needed_line(needed, None, 'GPU')}; an estimate, without vLLM"
