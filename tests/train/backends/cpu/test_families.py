# SPDX-License-Identifier: Apache-2.0
"""Models of other families: log-probabilities and samples are those of transformers, with tiny random weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tests.train.tiny import tiny_folder

from newskills.base.errors import DataError
from newskills.train.backends.cpu.llama import LoraConfig
from newskills.train.backends.cpu.trainer import CpuTrainer, CpuTrainerConfig
from newskills.train.convert.merge import merge_lora
from newskills.train.loops.sft import example
from newskills.train.verbs import AdamParams, SamplingParams

transformers = pytest.importorskip("transformers")

SIZES: dict[str, Any] = {
    "vocab_size": 61,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "eos_token_id": 0,
    "bos_token_id": 1,
    "pad_token_id": 2,
}
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 10000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}
FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "llama3": ("Llama", {"rope_parameters": LLAMA3}),
    "linear": ("Llama", {"rope_parameters": {"rope_type": "linear", "rope_theta": 10000.0, "factor": 3.0}}),
    "biases": ("Llama", {"attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True}),
    "qwen2": ("Qwen2", {"tie_word_embeddings": True}),
    "qwen2-untied": ("Qwen2", {"rope_parameters": {"rope_type": "default", "rope_theta": 1e6}}),
    "qwen3": ("Qwen3", {"head_dim": 16, "tie_word_embeddings": True}),
    "qwen3-biases": ("Qwen3", {"head_dim": 6, "attention_bias": True}),
}
CONFIG = CpuTrainerConfig(lora=LoraConfig(rank=4, seed=3), dtype="float32", threads=1)
TOKENS = [5, 9, 3, 40, 22, 60, 7, 31, 18, 2, 45, 12, 33, 50, 8, 27, 4, 19, 55, 36, 11, 29, 47, 6]


def saved(folder: Path, family: str) -> Any:
    """A model of that family with random weights, biases and norms, saved as transformers does."""
    name, changed = FAMILIES[family]
    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(**{**SIZES, **changed})
    model = getattr(transformers, f"{name}ForCausalLM")(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    model.save_pretrained(folder)
    return model


def their_logprobs(model: Any, tokens: list[int]) -> torch.Tensor:
    with torch.no_grad():
        return model(torch.tensor([tokens])).logits[0].log_softmax(-1)


@pytest.mark.parametrize("family", FAMILIES)
def test_log_probabilities_are_those_of_transformers(tmp_path: Path, family: str) -> None:
    model = saved(tmp_path / "model", family)
    client = CpuTrainer(tmp_path / "model", CONFIG)
    (ours,) = client.logprobs([example(TOKENS[:1], TOKENS[1:])])
    theirs = their_logprobs(model, TOKENS[:-1])[range(len(TOKENS) - 1), TOKENS[1:]]
    torch.testing.assert_close(torch.tensor(ours), theirs, atol=2e-5, rtol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_trained_weights_are_merged_and_sampled_from_as_transformers_does(tmp_path: Path, family: str) -> None:
    saved(tmp_path / "model", family)
    client = CpuTrainer(tmp_path / "model", CONFIG)
    data = [example([1, 2, 3, token], [token + 1, token + 2, 0]) for token in range(4, 12)]
    losses = []
    for _ in range(6):
        losses.append(client.forward_backward(data, "cross_entropy").loss)
        client.optim_step(AdamParams(learning_rate=0.01))
    assert losses[-1] < 0.8 * losses[0]
    client.save_state(tmp_path / "state")
    merge_lora(tmp_path / "model", tmp_path / "state", tmp_path / "merged")
    merged = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "merged", dtype=torch.float32).eval()
    params = SamplingParams(max_tokens=8, temperature=0)
    for prompt in ([1, 2, 3, 5], TOKENS[:17]):
        ((sampled,),) = client.sample([prompt], 1, params)
        logprobs = their_logprobs(merged, [*prompt, *sampled.tokens])[len(prompt) - 1 : -1]
        assert logprobs.argmax(-1).tolist() == sampled.tokens
        found = logprobs[range(8), sampled.tokens]
        torch.testing.assert_close(torch.tensor(sampled.logprobs), found, atol=1e-3, rtol=1e-3)


def test_biases_and_norms_that_config_does_not_name_are_refused(tmp_path: Path) -> None:
    saved(tmp_path / "model", "qwen2")
    folder = tiny_folder(tmp_path / "llama", tie_word_embeddings=True)
    (folder / "model.safetensors").write_bytes((tmp_path / "model/model.safetensors").read_bytes())
    with pytest.raises(DataError, match=r"belong to another model than its config\.json"):
        CpuTrainer(folder, CONFIG)
