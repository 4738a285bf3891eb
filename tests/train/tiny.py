# SPDX-License-Identifier: Apache-2.0
"""A Llama of a few thousand parameters in a Hugging Face folder, and the same mathematics written the plain way."""

import json
import math
from pathlib import Path

import torch
from safetensors.torch import save_file

from newskills.train.convert.names import PRE_TOKENIZERS

VOCAB, WIDTH, HEADS, KV_HEADS, LAYERS, INNER = 61, 32, 4, 2, 2, 48
TEMPLATE = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": VOCAB,
    "hidden_size": WIDTH,
    "intermediate_size": INNER,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KV_HEADS,
    "max_position_embeddings": 64,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "tie_word_embeddings": True,
    "eos_token_id": 0,
}


def tensors(seed: int = 0) -> dict[str, torch.Tensor]:
    draw = torch.Generator().manual_seed(seed)
    kv = WIDTH * KV_HEADS // HEADS
    shapes = {"model.embed_tokens.weight": (VOCAB, WIDTH), "model.norm.weight": (WIDTH,)}
    for layer in range(LAYERS):
        under = f"model.layers.{layer}."
        shapes |= {
            under + "input_layernorm.weight": (WIDTH,),
            under + "post_attention_layernorm.weight": (WIDTH,),
            under + "self_attn.q_proj.weight": (WIDTH, WIDTH),
            under + "self_attn.k_proj.weight": (kv, WIDTH),
            under + "self_attn.v_proj.weight": (kv, WIDTH),
            under + "self_attn.o_proj.weight": (WIDTH, WIDTH),
            under + "mlp.gate_proj.weight": (INNER, WIDTH),
            under + "mlp.up_proj.weight": (INNER, WIDTH),
            under + "mlp.down_proj.weight": (WIDTH, INNER),
        }
    return {
        name: torch.randn(shape, generator=draw) * 0.3 + (1.0 if len(shape) == 1 else 0.0)
        for name, shape in shapes.items()
    }


def tiny_folder(path: Path, *, dtype: torch.dtype = torch.float32, **changed: object) -> Path:
    path.mkdir(parents=True)
    (path / "config.json").write_text(json.dumps(CONFIG | changed))
    save_file({name: value.to(dtype) for name, value in tensors().items()}, path / "model.safetensors")
    return path


def plain_logits(weights: dict[str, torch.Tensor], tokens: list[int]) -> torch.Tensor:
    """Logits [T, V] of one sequence: complex rotation, one head after the other, no cache, no sharing."""
    x = weights["model.embed_tokens.weight"][torch.tensor(tokens)]
    count, head = len(tokens), WIDTH // HEADS
    angles = torch.arange(count)[:, None] / 10000.0 ** (torch.arange(0, head, 2) / head)
    turn = torch.polar(torch.ones_like(angles), angles)

    def turned(part: torch.Tensor) -> torch.Tensor:
        left, right = part.chunk(2, -1)
        spun = torch.complex(left, right) * turn
        return torch.cat((spun.real, spun.imag), -1)

    def normed(value: torch.Tensor, name: str) -> torch.Tensor:
        return value / (value.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt() * weights[name]

    hidden_from = torch.full((count, count), -math.inf).triu(1)
    for layer in range(LAYERS):
        under = f"model.layers.{layer}."
        y = normed(x, under + "input_layernorm.weight")
        q, k, v = (y @ weights[f"{under}self_attn.{name}_proj.weight"].T for name in "qkv")
        outs = []
        for index in range(HEADS):
            shared = index // (HEADS // KV_HEADS)
            mine, theirs = slice(index * head, (index + 1) * head), slice(shared * head, (shared + 1) * head)
            scores = turned(q[:, mine]) @ turned(k[:, theirs]).T / math.sqrt(head) + hidden_from
            outs.append(scores.softmax(-1) @ v[:, theirs])
        x = x + torch.cat(outs, -1) @ weights[under + "self_attn.o_proj.weight"].T
        y = normed(x, under + "post_attention_layernorm.weight")
        gate, up = (y @ weights[f"{under}mlp.{name}_proj.weight"].T for name in ("gate", "up"))
        x = x + (gate * torch.sigmoid(gate) * up) @ weights[under + "mlp.down_proj.weight"].T
    return normed(x, "model.norm.weight") @ weights["model.embed_tokens.weight"].T


def with_pairs(
    weights: dict[str, torch.Tensor], pairs: dict[str, torch.Tensor], scale: float
) -> dict[str, torch.Tensor]:
    """The weights with the LoRA pairs multiplied out."""
    found = dict(weights)
    for name, a in pairs.items():
        if name.endswith("lora_A.weight"):
            module = name.removeprefix("base_model.model.").removesuffix(".lora_A.weight")
            b = pairs[name.replace("lora_A", "lora_B")]
            found[f"{module}.weight"] = weights[f"{module}.weight"] + scale * b @ a
    return found


def with_tokenizer(folder: Path, pre: str = "smollm") -> Path:
    """A byte-pair tokenizer of 61 entries, of which the last is a control token."""
    characters = [chr(code) for code in range(ord("!"), ord("!") + VOCAB - 2)]
    vocab = {character: index for index, character in enumerate(characters)}
    merge = [characters[32], characters[33]]
    vocab["".join(merge)] = VOCAB - 2
    special = {"id": VOCAB - 1, "content": "<|end|>", "special": True, "single_word": False}
    special |= {"lstrip": False, "rstrip": False, "normalized": False}
    tokenizer = {
        "version": "1.0",
        "added_tokens": [special],
        "normalizer": None,
        "pre_tokenizer": PRE_TOKENIZERS.get(pre, {"type": "Whitespace"}),
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {"type": "BPE", "vocab": vocab, "merges": [merge]},
    }
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<|end|>"}))
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    return folder
