# SPDX-License-Identifier: Apache-2.0
"""Tokens a second and model FLOP utilisation (MFU, https://arxiv.org/abs/2204.02311, appendix B)."""

from __future__ import annotations

from pathlib import Path

from bench.gpu.spec import Work, parameters

PEAKS = {"H200": 989e12, "H100": 989e12, "A100": 312e12, "L40S": 362e12, "L4": 121e12, "4090": 165e12}
"""Dense bfloat16 operations a second that vendors state."""


def peak_of(device: str) -> float | None:
    return next((value for name, value in PEAKS.items() if name in device), None)


def sft_flops(folder: Path, work: Work) -> float:
    """Of a step: forward 2 operations a weight and token, backward twice that; once where weights are frozen."""
    return work.batch * work.length * _each(folder, work.length, trains=True, lora=work.weights == "lora")


def grpo_flops(folder: Path, work: Work, completion: float) -> float:
    """Of a step with so many completion tokens a sample: sampling reads and writes them, training reads both again."""
    length = work.prompt + completion
    samples = work.problems * work.samples
    sampling = _each(folder, length, trains=False, lora=False)
    return samples * length * (sampling + _each(folder, length, trains=True, lora=work.weights == "lora"))


def _each(folder: Path, length: float, *, trains: bool, lora: bool) -> float:
    """Operations a token; attention looks at half of `length` on average."""
    weights, layers, width = parameters(folder)
    forward, seen = 2.0 * weights, 2.0 * layers * width * length
    if not trains:
        return forward + seen
    return (2 if lora else 3) * forward + 3 * seen
