# SPDX-License-Identifier: Apache-2.0
"""How much memory of a device a training needs, from the sizes of the model and of a step.

Weights, gradients and moments are counted exactly. Activations are those that autograd keeps of the layers of
transformers (Llama, Qwen2, Qwen3) with fused attention, and probabilities of words are computed as TRL's output head
does; other models differ by some percent. Tests compare the sum with what PyTorch allocates in whole trainings. See
https://arxiv.org/abs/2205.05198 for the way of counting, https://arxiv.org/abs/1910.02054 for the stages of ZeRO.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from math import ceil
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from newskills.base.errors import ConfigError
from newskills.train.settings import PROJECTIONS
from newskills.train.shape import ModelShape

GB = 1e9
TELLING = 1e9
"""Bytes from which on the estimate is told where it fits."""
CGROUP = Path("/sys/fs/cgroup/memory.max")
NF4 = 0.5 + 4 / 64
"""Bytes of a weight in 4 bits: 64 of them share a float32 scale (https://arxiv.org/abs/2305.14314)."""
CONTEXT, SLACK = 0.8e9, 0.05
"""Bytes that a GPU's driver and libraries take, and the share that an allocator loses in pieces."""

TILE_TOKENS, TILE_VOCAB = 4096, 32768
"""Sizes of a tile of TRL's output head (`trl.kernels.chunked_logprob`, `trl.trainer.utils`)."""

Split = Literal["none", "zero1", "zero2", "zero3", "fsdp"]
"""What is divided among the devices: moments (zero1), gradients, too (zero2), weights, too (zero3, fsdp)."""


class StepSize(Struct, frozen=True, kw_only=True):
    """One pass on one device.

    sequences, length   of a forward and backward pass, in tokens
    scored              tokens of a sequence whose probabilities are computed; 0: the head has no words
    passes              forward and backward passes before the weights change, which add up their gradients
    sampled             sequences that are sampled at once, 0 = none; `cache`: their length at the end
    """

    sequences: int
    length: int
    scored: int
    passes: int = 1
    sampled: int = 0
    cache: int = 0


class TrainingPlan(Struct, frozen=True, kw_only=True):
    """How a model is trained.

    half      products in bfloat16; frozen weights on a GPU, too
    rank      of LoRA pairs on `targets`; 0 = all weights are trained
    devices   among which `split` divides
    vllm      bytes that vLLM takes on the same device
    reference a second copy of the weights is kept (KL, all weights)
    """

    half: bool
    gpu: bool
    rank: int = 0
    targets: tuple[str, ...] = ()
    nf4: bool = False
    checkpointing: bool = False
    split: Split = "none"
    devices: int = 1
    vllm: float = 0.0
    reference: bool = False

    @property
    def value_bytes(self) -> int:
        """Bytes of a value that layers multiply."""
        return 2 if self.half else 4


def certain_parts(shape: ModelShape, plan: TrainingPlan) -> dict[str, float]:
    """Return the bytes of weights, gradients and moments on one device, whatever a step is."""
    moments, gradients, weights = (
        plan.devices if plan.split in stages else 1
        for stages in (
            ("zero1", "zero2", "zero3", "fsdp"),
            ("zero2", "zero3", "fsdp"),
            ("zero3", "fsdp"),
        )
    )
    frozen = 2 if plan.half and plan.gpu else 4
    if plan.rank:
        trained = shape.pairs(plan.rank, plan.targets)
        held = shape.in_layers * NF4 + shape.elsewhere * 4 if plan.nf4 else shape.weights * frozen
        if plan.half and frozen == 4 and not plan.checkpointing:
            held += 2 * shape.in_layers  # copies that multiply, which are kept for the way back
        sizes = held / weights, 4 * trained / gradients, (4 + 8) * trained / moments
    elif plan.split.startswith("zero") and plan.half:
        # DeepSpeed keeps weights and gradients in bfloat16, and a float32 copy with the moments.
        sizes = 2 * shape.weights / weights, 2 * shape.weights / gradients, 12 * shape.weights / moments
    else:
        # Autocast makes a bfloat16 copy of each weight on the way; FSDP one of the weights that compute.
        copies = 2 if plan.half and plan.split != "fsdp" else 0
        size = shape.weights
        sizes = (4 + copies) * size / weights, 4 * size / gradients, 8 * size / moments
    if plan.reference and not plan.rank:
        sizes = sizes[0] + frozen * shape.weights / weights, *sizes[1:]
    if plan.split == "fsdp":
        # The part outside of the layers is whole from the first to the last, and two layers are: the next one comes
        # while one computes.
        whole = shape.elsewhere + 2 * shape.in_layers / shape.layers
        sizes = sizes[0] + plan.value_bytes * whole, *sizes[1:]
    return dict(zip(("weights", "gradients", "optimizer"), sizes, strict=True))


def memory_by_use(shape: ModelShape, plan: TrainingPlan, step: StepSize) -> dict[str, float]:
    """Return use → bytes of one device at the moment when most are taken."""
    certain = certain_parts(shape, plan)
    fixed = {name: certain[name] for name in ("weights", "optimizer")}
    # While a pass runs, gradients are there only of passes before it; at its end those of all weights are.
    kept = certain["gradients"] if step.passes > 1 or plan.split != "none" else 0.0
    tokens = step.sequences * step.length
    stream, layer = tokens * _stream_bytes(shape, plan), tokens * _layer_bytes(shape, plan)
    inside = stream if plan.checkpointing else shape.layers * layer
    phases: list[dict[str, float]] = [
        {"gradients": kept, "activations": inside, "logits": _head_bytes(shape, plan, step)},
        {"gradients": certain["gradients"], "activations": layer},
    ]
    if plan.checkpointing:
        phases.append({"gradients": kept, "activations": stream + layer})
    largest = max(range(len(phases)), key=lambda at: sum(phases[at].values()))
    needed = fixed | phases[largest]
    if plan.vllm:
        needed["vLLM"] = plan.vllm
    elif step.sampled:
        needed["KV cache"] = step.sampled * step.cache * 2 * shape.layers * shape.kv * plan.value_bytes
    if plan.gpu:
        needed["CUDA"] = CONTEXT + SLACK * (sum(needed.values()) - plan.vllm)
    return needed


def _head_bytes(shape: ModelShape, plan: TrainingPlan, step: StepSize) -> float:
    """Return the bytes by which TRL's output head computes probabilities: tile by tile, forwards and backwards."""
    if not step.scored:
        return 0.0
    # Triton computes on the tile itself, of tokens that are scored; torch, on CPUs, keeps seven like it, and a mask.
    tokens = step.sequences * (step.scored if plan.gpu else step.length)
    wide = min(TILE_TOKENS, tokens)
    tiles = wide * TILE_VOCAB * plan.value_bytes
    if not plan.gpu:
        tiles += wide * min(TILE_VOCAB, shape.vocab) * (7 * 4 + 1)
    gradients = 4 * tokens * shape.hidden
    if not plan.rank:
        # Of the head, before it is added to that of the embedding.
        gradients += 4 * shape.vocab * shape.hidden
    return tiles + gradients


def _stream_bytes(shape: ModelShape, plan: TrainingPlan) -> float:
    """Return the bytes of a token that all layers keep where they are computed again."""
    return shape.layers * (2 if plan.half and plan.gpu and plan.rank else 4) * shape.hidden


def _layer_bytes(shape: ModelShape, plan: TrainingPlan) -> float:
    """Return the bytes of a token in a layer: inputs of norms and projections, queries, keys, values, outputs of
    attention, and four times the width of the feed-forward layer (three without gate).
    """
    inner = (4 if shape.gated else 3) * (shape.inner * max(1, shape.active) + shape.shared)
    inside = 3 * shape.attention + 2 * shape.kv + inner
    normed = shape.attention + shape.kv if shape.normed_heads else 0
    if not plan.half:
        return 4 * ((4 if plan.rank else 6) * shape.hidden + inside + (1 if plan.rank else 2) * normed)
    return (18 if plan.rank else 26) * shape.hidden + 2 * inside + 6 * normed


def needed_line(needed: Mapping[str, float], capacity: float | None, device: str) -> str:
    """Return `needs about 61 GB of 80 GB on each GPU: weights 28.1, optimizer 14.2, …`."""
    largest = sorted(needed.items(), key=lambda part: -part[1])
    shown = ", ".join(
        f"{name} {_format_gb(size)}" for name, size in largest if size >= 0.005 * sum(needed.values())
    )
    of = "" if capacity is None else f" of {_format_gb(capacity)} GB"
    return f"needs about {_format_gb(sum(needed.values()))} GB{of} on each {device}: {shown}"


def _format_gb(size: float) -> str:
    value = size / GB
    if value >= 100:
        return f"{value:.0f}"
    if value >= 1:
        return f"{value:.1f}"
    return f"{value:.2g}"


def machine_memory() -> float:
    """Return the bytes that processes of this machine may take: what is built in, or what a cgroup allows."""
    size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, ValueError):  # no limit: `max`, or another kind of cgroup
        size = min(size, int(CGROUP.read_text()))
    return float(size)


