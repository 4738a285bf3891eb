# SPDX-License-Identifier: Apache-2.0
"""Sequences of different lengths as one row of tokens; what several begin with is there, and computed, once.

The samples of a group share their prompt, and chats share their system message: reading such a beginning once gives
the same numbers and gradients as reading it in every sequence. Suffixes: `_N` tokens, `_B` sequences, `_P` prefixes,
`_T` positions, `_H` heads, `_K` the width of a head.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import takewhile

import torch
import torch.nn.functional as F  # noqa: N812
from msgspec import Struct
from torch import Tensor

SHORT = 512
"""Keys up to which attention by two matrix products is faster on a CPU than torch's fused kernel."""

WORTH = 8
"""Tokens that a beginning must have to be shared."""

ALIKE = 0.75
"""A sequence joins those before it if it shares at least this much of their common beginning."""


class Ragged:
    """Sequences of different lengths, end to end: `rows` [N] is the sequence of each token, `steps` [N] its place."""

    def __init__(self, lengths: Sequence[int]) -> None:
        counts = torch.tensor(lengths, dtype=torch.long)
        self.counts, self.size = counts, (len(lengths), max(lengths))
        self.rows = torch.repeat_interleave(torch.arange(len(lengths)), counts)
        starts = torch.cumsum(counts, 0) - counts
        self.steps = torch.arange(int(counts.sum())) - starts[self.rows]

    def pad(self, x_NHK: Tensor) -> Tensor:  # noqa: N803
        """Fill up [N, H, K] → [B, H, T, K], zeros on the right."""
        padded = x_NHK.new_zeros(*self.size, *x_NHK.shape[1:])
        return padded.index_put((self.rows, self.steps), x_NHK).transpose(1, 2)

    def flat(self, x_BHTK: Tensor) -> Tensor:  # noqa: N803
        """Flatten [B, H, T, K] → [N, H · K]."""
        return x_BHTK.transpose(1, 2)[self.rows, self.steps].flatten(1)


class SharedPrefixes(Struct, frozen=True):
    """`prefixes` [P] token ids, `own` [B] the rest of each sequence, `parent` [B] its prefix (P: it has none)."""

    prefixes: list[Sequence[int]]
    own: list[Sequence[int]]
    parent: list[int]


def share_prefixes(sequences: Sequence[Sequence[int]]) -> SharedPrefixes:
    """Let neighbours that begin alike share a prefix; every sequence keeps at least one token of its own."""
    groups: list[tuple[list[Sequence[int]], int]] = []
    for tokens in sequences:
        if groups:
            members, length = groups[-1]
            most = len(members[0]) - 1 if len(members) == 1 else length
            common = common_length(members[0][:most], tokens[:-1])
            if common >= WORTH and (len(members) == 1 or common >= ALIKE * length):
                members.append(tokens)
                groups[-1] = members, common
                continue
        groups.append(([tokens], 0))
    shared = SharedPrefixes([members[0][:length] for members, length in groups if length], [], [])
    index = 0
    for members, length in groups:
        shared.own.extend(tokens[length:] for tokens in members)
        shared.parent.extend([index if length else len(shared.prefixes)] * len(members))
        index += bool(length)
    return shared


def common_length(left: Sequence[int], right: Sequence[int]) -> int:
    """Count the tokens that both begin with."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(left, right, strict=False)))


class Layout:
    """Where every token of some sequences lies: prefixes first, then the sequences' own parts.

    ids        [N]
    positions  [N] in the sequence, for rotary embeddings
    where      for each sequence, the index in [N] of each of its tokens (those of its prefix first)
    """

    def __init__(self, sequences: Sequence[Sequence[int]]) -> None:
        parts = share_prefixes(sequences)
        self.own = Ragged([len(tokens) for tokens in parts.own])
        self.prefix = Ragged([len(tokens) for tokens in parts.prefixes]) if parts.prefixes else None
        self.ids = torch.tensor([token for tokens in (*parts.prefixes, *parts.own) for token in tokens])
        self.parent = torch.tensor(parts.parent)
        if self.prefix is None:
            self.split, before = 0, torch.zeros(len(sequences), dtype=torch.long)
            self.positions = self.own.steps
        else:
            self.split = len(self.prefix.steps)
            before = torch.cat((self.prefix.counts, torch.zeros(1, dtype=torch.long)))[self.parent]
            self.positions = torch.cat((self.prefix.steps, self.own.steps + before[self.own.rows]))
        self.where = self._places(parts)
        self.mask = self._mask(before)

    def _places(self, parts: SharedPrefixes) -> Tensor:
        starts, at = [], 0
        for tokens in (*parts.prefixes, *parts.own):
            starts.append(range(at, at + len(tokens)))
            at += len(tokens)
        count = len(parts.prefixes)
        rows_of_places: list[int] = []
        for sequence, parent in enumerate(parts.parent):
            if parent < count:
                rows_of_places += starts[parent]
            rows_of_places += starts[count + sequence]
        return torch.tensor(rows_of_places)

    def _mask(self, before: Tensor) -> Tensor:
        """Return [B or 1, 1, T, prefix + T]: which keys a token of its own part may see."""
        steps = torch.arange(self.own.size[1])
        causal = (steps[:, None] >= steps)[None, None]
        if self.prefix is None:
            return causal
        in_prefix = torch.arange(self.prefix.size[1]) < before[:, None]
        size = (len(before), 1, len(steps))
        return torch.cat((in_prefix[:, None, None].expand(*size, -1), causal.expand(*size, -1)), -1)

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Compute attention [N, heads, K] → [N, heads · K]."""
        own = [self.own.pad(part[self.split :]) for part in (q, k, v)]
        if self.prefix is None:
            return self.own.flat(attention(own[0], own[1], own[2], self.mask))
        front = [self.prefix.pad(part[: self.split]) for part in (q, k, v)]
        places = torch.arange(self.prefix.size[1])
        out = self.prefix.flat(attention(front[0], front[1], front[2], (places[:, None] >= places)[None, None]))
        keys, values = (
            torch.cat((F.pad(shared, (0, 0) * 3 + (0, 1))[self.parent], mine), 2)
            for shared, mine in zip(front[1:], own[1:], strict=True)
        )
        return torch.cat((out, self.own.flat(attention(own[0], keys, values, self.mask))))


def attention(q: Tensor, k: Tensor, v: Tensor, visible: Tensor) -> Tensor:
    """Compute q [B, heads, T, K], k, v [B, fewer heads, S, K], visible [B or 1, 1, T, S] → [B, heads, T, K].

    Query heads that share a key are folded into its positions (https://arxiv.org/abs/2305.13245).
    """
    groups = k.shape[1]
    if k.shape[2] > SHORT:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=visible, enable_gqa=q.shape[1] != groups)
    batch, heads, steps, width = q.shape
    folded = q.reshape(batch, groups, -1, width)
    scores = (folded @ k.transpose(-1, -2)).view(batch, groups, heads // groups, steps, -1).float() / math.sqrt(
        width
    )
    weights = scores.masked_fill(~visible.unsqueeze(2), -torch.inf).softmax(-1).to(v.dtype)
    return (weights.view(batch, groups, -1, k.shape[2]) @ v).reshape(q.shape)
