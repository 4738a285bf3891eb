# SPDX-License-Identifier: Apache-2.0
"""A Hugging Face model folder (config.json, *.safetensors) of Llama, Qwen2 or Qwen3 → its shape and tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from newskills.base.errors import ConfigError, DataError

if TYPE_CHECKING:
    import torch

LLAMA, QWEN2, QWEN3 = "LlamaForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM"
ARCHITECTURES = (LLAMA, QWEN2, QWEN3)
"""Qwen2 (and 2.5) is a Llama with biases of queries, keys and values, Qwen3 one with norms of queries and keys."""
ROPE_TYPES = ("default", "linear", "llama3")
QWEN3_HEAD = 128
"""Width of a head of Qwen3 where config.json leaves it out."""
REWARD_ARCHITECTURE = "LlamaForSequenceClassification"


class Shape(Struct, frozen=True, kw_only=True):
    """Sizes of a model, as its config.json names them (https://huggingface.co/docs/transformers/model_doc/llama)."""

    num_hidden_layers: int
    hidden_size: int
    intermediate_size: int
    num_attention_heads: int
    vocab_size: int
    num_key_value_heads: int | None = None
    head_dim: int | None = None
    max_position_embeddings: int = 2048
    rms_norm_eps: float = 1e-6
    rope_theta: float | None = None
    rope_scaling: dict[str, Any] | None = None
    rope_parameters: dict[str, Any] | None = None
    tie_word_embeddings: bool = False
    architectures: tuple[str, ...] = (LLAMA,)
    hidden_act: str = "silu"
    attention_bias: bool = False
    mlp_bias: bool = False
    use_sliding_window: bool = False
    layer_types: tuple[str, ...] | None = None

    @property
    def kv_heads(self) -> int:
        return self.num_key_value_heads or self.num_attention_heads

    @property
    def head(self) -> int:
        """Width of one head."""
        if self.head_dim is None and self.has_head_norms:
            return QWEN3_HEAD
        return self.head_dim or self.hidden_size // self.num_attention_heads

    @property
    def has_head_norms(self) -> bool:
        """Whether queries and keys of each head are normalised."""
        return self.architectures[0] == QWEN3

    @property
    def biased_projections(self) -> tuple[str, ...]:
        """Projections with a bias, below a layer."""
        of_qwen2 = self.architectures[0] == QWEN2
        if self.attention_bias and not of_qwen2:
            attention = "qkvo"
        else:
            attention = "qkv" if of_qwen2 else ""
        inner = ("gate", "up", "down") if self.mlp_bias else ()
        return (
            *(f"self_attn.{name}_proj" for name in attention),
            *(f"mlp.{name}_proj" for name in inner),
        )

    @property
    def rope(self) -> dict[str, Any]:
        """Settings of rotary positions; transformers 5 keeps them in `rope_parameters`."""
        return self.rope_parameters or self.rope_scaling or {}

    @property
    def rope_type(self) -> str:
        return str(self.rope.get("rope_type") or self.rope.get("type") or "default")

    @property
    def theta(self) -> float:
        """Base of the rotary frequencies; transformers 5 keeps it in `rope_parameters`."""
        return float((self.rope_parameters or {}).get("rope_theta") or self.rope_theta or 10000.0)

    def fits(self, where: Path, architectures: Sequence[str] = ARCHITECTURES) -> None:
        """Raise ConfigError for a model that this trainer would compute wrongly."""
        slides = self.use_sliding_window or "sliding_attention" in (self.layer_types or ())
        wrong = [
            (
                self.architectures[0] not in (*architectures, REWARD_ARCHITECTURE),
                f"its architecture is {self.architectures[0]}",
            ),
            (self.rope_type not in ROPE_TYPES, f"its rotary positions are of the type {self.rope_type}"),
            (self.hidden_act != "silu", f"its activation is {self.hidden_act}"),
            (slides, "it attends to a sliding window"),
        ]
        if reasons := [reason for is_wrong, reason in wrong if is_wrong]:
            raise ConfigError(
                f"The cpu trainer cannot train {where}: {', '.join(reasons)}.",
                hint=f"It knows {', '.join(architectures)}; use --backend=trl for others.",
            )


def end_tokens(folder: Path) -> list[int]:
    """Return the tokens that end a reply of the model in `folder`. Raises DataError, ConfigError where it has none."""
    path = folder / "generation_config.json"
    if not path.is_file():
        path = folder / "config.json"
    try:
        end_token = msgspec.json.decode(path.read_bytes(), type=dict[str, Any]).get("eos_token_id")
    except (OSError, msgspec.DecodeError) as error:
        raise DataError(f"{path} cannot be read: {error}.") from error
    ids: list[Any] = end_token if isinstance(end_token, list) else [end_token]
    if not all(isinstance(token, int) for token in ids):
        raise ConfigError(f"{path} has no eos_token_id, so {folder} could never end a reply.")
    return ids


def vocabulary_size(folder: Path) -> int | None:
    """Return the rows of the model's embedding, as config.json says; None where it does not."""
    try:
        settings = msgspec.json.decode((folder / "config.json").read_bytes(), type=dict[str, Any])
    except (OSError, msgspec.DecodeError):
        return None
    inner = settings.get("text_config")
    size = (inner if isinstance(inner, dict) else settings).get("vocab_size")
    if isinstance(size, int):
        return size
    return None


def padding_token(folder: Path) -> int:
    """Return a token to fill rows of a batch with that ends no text: a classifier reads the last token that is another.

    Raises DataError, ConfigError.
    """
    path, ends = folder / "config.json", set(end_tokens(folder))
    try:
        own = msgspec.json.decode(path.read_bytes(), type=dict[str, Any]).get("pad_token_id")
    except (OSError, msgspec.DecodeError) as error:
        raise DataError(f"{path} cannot be read: {error}.") from error
    candidates = list(range(len(ends) + 1))
    if isinstance(own, int) and own >= 0:
        candidates.insert(0, own)
    return next(token for token in candidates if token not in ends)


def read_shape(folder: Path, architectures: Sequence[str] = ARCHITECTURES) -> Shape:
    """Read the shape of a model from its config.json. Raises DataError for a folder without a readable config.json,
    ConfigError for a model of another family."""
    path = folder / "config.json"
    try:
        shape = msgspec.json.decode(path.read_bytes(), type=Shape)
    except FileNotFoundError as error:
        raise DataError(
            f"{folder} is not a model folder: it has no config.json.",
            hint="ns convert --convert_from=gguf --convert_to=hf makes a model folder from a .gguf file.",
        ) from error
    except msgspec.DecodeError as error:
        raise DataError(f"{path} does not describe a Llama model: {error}.") from error
    shape.fits(folder, architectures)
    return shape


def check_tensors(shape: Shape, tensors: Mapping[str, torch.Tensor], folder: Path) -> None:
    """Raise DataError where the weights of `folder` are not those of the model that its config.json describes."""
    wide, inner = shape.hidden_size, shape.intermediate_size
    queries, keys = shape.num_attention_heads * shape.head, shape.kv_heads * shape.head
    of_layer: dict[str, tuple[int, ...]] = {
        "input_layernorm": (wide,),
        "post_attention_layernorm": (wide,),
        "self_attn.q_proj": (queries, wide),
        "self_attn.k_proj": (keys, wide),
        "self_attn.v_proj": (keys, wide),
        "self_attn.o_proj": (wide, queries),
        "mlp.gate_proj": (inner, wide),
        "mlp.up_proj": (inner, wide),
        "mlp.down_proj": (wide, inner),
    }
    of_layer = {f"{name}.weight": size for name, size in of_layer.items()} | {
        f"{name}.bias": of_layer[name][:1] for name in shape.biased_projections
    }
    if shape.has_head_norms:
        of_layer |= {f"self_attn.{name}_norm.weight": (shape.head,) for name in "qk"}
    head = {} if shape.tie_word_embeddings else {"lm_head.weight": (shape.vocab_size, wide)}
    wanted = {"model.embed_tokens.weight": (shape.vocab_size, wide), "model.norm.weight": (wide,), **head} | {
        f"model.layers.{layer}.{name}": size
        for layer in range(shape.num_hidden_layers)
        for name, size in of_layer.items()
    }
    shapes = {name: tuple(tensors[name].shape) if name in tensors else None for name in wanted}
    shapes |= {name: tuple(value.shape) for name, value in tensors.items() if name.startswith("model.layers.")}
    if wrong := [name for name, size in shapes.items() if size != wanted.get(name)]:
        has = "is missing" if shapes[wrong[0]] is None else f"is {shapes[wrong[0]]}"
        says = wanted.get(wrong[0]) or "that there is none"
        raise DataError(
            f"The weights in {folder} belong to another model than its config.json: {wrong[0]} {has}, "
            f"config.json says {says}.",
            hint="Copy config.json and *.safetensors from the same checkpoint.",
        )


def read_tensors(folder: Path) -> dict[str, torch.Tensor]:
    """Read all tensors of the folder, by name, as stored. Raises DataError for a file that is cut off or missing."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise DataError(f"{folder} has no *.safetensors.", hint="Pickled weights (.bin, .pt) are not read.")
    tensors: dict[str, torch.Tensor] = {}
    for file in files:
        try:
            tensors |= load_file(file)
        except (SafetensorError, OSError) as error:
            raise DataError(f"{file} cannot be read: {error}.") from error
    return tensors
