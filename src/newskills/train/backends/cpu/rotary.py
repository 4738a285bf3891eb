# SPDX-License-Identifier: Apache-2.0
"""Frequencies of rotary positions (https://arxiv.org/abs/2104.09864), scaled as config.json says."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from newskills.train.backends.cpu.weights import Shape


def rotary_frequencies(shape: Shape) -> Tensor:
    """Return the frequencies [K / 2] of one head, in float32."""
    half = torch.arange(0, shape.head, 2, dtype=torch.float64) / shape.head
    frequencies = 1.0 / shape.theta**half
    scaling = shape.rope
    if shape.rope_type == "linear":
        frequencies = frequencies / float(scaling["factor"])
    if shape.rope_type == "llama3":
        frequencies = _as_llama3(
            frequencies,
            float(scaling["factor"]),
            float(scaling["low_freq_factor"]),
            float(scaling["high_freq_factor"]),
            float(scaling["original_max_position_embeddings"]),
        )
    return frequencies.float()


def _as_llama3(frequencies: Tensor, factor: float, low: float, high: float, context: float) -> Tensor:
    """Divide frequencies whose waves are longer than the context that Llama 3 was first trained on, keep those that
    turn at least `high` times in it, and blend between (https://arxiv.org/abs/2407.21783)."""
    turns = context * frequencies / (2 * math.pi)
    kept = ((turns - low) / (high - low)).clamp(0, 1)
    return kept * frequencies + (1 - kept) * frequencies / factor
