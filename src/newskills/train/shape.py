# SPDX-License-Identifier: Apache-2.0
"""How many weights a model has, from its config.json alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from newskills.base.errors import DataError

UNGATED = ("gpt2", "gpt_neox", "gptj", "opt", "phi", "falcon", "bloom", "starcoder2")
"""Models whose feed-forward layers have two matrices, not three."""
BIASED = ("qwen2", "qwen2_moe")
"""Models with a bias at q, k and v, which their config.json does not mention."""
NORMED_HEADS = ("qwen3", "qwen3_moe")
"""Models that normalise queries and keys, by one weight for each place of a head."""


class ModelShape(Struct, frozen=True, kw_only=True):
    """Sizes of a transformer.

    hidden   width of the residual stream        inner    width of a feed-forward layer, of an expert
    heads, kv_heads × head   attention                 experts  of a layer, 0 = it is dense; shared: width of what
    tied     the output head is the embedding                   all tokens use beside them
    """

    hidden: int
    inner: int
    layers: int
    heads: int
    kv_heads: int
    head: int
    vocab: int
    tied: bool
    gated: bool = True
    bias: bool = False
    normed_heads: bool = False
    experts: int = 0
    active: int = 0
    shared: int = 0

    @property
    def attention(self) -> int:
        return self.heads * self.head

    @property
    def kv(self) -> int:
        return self.kv_heads * self.head

    def linears(self) -> dict[str, tuple[int, int]]:
        """Return (in, out) of the projections of one layer; those of its experts stand for one of them."""
        names = ("gate_proj", "up_proj") if self.gated else ("up_proj",)
        return {
            "q_proj": (self.hidden, self.attention),
            "k_proj": (self.hidden, self.kv),
            "v_proj": (self.hidden, self.kv),
            "o_proj": (self.attention, self.hidden),
            **dict.fromkeys(names, (self.hidden, self.inner)),
            "down_proj": (self.inner, self.hidden),
        }

    @property
    def in_layers(self) -> int:
        """Weights of all projections of all layers."""
        sizes = {name: wide * narrow for name, (wide, narrow) in self.linears().items()}
        attention = sum(size for name, size in sizes.items() if name in ("q_proj", "k_proj", "v_proj", "o_proj"))
        block = sum(sizes.values()) - attention
        feed = block
        if self.experts:
            feed = (block + self.hidden) * self.experts
        if self.shared:
            feed += 3 * self.hidden * self.shared + self.hidden
        return self.layers * (attention + feed)

    @property
    def elsewhere(self) -> int:
        """Weights of embedding, output head, norms and biases."""
        in_layer = 2 * self.hidden
        if self.normed_heads:
            in_layer += 2 * self.head
        if self.bias:
            in_layer += self.attention + 2 * self.kv
        tables = self.vocab * self.hidden * (1 if self.tied else 2)
        return tables + self.layers * in_layer + self.hidden

    @property
    def weights(self) -> int:
        return self.in_layers + self.elsewhere

    def pairs(self, rank: int, targets: tuple[str, ...]) -> int:
        """Return the weights of LoRA pairs on the projections `targets`; experts have none, as PEFT finds no
        projections there.
        """
        return self.layers * sum(
            rank * (wide + narrow)
            for name, (wide, narrow) in self.linears().items()
            if name in targets and not (self.experts and name in ("gate_proj", "up_proj", "down_proj"))
        )


def model_shape(folder: Path) -> ModelShape | None:
    """Return the shape; None where its config.json names no sizes of a transformer. Raises DataError where it cannot
    be read.
    """
    path = folder / "config.json"
    try:
        config: dict[str, Any] = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except (OSError, msgspec.DecodeError) as error:
        raise DataError(f"{path} cannot be read: {error}.") from error
    text = config.get("text_config") or config

    def size(*names: str, default: int | None = None) -> int | None:
        return next((text[name] for name in names if isinstance(text.get(name), int)), default)

    hidden, layers = size("hidden_size", "n_embd"), size("num_hidden_layers", "n_layer")
    heads, vocab = size("num_attention_heads", "n_head"), size("vocab_size")
    if not (hidden and layers and heads and vocab):
        return None
    kind = str(text.get("model_type", ""))
    experts = size("num_experts", "num_local_experts", "n_routed_experts", default=0) or 0
    inner = size("intermediate_size", "n_inner", "ffn_hidden_size", default=4 * hidden)
    return ModelShape(
        hidden=hidden,
        inner=(experts and size("moe_intermediate_size")) or inner or 4 * hidden,
        layers=layers,
        heads=heads,
        kv_heads=size("num_key_value_heads", default=heads) or heads,
        head=size("head_dim", default=hidden // heads) or hidden // heads,
        vocab=vocab,
        tied=bool(text.get("tie_word_embeddings", config.get("tie_word_embeddings", True))),
        gated=kind not in UNGATED,
        bias=bool(text.get("attention_bias")) or kind in BIASED,
        normed_heads=kind in NORMED_HEADS,
        experts=experts,
        active=size("num_experts_per_tok", default=1) or 1,
        shared=size("shared_expert_intermediate_size", default=0) or 0,
    )
