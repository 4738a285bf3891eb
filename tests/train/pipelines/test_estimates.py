# SPDX-License-Identifier: Apache-2.0
"""What a dry run tells of the memory that NeMo-RL and verl need: the sums by hand, and what makes them less."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from newskills.train.pipelines.estimates import ClusterStep, memory_line
from newskills.train.shape import ModelShape

LLAMA = ModelShape(hidden=4096, inner=14336, layers=32, heads=32, kv_heads=8, head=128, vocab=128256, tied=False)
STEP = ClusterStep(devices=8, tokens=8192, length=4096, logit_bytes=8)


def told(**changed: Any) -> dict[str, float]:
    line = memory_line(LLAMA, msgspec.structs.replace(STEP, **changed))
    assert line.endswith("; an estimate, without vLLM")
    return {name: float(size) for name, size in re.findall(r"(\w+) ([\d.]+)", line.partition(": ")[2])}


def test_weights_in_float32_are_divided_and_logits_are_whole() -> None:
    assert 8.02e9 < LLAMA.weights < 8.04e9
    parts = told()
    assert parts["gradients"] == 4.0  # 4 bytes of 8.03e9 weights / 8 GPUs
    assert parts["optimizer"] == 8.0  # 8 bytes
    assert parts["logits"] == 8.4  # 8,192 tokens × 128,256 words × 8 bytes
    assert told(devices=16)["optimizer"] == 4.0
    assert told(tokens=4096)["logits"] == 4.2


def test_what_makes_it_less_and_more() -> None:
    parts = told()
    assert told(checkpointing=True)["activations"] < 0.3 * parts["activations"]
    assert "optimizer" not in told(rank=16)  # too little to be told
    critic = told(models=2)["critic"]
    assert abs(critic - sum(parts[name] for name in ("weights", "gradients", "optimizer"))) < 0.1
