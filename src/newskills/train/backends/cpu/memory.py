# SPDX-License-Identifier: Apache-2.0
"""How much memory a training of the cpu trainer needs, before the weights are read.

Counted are the weights as they are read and as they compute, and what autograd keeps of `llama.py` and `layout.py` for
one part of a step. A test compares the sum with what PyTorch allocates in whole trainings.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from newskills.train.backends.cpu.layout import SHORT, share_prefixes
from newskills.train.backends.cpu.losses import CHUNK
from newskills.train.backends.cpu.sampler import CACHE_BYTES
from newskills.train.backends.cpu.trainer import MICRO_TOKENS
from newskills.train.loops.grpo import GrpoConfig, RewardedProblems
from newskills.train.shape import ModelShape
from newskills.train.verbs import Datum


class PartSize(Struct, frozen=True, kw_only=True):
    """The largest part of a step that goes through the model at once.

    tokens    that are computed; what several sequences begin with counts once
    rows      sequences × the length that each is filled up to, for attention
    pairs     of a query and a key that it is compared with
    scored    tokens whose log-probabilities are computed
    sampled   sequences that are sampled at once, 0 = none; `cache`: their length at the end
    """

    tokens: int
    rows: int
    pairs: int
    scored: int
    sampled: int = 0
    cache: int = 0


def part_of_step(sequences: Iterable[Sequence[int]], scored: int, *, sampled: int = 0, cache: int = 0) -> PartSize:
    """Return the size of a part of such sequences, of each of which `scored` tokens count."""
    part: list[Sequence[int]] = []
    size = 0
    for tokens in sequences:
        size += len(tokens)
        if part and size > MICRO_TOKENS:
            break
        part.append(tokens)
    shared = share_prefixes(part)
    own = max(map(len, shared.own))
    front = max(map(len, shared.prefixes), default=0)
    return PartSize(
        tokens=sum(map(len, (*shared.prefixes, *shared.own))),
        rows=len(shared.own) * own + len(shared.prefixes) * front,
        pairs=len(shared.own) * own * (front + own) + len(shared.prefixes) * front**2,
        scored=scored * len(part),
        sampled=sampled,
        cache=cache,
    )


def cpu_parts(shape: ModelShape, part: PartSize, rank: int, value: int, stored: int) -> dict[str, float]:
    """Return the bytes when most are taken, by what they are for. `value`: bytes of a number that computes; `stored`:
    bytes of a weight in the file."""
    pairs = shape.pairs(rank, ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"))
    tails = shape.layers * 5 * shape.hidden * rank  # beside the matrices that sampling multiplies with
    weights = value * (shape.weights + tails)
    reading = {"weights": weights, "weights as read": float(stored * shape.weights) if stored != value else 0.0}
    learning = {
        "weights": float(weights),
        "pairs": float(4 * pairs),
        "optimizer": float(8 * pairs),
        "gradients": float(4 * pairs),
        "activations": float(shape.layers * _layer_bytes(shape, part, rank, value)),
        "logits": float(_head_bytes(shape, part, value)),
    }
    phases = [reading, learning]
    if part.sampled:
        place = 2 * shape.layers * shape.kv * value
        at_once = min(part.sampled, max(1, CACHE_BYTES // (part.cache * place)))
        phases.append(
            {
                **{name: learning[name] for name in ("weights", "pairs", "optimizer")},
                "KV cache": float(at_once * part.cache * place),
                "logits": float(at_once * shape.vocab * (4 * SAMPLED_ROWS + value)),
            }
        )
    return max(phases, key=lambda phase: sum(phase.values()))


TILES = 3
"""Tiles of logits in float32: themselves, and two that their sum needs."""
SAMPLED_ROWS = 4
"""Rows of the vocabulary that choosing a token keeps in float32."""


def _layer_bytes(shape: ModelShape, part: PartSize, rank: int, value: int) -> float:
    """Return the bytes that autograd keeps of a layer: inputs of norms, of projections and of their pairs, what the
    feed-forward layer multiplies, queries, keys, values and probabilities of attention."""
    normed = shape.attention + shape.kv if shape.normed_heads else 0
    of_token = 4 * shape.hidden + shape.attention + 4 * shape.inner + 7 * rank + normed
    of_row = shape.attention + 2 * shape.kv
    if part.pairs > SHORT * part.rows:  # torch's fused kernel keeps what it has computed instead
        return float(value * (part.tokens * of_token + part.rows * (of_row + shape.attention)))
    probabilities = part.pairs * shape.heads * (4 if value == 4 else 4 + value)
    return float(value * (part.tokens * of_token + part.rows * of_row) + probabilities)


def _head_bytes(shape: ModelShape, part: PartSize, value: int) -> float:
    """Return the bytes of a tile of logits, with what their sum needs, and of the slopes of all tokens that count."""
    tile = min(CHUNK, part.scored) * shape.vocab * 4 * TILES
    return float(tile + value * part.scored * shape.hidden)


def stored_bytes(base: Path) -> int:
    """Return the bytes of a weight in the files of `base`."""
    from safetensors import safe_open

    first = min(base.glob("*.safetensors"), default=None)
    if first is None:
        return 4
    with safe_open(first, "np") as file:
        kind = file.get_slice(next(iter(file.keys()))).get_dtype()
    return {"F32": 4, "F64": 8}.get(kind, 2)


def largest_part(method: Any, data: Any) -> PartSize | None:
    """Return the largest part of a step of `method` on `data`; None for data of another form."""
    if isinstance(data, RewardedProblems) and isinstance(method, GrpoConfig):
        longest = max((problem.prompt for problem in data.problems), key=len, default=[])
        count = min(method.batch_size, len(data.problems)) * method.group_size
        # Their ends differ, so that only prompts are shared.
        replies = [[*longest, *[-1 - at] * method.max_tokens] for at in range(method.group_size)]
        cache = len(longest) + method.max_tokens
        return part_of_step(replies * count, method.max_tokens, sampled=count, cache=cache)
    if not isinstance(data, Sequence):
        return None
    items = list(filter(None, map(_item_replies, data)))
    items.sort(key=lambda replies: -sum(len(datum.tokens) for datum in replies))
    step = [datum for replies in items[: getattr(method, "batch_size", 1)] for datum in replies]
    if not step:
        return None
    scored = max(sum(bool(weight) for weight in datum.weights or ()) for datum in step)
    return part_of_step([datum.tokens for datum in step], scored)


def _item_replies(item: Any) -> list[Datum]:
    """Return the sequences of an example, a pair or a labelled reply."""
    parts = [item] if isinstance(item, Datum) else [getattr(item, name, None) for name in REPLIES]
    return [part for part in parts if isinstance(part, Datum)]


REPLIES = ("chosen", "rejected", "reply")