def check_memory(
    shape: ModelShape, plan: TrainingPlan, step: StepSize, capacity: float, device: str
) -> str | None:
    """Return what to say where the estimate does not fit; None where it does.

    Raises ConfigError where weights, gradients and moments alone do not fit: these are no estimate.
    """
    needed = memory_by_use(shape, plan, step)
    if sum(needed.values()) <= capacity:
        return None
    certain = sum(certain_parts(shape, plan).values())
    text = f"This training {needed_line(needed, capacity, device)}."
    advice = _suggest_changes(shape, plan, step, capacity)
    if certain > capacity:
        raise ConfigError(text, hint=advice)
    return f"{text} It may run out of memory. {advice}"


def _suggest_changes(shape: ModelShape, plan: TrainingPlan, step: StepSize, capacity: float) -> str:
    """Return the first change, with those before it, that makes the training fit."""
    changes: list[str] = []
    for text, changed_plan, changed_step in _possible_changes(plan, step):
        changes.append(text)
        total = sum(memory_by_use(shape, changed_plan, changed_step).values())
        if total <= capacity:
            return f"{' '.join(changes)} would need about {_format_gb(total)} GB."
    return "Take a smaller model, or more and larger devices."


def _possible_changes(plan: TrainingPlan, step: StepSize) -> list[tuple[str, TrainingPlan, StepSize]]:
    small = replace(step, sequences=1)
    saved = replace(plan, checkpointing=True)
    if saved.rank:
        lora = saved
    else:
        lora = replace(saved, rank=16, targets=PROJECTIONS, split="none", reference=False)
    nf4 = replace(lora, nf4=True)
    steps: list[tuple[str, TrainingPlan, StepSize]] = []
    if step.sequences > 1:
        steps.append(("++trainer.trl.micro_batch_size=1", plan, small))
    if not plan.checkpointing:
        steps.append(("++trainer.trl.gradient_checkpointing=true", saved, small))
    if plan.devices > 1 and plan.split in ("none", "zero1"):
        steps.append(("++trainer.trl.split=zero2", replace(saved, split="zero2"), small))
    if plan.devices > 1 and plan.split != "fsdp":
        steps.append(("++trainer.trl.split=fsdp", replace(saved, split="fsdp"), small))
    if not plan.rank:
        steps.append(("++trainer.weights=lora", lora, small))
    if plan.gpu and not plan.nf4:
        steps.append(("++trainer.trl.quantization=nf4", nf4, small))
    return steps


def step_size(sequences: int, micro: int, devices: int, length: int, scored: int, *, sampled: int = 0) -> StepSize:
    """Return the size of a step of `sequences` over all devices, `micro` at once on each (0 = all); `sampled` of them
    are sampled.
    """
    share = ceil(sequences / devices)
    at_once = min(micro or share, share)
    return StepSize(
        sequences=at_once,
        passes=ceil(share / at_once),
        length=length,
        scored=scored,
        sampled=ceil(sampled / devices),
        cache=length if sampled else 0,
    )
