# SPDX-License-Identifier: Apache-2.0
"""One measurement: model, sizes, work; the same for us and for plain TRL. Plain TRL reads it as JSON."""

from __future__ import annotations

import json
import random
from pathlib import Path

from msgspec import Struct

SHAPE_135M = {
    "hidden_size": 576,
    "intermediate_size": 1536,
    "num_hidden_layers": 30,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
}
"""SmolLM2-135M; wider and deeper ones keep its proportions."""
SHAPE_05B = {
    "hidden_size": 896,
    "intermediate_size": 4864,
    "num_hidden_layers": 24,
    "num_attention_heads": 14,
    "num_key_value_heads": 2,
}
"""Qwen2.5-0.5B."""
TINY = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}
VOCABULARY = 151936
MARK = "figures: "
"""Beginning of the lines of a part's process that are figures."""
SHORTEST = 16
"""The shortest of sequences of different lengths has this share of the tokens of the longest (1/16)."""


class Work(Struct, frozen=True, kw_only=True):
    """sft: `batch` sequences of `length` tokens a step; grpo: `problems` × `samples` of ≤ `tokens` a step.

    micro   sequences of one forward pass on a device
    warm    steps that are not measured
    mixed   the sequences of SFT have different lengths; packing: several of them in one
    sampler of GRPO: transformers, or vllm beside the trainer on the same GPU
    """

    steps: int
    batch: int
    length: int
    problems: int
    samples: int
    prompt: int
    tokens: int
    micro: int
    weights: str = "lora"
    dtype: str = "bfloat16"
    checkpointing: bool = False
    warm: int = 2
    vocabulary: int = VOCABULARY
    learning_rate: float = 1e-4
    mixed: bool = False
    packing: bool = False
    sampler: str = "transformers"

    def sequences(self) -> list[list[int]]:
        """For SFT: random words, no two sequences alike."""
        draw = random.Random(0)
        count = min(64, self.steps) * self.batch * (4 if self.packing else 1)
        lengths = [
            draw.randint(max(4, self.length // SHORTEST), self.length) if self.mixed else self.length
            for _ in range(count)
        ]
        return [draw.choices(range(10, self.vocabulary), k=length) for length in lengths]

    def prompts(self) -> list[list[int]]:
        draw = random.Random(1)
        return [draw.choices(range(10, self.vocabulary), k=self.prompt) for _ in range(64 * self.problems)]


class Part(Struct, frozen=True, kw_only=True):
    """One figure: `kind` (sft, grpo) by `side` (ours, plain); `seconds` it may take on a GPU."""

    name: str
    side: str
    kind: str
    work: Work
    seconds: float


def make_model(folder: Path, shape: dict[str, int], vocabulary: int) -> Path:
    """A Llama with random weights and a tokenizer of one token a word (w0, w1, …), in a Hugging Face folder."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    torch.manual_seed(0)
    config = LlamaConfig(
        **shape,
        vocab_size=vocabulary,
        tie_word_embeddings=True,
        max_position_embeddings=8192,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=0,
    )
    LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(folder)
    words = Tokenizer(models.WordLevel({f"w{index}": index for index in range(vocabulary)}, unk_token="w3"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    special = {"bos_token": "w1", "eos_token": "w2", "pad_token": "w0"}
    PreTrainedTokenizerFast(tokenizer_object=words, **special).save_pretrained(folder)
    (folder / "chat_template.jinja").write_text("{% for m in messages %}{{ m.content }}{% endfor %}")
    return folder


def parameters(folder: Path) -> tuple[int, int, int]:
    """Weights in matrix products (the tied head counts, the embedding does not), layers, width."""
    config = json.loads((folder / "config.json").read_text())
    width, layers, inner = config["hidden_size"], config["num_hidden_layers"], config["intermediate_size"]
    kv = width * config["num_key_value_heads"] // config["num_attention_heads"]
    block = 2 * width * width + 2 * width * kv + 3 * width * inner
    return layers * block + width * config["vocab_size"], layers, width
