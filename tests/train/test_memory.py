# SPDX-License-Identifier: Apache-2.0
"""Estimates of memory: against published figures, and against what torch keeps of a small model on this CPU."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from newskills.base.errors import ConfigError, DataError
from newskills.train.memory import GB, StepSize, TrainingPlan, check_memory, memory_by_use, needed_line
from newskills.train.settings import PROJECTIONS
from newskills.train.shape import ModelShape, model_shape

LLAMA_8B = {
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "tie_word_embeddings": False,
}
PUBLISHED: dict[str, tuple[dict[str, Any], int]] = {
    "Llama-3.1-8B": (LLAMA_8B, 8_030_261_248),
    "Mistral-7B-v0.1": ({**LLAMA_8B, "vocab_size": 32000}, 7_241_732_096),
    "SmolLM2-135M": (
        {
            "model_type": "llama",
            "hidden_size": 576,
            "intermediate_size": 1536,
            "num_hidden_layers": 30,
            "num_attention_heads": 9,
            "num_key_value_heads": 3,
            "vocab_size": 49152,
            "tie_word_embeddings": True,
        },
        134_515_008,
    ),
    "Qwen2.5-0.5B": (
        {
            "model_type": "qwen2",
            "hidden_size": 896,
            "intermediate_size": 4864,
            "num_hidden_layers": 24,
            "num_attention_heads": 14,
            "num_key_value_heads": 2,
            "vocab_size": 151936,
            "tie_word_embeddings": True,
        },
        494_032_768,
    ),
    "Qwen3-0.6B": (
        {
            "model_type": "qwen3",
            "hidden_size": 1024,
            "intermediate_size": 3072,
            "num_hidden_layers": 28,
            "num_attention_heads": 16,
            "num_key_value_heads": 8,
            "head_dim": 128,
            "vocab_size": 151936,
            "tie_word_embeddings": True,
        },
        596_049_920,
    ),
    "Mixtral-8x7B": (
        {
            **LLAMA_8B,
            "model_type": "mixtral",
            "vocab_size": 32000,
            "num_local_experts": 8,
            "num_experts_per_tok": 2,
        },
        46_702_792_704,
    ),
    "Qwen3-30B-A3B": (
        {
            "model_type": "qwen3_moe",
            "hidden_size": 2048,
            "intermediate_size": 6144,
            "moe_intermediate_size": 768,
            "num_hidden_layers": 48,
            "num_attention_heads": 32,
            "num_key_value_heads": 4,
            "head_dim": 128,
            "vocab_size": 151936,
            "num_experts": 128,
            "num_experts_per_tok": 8,
            "tie_word_embeddings": False,
        },
        30_532_122_624,
    ),
}
ONE = StepSize(sequences=1, length=1, scored=1)
FULL = TrainingPlan(half=True, gpu=True)


def shape_of(config: dict[str, Any], folder: Path) -> ModelShape:
    (folder / "config.json").write_text(json.dumps(config))
    shape = model_shape(folder)
    assert shape is not None
    return shape


@pytest.mark.parametrize("name", PUBLISHED)
def test_weights_are_counted_as_published(name: str, tmp_path: Path) -> None:
    config, count = PUBLISHED[name]
    assert shape_of(config, tmp_path).weights == count


def test_stages_of_zero_are_those_of_its_paper(tmp_path: Path) -> None:
    """7.5 billion weights on 64 devices: 120, 31.4, 16.6 and 1.9 GB (https://arxiv.org/abs/1910.02054, figure 1)."""
    shape = shape_of(LLAMA_8B, tmp_path)
    expected = {"none": 120.0, "zero1": 31.4, "zero2": 16.6, "zero3": 1.9, "fsdp": 1.9}
    for split, published in expected.items():
        plan = TrainingPlan(half=True, gpu=False, split=split, devices=64)
        needed = memory_by_use(shape, plan, ONE)
        layers = 2 * shape.in_layers / shape.layers
        whole = {"none": shape.weights, "fsdp": shape.elsewhere + layers}  # in bfloat16, beside what is kept
        copies = 2 * whole.get(split, 0)
        held = needed["weights"] + needed["gradients"] + needed["optimizer"] - copies
        assert held / shape.weights * 7.5 == pytest.approx(published, abs=0.06)


def test_keys_and_values_of_a_token(tmp_path: Path) -> None:
    """128 KiB for Llama 3 8B in bfloat16."""
    step = StepSize(sequences=1, length=1, scored=1, sampled=1, cache=1)
    assert memory_by_use(shape_of(LLAMA_8B, tmp_path), FULL, step)["KV cache"] == 128 * 1024


def test_four_bits_and_pairs(tmp_path: Path) -> None:
    """LLaMA 7B in 4 bits needs about 5 GB (https://arxiv.org/abs/2305.14314, figure 6: 5,046 MB with its head)."""
    old = {**LLAMA_8B, "intermediate_size": 11008, "num_key_value_heads": 32, "vocab_size": 32000}
    shape = shape_of(old, tmp_path)
    plan = TrainingPlan(half=True, gpu=True, rank=16, targets=PROJECTIONS, nf4=True)
    assert shape.weights == 6_738_415_616
    assert memory_by_use(shape, plan, ONE)["weights"] / 1e6 == pytest.approx(5046, rel=0.1)
    assert shape.pairs(16, PROJECTIONS) == 39_976_960
    assert memory_by_use(shape, plan, ONE)["optimizer"] == 12 * 39_976_960


def test_what_does_not_fit_says_why_and_what_would(tmp_path: Path) -> None:
    shape = shape_of(LLAMA_8B, tmp_path)
    step = StepSize(sequences=8, length=2048, scored=2048)
    with pytest.raises(
        ConfigError, match=r"needs about \d+ GB of 80\.0 GB on each GPU: .*optimizer 64\.2"
    ) as error:
        check_memory(shape, FULL, step, 80 * GB, "GPU")
    assert "++trainer.weights=lora" in str(error.value.hint)
    lora = TrainingPlan(half=True, gpu=True, rank=16, targets=PROJECTIONS)
    warning = check_memory(shape, lora, step, 80 * GB, "GPU")
    assert warning is not None
    assert "activations" in warning
    assert "++trainer.trl.micro_batch_size=1" in warning
    small = StepSize(sequences=1, length=1024, scored=1024)
    assert check_memory(shape, lora, small, 80 * GB, "GPU") is None
    hopeless = check_memory(shape, lora, step, 17 * GB, "GPU")
    assert hopeless is not None
    assert "quantization=nf4" in hopeless
    split = TrainingPlan(half=True, gpu=True, devices=8)
    with pytest.raises(ConfigError) as several:
        check_memory(shape, split, small, 80 * GB, "GPU")
    assert "++trainer.trl.split=zero2" in str(several.value.hint)
    with pytest.raises(ConfigError) as little:
        check_memory(shape, split, small, 24 * GB, "GPU")
    assert "++trainer.trl.split=fsdp would need about" in str(little.value.hint)
    assert needed_line({"weights": 1e9, "logits": 1e3}, None, "GPU") == (
        "needs about 1.0 GB on each GPU: weights 1.0"
    )


def test_a_config_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "mamba"}')
    assert model_shape(tmp_path) is None
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(DataError, match="cannot be read"):
        model_shape(tmp_path)
