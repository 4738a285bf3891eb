# SPDX-License-Identifier: Apache-2.0
"""A Llama (https://arxiv.org/abs/2302.13971), or Qwen2 or Qwen3 (https://arxiv.org/abs/2505.09388), whose projections
carry LoRA pairs (https://arxiv.org/abs/2106.09685).

Written for a CPU: sequences of different lengths are one row of tokens for every matrix product and padded only
for attention, and the output head sees only the positions that are asked for. Dimension suffixes: `_N` tokens of
the whole batch, `_B` sequences, `_T` positions, `_D` the model's width, `_V` the vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from msgspec import Struct
from torch import Tensor

from newskills.base.errors import DataError
from newskills.train.backends.cpu.layout import Layout, Ragged, attention
from newskills.train.backends.cpu.rotary import rotary_frequencies
from newskills.train.backends.cpu.weights import Shape
from newskills.train.settings import PROJECTIONS


class LoraConfig(Struct, frozen=True, kw_only=True):
    """rank of the pairs; alpha: their product counts alpha / rank times; seed of the first values."""

    rank: int = 16
    alpha: float = 32.0
    seed: int = 0


class LoraLinear:
    """x Wᵀ + b + (alpha / rank) x Aᵀ Bᵀ. W [out, in] and b, if any, are frozen; A [rank, in] and B [out, rank] are
    float32."""

    def __init__(
        self, weight: Tensor, lora: LoraConfig, generator: torch.Generator, bias: Tensor | None = None
    ) -> None:
        out, inside = weight.shape
        self.weight, self.bias = weight, bias
        bound = 1 / math.sqrt(inside)  # Kaiming-uniform with a = √5, as PEFT begins
        first = torch.empty(lora.rank, inside).uniform_(-bound, bound, generator=generator)
        self.lora_A = first.requires_grad_()
        self.lora_B = torch.zeros(out, lora.rank, requires_grad=True)
        self.scale = lora.alpha / lora.rank
        self.bare = False

    def __call__(self, x: Tensor) -> Tensor:
        if self.bare:
            return F.linear(x, self.weight, self.bias)
        a, b = self.lora_A.to(x.dtype), self.lora_B.to(x.dtype)
        return torch.addmm(F.linear(x, self.weight, self.bias), F.linear(x, a), b.T, alpha=self.scale)


class JoinedProjections:
    """Projections of one input. While their pairs stay as they are, two matrix products give them all."""

    def __init__(self, linears: Sequence[LoraLinear]) -> None:
        self.linears = linears
        self.widths = [len(linear.weight) for linear in linears]
        self.total = sum(self.widths)
        tails = [linear.lora_A.detach().to(linear.weight.dtype) for linear in linears]
        self.stack = torch.cat([*(linear.weight for linear in linears), *tails])
        for linear, weight in zip(linears, self.stack[: self.total].split(self.widths), strict=True):
            linear.weight = weight
        self.pairs: Tensor | None = None
        biases = [
            linear.weight.new_zeros(width) if linear.bias is None else linear.bias
            for linear, width in zip(linears, self.widths, strict=True)
        ]
        self.bias = torch.cat(biases) if any(linear.bias is not None for linear in linears) else None

    def hold(self) -> None:
        """Hold the pairs of this moment up to `free`."""
        self.stack[self.total :] = torch.cat([linear.lora_A.detach() for linear in self.linears])
        self.pairs = torch.block_diag(*(linear.lora_B.detach() for linear in self.linears)).to(self.stack.dtype)

    def free(self) -> None:
        self.pairs = None

    def __call__(self, x: Tensor) -> Sequence[Tensor]:
        if self.pairs is None:
            return [linear(x) for linear in self.linears]
        out = F.linear(x, self.stack)
        base, inner, scale = out[:, : self.total], out[:, self.total :], self.linears[0].scale
        if self.bias is not None:
            base = base + self.bias
        return torch.split(torch.addmm(base, inner, self.pairs.T, alpha=scale), self.widths, 1)


class Cache:
    """Keys and values of sequences that are being continued.

    The first `width` places hold the prompts, filled on the right with nothing; what is sampled follows, one place
    a step, for all sequences at once. `seen` [B, places] says which places count.
    """

    def __init__(self, shape: Shape, lengths: Tensor, more: int, dtype: torch.dtype) -> None:
        self.lengths, self.width = lengths, int(lengths.max())
        places = self.width + more
        size = (shape.num_hidden_layers, len(lengths), shape.kv_heads, places, shape.head)
        self.keys, self.values = torch.zeros(size, dtype=dtype), torch.zeros(size, dtype=dtype)
        self.seen = torch.zeros(len(lengths), places, dtype=torch.bool)
        self.seen[:, : self.width] = torch.arange(self.width) < lengths[:, None]
        self.step = 0

    def fill(self, layer: int, keys: Tensor, values: Tensor, copies: int) -> None:
        """Fill in keys and values of the prompts [P, H, T, K], each for `copies` sequences in a row."""
        self.keys[layer, :, :, : self.width] = keys.repeat_interleave(copies, 0)
        self.values[layer, :, :, : self.width] = values.repeat_interleave(copies, 0)

    def extend(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Add one more place [B, H, 1, K] → everything until now."""
        place = self.width + self.step
        self.keys[layer, :, :, place] = keys[:, :, 0]
        self.values[layer, :, :, place] = values[:, :, 0]
        return self.keys[layer, :, :, : place + 1], self.values[layer, :, :, : place + 1]

    def keep(self, rows: Tensor) -> None:
        """Drop all sequences but `rows`."""
        self.keys, self.values = self.keys[:, rows], self.values[:, rows]
        self.seen, self.lengths = self.seen[rows], self.lengths[rows]


