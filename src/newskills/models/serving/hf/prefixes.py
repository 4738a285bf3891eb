# SPDX-License-Identifier: Apache-2.0
"""Prompts that were read, with keys and values: continuations of one context, and questions after the same examples,
are computed from where they differ."""

from __future__ import annotations

from array import array
from collections import OrderedDict
from typing import Any

from msgspec import Struct
from torch import Tensor

from newskills.models.serving.hf.sequences import Likeliest, TokenSequence

MOST_KEPT = 512
FEWEST_NEW = 8
"""Tokens that a prompt must have beyond a kept one to be kept, too."""
_WIDTH = array("I").itemsize


class KeptPrompt(Struct, frozen=True, eq=False):
    """A prompt with keys and values of each layer, [heads, tokens, size]; one that was measured also with the
    log-probabilities of its tokens but the first, and of the `top` likeliest there."""

    ids: bytes
    top: int | None
    values: list[Likeliest]
    layers: list[tuple[Tensor, Tensor]]

    @property
    def size(self) -> int:
        """Number of tokens."""
        return len(self.ids) // _WIDTH


class PrefixCache:
    """Keeps prompts until they take more than `most_bytes`; the one that was of use longest ago goes first."""

    def __init__(self, most_bytes: int, token_bytes: int) -> None:
        self._most_tokens = most_bytes // token_bytes if token_bytes else 0
        self._tokens = 0
        self._kept: OrderedDict[tuple[bytes, int | None], KeptPrompt] = OrderedDict()

    def find_shared(self, sequence: TokenSequence) -> tuple[KeptPrompt | None, int]:
        """Return the kept prompt with the longest common beginning, and how many of its tokens need not be computed
        again: all but the last common one, whose logits are needed."""
        ids = pack_ids(sequence.all_ids)
        best, longest = None, 1
        for prompt in self._kept.values():
            if (
                _has_all_values(prompt, sequence)
                and (length := common_token_count(ids, prompt.ids, longest)) > longest
            ):
                best, longest = prompt, length
        if best is not None:
            self._kept.move_to_end((best.ids, best.top))
        return best, longest - 1

    def keep(self, sequence: TokenSequence, shared: int, layers: list[tuple[Tensor, Tensor]]) -> None:
        """Keep a prompt that has been read, unless one is kept that is nearly the same."""
        size = len(sequence.ids)
        if size - shared < FEWEST_NEW or size > self._most_tokens:
            return
        ids, top = pack_ids(sequence.ids), sequence.top if sequence.measured else None
        if (ids, top) in self._kept:
            return
        copies = [(keys.clone(), values.clone()) for keys, values in layers]
        self._kept[ids, top] = KeptPrompt(ids, top, sequence.prompt_values, copies)
        self._tokens += size
        while self._tokens > self._most_tokens or len(self._kept) > MOST_KEPT:
            self._tokens -= self._kept.popitem(last=False)[1].size

    def clear(self) -> None:
        """Forget everything, for its memory."""
        self._kept.clear()
        self._tokens = 0


def _has_all_values(prompt: KeptPrompt, sequence: TokenSequence) -> bool:
    """Return whether all is kept of the prompt that the sequence wants."""
    return not sequence.measured or prompt.top == sequence.top


def pack_ids(ids: list[int]) -> bytes:
    """Return token ids as bytes, which are compared much faster."""
    return array("I", ids).tobytes()


def common_token_count(ids: bytes, other: bytes, least: int = 0) -> int:
    """Return how many tokens two packed prompts have in common at their beginning; 0 where not more than `least`."""
    begin = (least + 1) * _WIDTH
    if ids[:begin] != other[:begin]:
        return 0
    low, high = least, min(len(ids), len(other)) // _WIDTH
    while low < high:
        middle = (low + high + 1) // 2
        if ids[low * _WIDTH : middle * _WIDTH] == other[low * _WIDTH : middle * _WIDTH]:
            low = middle
        else:
            high = middle - 1
    return low


def layer_tensors(prompts: list[tuple[KeptPrompt | None, int]], layer: int) -> tuple[Tensor, Tensor]:
    """Return keys and values of a layer, [prompts, heads, tokens, size]: the shared tokens of each at the right end."""
    width = max(shared for _, shared in prompts)
    example: Any = next(prompt for prompt, _ in prompts if prompt is not None)
    pairs = []
    for part in (0, 1):
        like: Tensor = example.layers[layer][part]
        whole = like.new_zeros(len(prompts), like.shape[0], width, like.shape[2])
        for row, (prompt, shared) in enumerate(prompts):
            if prompt is not None and shared:
                whole[row, :, width - shared :] = prompt.layers[layer][part][:, :shared]
        pairs.append(whole)
    return pairs[0], pairs[1]
