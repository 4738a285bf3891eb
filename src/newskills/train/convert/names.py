# SPDX-License-Identifier: Apache-2.0
"""What the two formats call the same thing: tensors, sizes, ways to cut text before byte pairs are merged.

Sources: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, gguf-py's tensor names, transformers' Llama.
"""

from __future__ import annotations

import re
from typing import Any

from newskills.base.errors import DataError

_WHOLE = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
_BLOCK = {
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_GGUF_BLOCK = {theirs: ours for ours, theirs in _BLOCK.items()}
_GGUF_WHOLE = {theirs: ours for ours, theirs in _WHOLE.items()}
ROPE_FREQUENCIES = "rope_freqs.weight"

SIZES = {
    "block_count": "num_hidden_layers",
    "context_length": "max_position_embeddings",
    "embedding_length": "hidden_size",
    "feed_forward_length": "intermediate_size",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.layer_norm_rms_epsilon": "rms_norm_eps",
    "rope.freq_base": "rope_theta",
    "vocab_size": "vocab_size",
}
"""Key below `llama.` in GGUF → key of config.json."""

_BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
PRE_TOKENIZERS: dict[str, dict[str, Any]] = {
    "smollm": {
        "type": "Sequence",
        "pretokenizers": [{"type": "Digits", "individual_digits": True}, {**_BYTES, "use_regex": True}],
    },
    "gpt-2": {**_BYTES, "use_regex": True},
}
"""`tokenizer.ggml.pre` → `pre_tokenizer` of tokenizer.json."""


def hf_name(name: str) -> str:
    """Return the Hugging Face name of a tensor in GGUF. Raises DataError for a tensor that a Llama has not."""
    if name in _WHOLE:
        return _WHOLE[name]
    match = re.fullmatch(r"blk\.(\d+)\.(\w+)\.weight", name)
    if match is None or match[2] not in _BLOCK:
        raise DataError(f"The tensor {name} does not belong to a Llama model.")
    return f"model.layers.{match[1]}.{_BLOCK[match[2]]}.weight"


def gguf_name(name: str) -> str:
    """Return the GGUF name of a tensor in a Hugging Face folder. Raises DataError for a tensor that a Llama has not."""
    if name in _GGUF_WHOLE:
        return _GGUF_WHOLE[name]
    match = re.fullmatch(r"model\.layers\.(\d+)\.([\w.]+)\.weight", name)
    if match is None or match[2] not in _GGUF_BLOCK:
        raise DataError(f"The tensor {name} does not belong to a GGUF file of a Llama model.")
    return f"blk.{match[1]}.{_GGUF_BLOCK[match[2]]}.weight"


def rotated_heads(name: str, config: dict[str, Any]) -> int | None:
    """Return the heads of a projection whose rows llama.cpp keeps in another order; None for all other tensors."""
    if name.endswith("q_proj.weight"):
        return int(config["num_attention_heads"])
    if name.endswith("k_proj.weight"):
        return int(config.get("num_key_value_heads") or config["num_attention_heads"])
    return None