class Block:
    """Attention and feed-forward with their norms."""

    def __init__(self, shape: Shape, tensors: dict[str, Tensor], lora: LoraConfig, seed: torch.Generator) -> None:
        self.shape = shape
        self.norms = tensors["input_layernorm.weight"], tensors["post_attention_layernorm.weight"]
        self.linear = {
            name: LoraLinear(tensors[f"{path}.weight"], lora, seed, tensors.get(f"{path}.bias"))
            for name in PROJECTIONS
            for path in (f"{part_of(name)}.{name}",)
        }
        self.head_norms = (
            [tensors[f"self_attn.{name}_norm.weight"] for name in "qk"] if shape.has_head_norms else []
        )
        q, k, v, o, gate, up, down = (self.linear[name] for name in PROJECTIONS)
        self.joined = [JoinedProjections(group) for group in ((q, k, v), (o,), (gate, up), (down,))]

    def heads(self, x: Tensor, rotation: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        """Return [N, D] → queries, keys, values [N, heads, K], rotated."""
        normed = rms_norm(x, self.norms[0], self.shape.rms_norm_eps)
        q, k, v = (part.unflatten(1, (-1, self.shape.head)) for part in self.joined[0](normed))
        if self.head_norms:
            q, k = (
                rms_norm(part, weight, self.shape.rms_norm_eps)
                for part, weight in zip((q, k), self.head_norms, strict=True)
            )
        return apply_rotary(q, rotation), apply_rotary(k, rotation), v

    def finish(self, x: Tensor, attended: Tensor) -> Tensor:
        """Compute the rest of the block after attention."""
        (more,) = self.joined[1](attended)
        x = x + more
        gate, up = self.joined[2](rms_norm(x, self.norms[1], self.shape.rms_norm_eps))
        (more,) = self.joined[3](F.silu(gate) * up)
        return x + more


class Llama:
    """The model. Only the LoRA pairs can be trained."""

    def __init__(self, shape: Shape, tensors: Mapping[str, Tensor], lora: LoraConfig, dtype: torch.dtype) -> None:
        """Build the model from its weights, with LoRA pairs. Raises DataError where a tensor is missing."""
        self.shape, self.lora = shape, lora
        generator = torch.Generator().manual_seed(lora.seed)
        try:
            blocks = [
                Block(shape, _select_tensors(tensors, f"model.layers.{index}.", dtype), lora, generator)
                for index in range(shape.num_hidden_layers)
            ]
            embedding, norm = tensors["model.embed_tokens.weight"].to(dtype), tensors["model.norm.weight"]
            head = embedding if shape.tie_word_embeddings else tensors["lm_head.weight"].to(dtype)
        except KeyError as error:
            raise DataError(f"The weights lack the tensor {error}.") from error
        self.blocks = blocks
        self.embedding, self.norm, self.head = embedding, norm.to(dtype), head
        self.frequencies = rotary_frequencies(shape)

    @property
    def dtype(self) -> torch.dtype:
        return self.embedding.dtype

    def parameters(self) -> dict[str, Tensor]:
        """Return the LoRA matrices by the names that PEFT gives them."""
        return {
            f"base_model.model.model.layers.{index}.{part_of(name)}.{name}.lora_{side}.weight": value
            for index, block in enumerate(self.blocks)
            for name, linear in block.linear.items()
            for side, value in (("A", linear.lora_A), ("B", linear.lora_B))
        }

    def __call__(self, layout: Layout) -> Tensor:
        """Compute whole sequences → hidden states [N, D] before the output head."""
        x, rotation = F.embedding(layout.ids, self.embedding), self.rotation(layout.positions)
        for block in self.blocks:
            x = block.finish(x, layout.attend(*block.heads(x, rotation)))
        return rms_norm(x, self.norm, self.shape.rms_norm_eps)

    @contextmanager
    def steady(self) -> Iterator[None]:
        """Bring the pairs, which do not change inside, to the weights' type once, not at every step."""
        groups = [joined for block in self.blocks for joined in block.joined]
        try:
            for joined in groups:
                joined.hold()
            yield
        finally:
            for joined in groups:
                joined.free()

    @contextmanager
    def without_pairs(self) -> Iterator[None]:
        """Leave the pairs out inside, which leaves the base model."""
        linears = [linear for block in self.blocks for linear in block.linear.values()]
        try:
            for linear in linears:
                linear.bare = True
            yield
        finally:
            for linear in linears:
                linear.bare = False

    def prefill(self, prompts: Sequence[Sequence[int]], copies: int, more: int) -> tuple[Tensor, Cache]:
        """Read each prompt once → the logits [P · copies, V] after it, and the cache to go on with."""
        layout, ragged = Layout(prompts), Ragged([len(prompt) for prompt in prompts])
        cache = Cache(self.shape, ragged.counts.repeat_interleave(copies), more, self.dtype)
        x, rotation = F.embedding(layout.ids, self.embedding), self.rotation(layout.positions)
        for index, block in enumerate(self.blocks):
            q, k, v = block.heads(x, rotation)
            cache.fill(index, ragged.pad(k[layout.where]), ragged.pad(v[layout.where]), copies)
            x = block.finish(x, layout.attend(q, k, v))
        last = x[layout.where[torch.cumsum(ragged.counts, 0) - 1]]
        last = rms_norm(last, self.norm, self.shape.rms_norm_eps)
        return F.linear(last, self.head).repeat_interleave(copies, 0), cache

    def step(self, ids_B: Tensor, cache: Cache) -> Tensor:  # noqa: N803
        """Read one more token of each sequence → logits [B, V]."""
        cache.seen[:, cache.width + cache.step] = True
        x, rotation = F.embedding(ids_B, self.embedding), self.rotation(cache.lengths + cache.step)
        visible = cache.seen[:, None, None, : cache.width + cache.step + 1]
        for index, block in enumerate(self.blocks):
            q, k, v = block.heads(x, rotation)
            keys, values = cache.extend(index, k.unsqueeze(2), v.unsqueeze(2))
            x = block.finish(x, attention(q.unsqueeze(2), keys, values, visible).flatten(1))
        cache.step += 1
        return F.linear(rms_norm(x, self.norm, self.shape.rms_norm_eps), self.head)

    def rotation(self, steps_N: Tensor) -> tuple[Tensor, Tensor]:  # noqa: N803
        """Return cosines and sines [N, 1, K] of rotary positions (https://arxiv.org/abs/2104.09864)."""
        angles = (steps_N[:, None] * self.frequencies).repeat(1, 2).unsqueeze(1)
        return angles.cos().to(self.dtype), angles.sin().to(self.dtype)


def part_of(projection: str) -> str:
    """Return the part of a block that holds a projection, as checkpoints name it."""
    if projection[0] in "qkvo":
        return "self_attn"
    return "mlp"


class _RmsNorm(torch.autograd.Function):
    """Five passes over the numbers where torch's own chain of operations takes three times as long to go back."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        wide = x.float()
        scale = torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)
        ctx.save_for_backward(x, weight, scale)
        return weight * (wide * scale).to(x.dtype)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        x, weight, scale = ctx.saved_tensors
        wide, slope = x.float(), gradients[0].float().mul_(weight)
        along = (slope * wide).mean(-1, keepdim=True).mul_(scale.square())
        return slope.sub_(wide.mul_(along)).mul_(scale).to(x.dtype), None, None


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """Compute https://arxiv.org/abs/1910.07467 in float32, as transformers does. The weight is frozen."""
    normed: Tensor = _RmsNorm.apply(x, weight, eps)  # type: ignore[no-untyped-call]
    return normed


def apply_rotary(x: Tensor, rotation: tuple[Tensor, Tensor]) -> Tensor:
    cos, sin = rotation
    left, right = x.chunk(2, -1)
    return x * cos + torch.cat((-right, left), -1) * sin


def _select_tensors(tensors: Mapping[str, Tensor], prefix: str, dtype: torch.dtype) -> dict[str, Tensor]:
    return {
        name.removeprefix(prefix): value.to(dtype) for name, value in tensors.items() if name.startswith(prefix)
    }
