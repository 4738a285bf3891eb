# SPDX-License-Identifier: Apache-2.0
"""Passes of the model over several sequences: prompts measured, prompts read, one more token for each.

Sequences that are read stand at the right end of their rows, and keys and values of theirs can be dropped from a batch
and joined with another's: what has ended leaves at once, what waits comes in. Those that are measured stand at the left
end, so that nothing but their own tokens is before them, and no mask is needed.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache

from newskills.models.serving.hf.choosing import choose, likeliest
from newskills.models.serving.hf.prefixes import MeasuredPrompt, PrefixCache, layer_tensors
from newskills.models.serving.hf.sequences import Sampling, TokenSequence

TOLERANCE = {torch.float32: 1e-3}
LOOSE = 0.1
"""Differences of logits that rounding explains, as a share of their standard deviation."""


class Forward:
    """The model's forward pass, with the names of arguments that its class has."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.device: torch.device = model.get_input_embeddings().weight.device
        taken = inspect.signature(model.forward).parameters
        self._cache = "cache" if "cache" in taken else "past_key_values"
        self._last_only = {"logits_to_keep": 1} if "logits_to_keep" in taken else {}

    def whole(self, ids: Tensor, cache: Any = None, shared: Sequence[int] = ()) -> Tensor:
        """Return the logits of all places of [sequences, length], which follow the `shared` tokens of each in the
        cache."""
        settings: dict[str, Any] = (
            {"use_cache": False} if cache is None else {self._cache: cache, "use_cache": True}
        )
        if width := max(shared, default=0):
            rows = [[0] * (width - count) + [1] * (count + ids.shape[1]) for count in shared]
            mask = torch.tensor(rows, device=self.device)
            positions = torch.tensor(shared, device=self.device)[:, None] + torch.arange(
                ids.shape[1], device=self.device
            )
            settings |= {"attention_mask": mask, "position_ids": positions}
        logits: Tensor = self.model(input_ids=ids, **settings).logits
        return logits

    def next(self, ids: Tensor, mask: Tensor, cache: Any) -> Tensor:
        """Return the logits of the last place [sequences, vocabulary] in float32; `cache` grows by the `ids`."""
        positions = (mask.cumsum(-1) - 1).clamp(min=0)[:, -ids.shape[1] :]
        settings = {self._cache: cache, "use_cache": True, **self._last_only}
        out = self.model(input_ids=ids, attention_mask=mask, position_ids=positions, **settings)
        logits: Tensor = out.logits[:, -1].float()
        return logits


class Batch:
    """Sequences that are continued together; `cache` has keys and values of all tokens but the last of each."""

    def __init__(self, forward: Forward, sequences: Sequence[TokenSequence]) -> None:
        """Read the sequences, and choose one more token for each."""
        self._forward = forward
        self.sequences = list(sequences)
        # Without the model's settings all layers keep all tokens, also those that look at a window only: joined
        # sequences have different lengths.
        self.cache: Any = DynamicCache()
        longest = max(sequence.length for sequence in sequences)
        rows = [[0] * (longest - sequence.length) + sequence.all_ids for sequence in sequences]
        masks = [[0] * (longest - sequence.length) + [1] * sequence.length for sequence in sequences]
        self.mask = torch.tensor(masks, device=forward.device)
        ids = torch.tensor(rows, device=forward.device)
        self._last = self._chosen(forward.next(ids, self.mask, self.cache))

    @property
    def width(self) -> int:
        """Number of tokens of the longest row, with what fills it."""
        return int(self.mask.shape[1])

    def step(self) -> None:
        """Choose one more token for each sequence."""
        self.mask = torch.nn.functional.pad(self.mask, (0, 1), value=1)
        self._last = self._chosen(self._forward.next(self._last, self.mask, self.cache))

    def keep(self, sequences: Sequence[TokenSequence]) -> None:
        """Drop all other sequences, and the columns that then are empty."""
        wanted = {id(sequence) for sequence in sequences}
        places = [place for place, sequence in enumerate(self.sequences) if id(sequence) in wanted]
        if len(places) == len(self.sequences):
            return
        self.sequences = [self.sequences[place] for place in places]
        index = torch.tensor(places, device=self.mask.device)
        self.mask, self._last = self.mask[index], self._last[index]
        empty = int(self.mask.argmax(-1).min()) if places else 0
        self.mask = self.mask[:, empty:]
        for layer in _layers(self.cache):
            at = index.to(layer.keys.device)
            layer.keys, layer.values = layer.keys[at][..., empty:, :], layer.values[at][..., empty:, :]

    def join(self, other: Batch) -> None:
        """Take in the sequences of another batch, which is of no use afterwards."""
        width = max(self.width, other.width)
        here, there = width - self.width, width - other.width

        def widened(value: Tensor, by: int, *rest: int) -> Tensor:
            return torch.nn.functional.pad(value, (*rest, by, 0)) if by else value

        self.mask = torch.cat([widened(self.mask, here), widened(other.mask, there)])
        self._last = torch.cat([self._last, other._last])
        for mine, its in zip(_layers(self.cache), _layers(other.cache), strict=True):
            mine.keys = torch.cat([widened(mine.keys, here, 0, 0), widened(its.keys, there, 0, 0)])
            mine.values = torch.cat([widened(mine.values, here, 0, 0), widened(its.values, there, 0, 0)])
        self.sequences += other.sequences

    def bytes_per_token(self) -> int:
        """Return the bytes of keys and values of one token of one sequence."""
        held = sum(
            value.numel() * value.element_size()
            for each in _layers(self.cache)
            for value in (each.keys, each.values)
        )
        rows, tokens = len(self.sequences), _layers(self.cache)[0].keys.shape[-2]
        return int(held // (rows * tokens))

    def _chosen(self, logits: Tensor) -> Tensor:
        return torch.tensor(choose(logits, self.sequences), device=self.mask.device)[:, None]


def measure(forward: Forward, sequences: Sequence[TokenSequence], kept: PrefixCache | None) -> None:
    """Measure the prompts of the sequences, and choose one more token for each; what a `kept` prompt has in common with
    them is not computed again. None: the model's keys and values cannot be joined."""
    if kept is None:
        prompts: list[tuple[MeasuredPrompt | None, int]] = [(None, 0)] * len(sequences)
    else:
        prompts = [kept.shared(sequence) for sequence in sequences]
    shared = [count for _, count in prompts]
    fresh = [sequence.ids[count:] for sequence, count in zip(sequences, shared, strict=True)]
    longest = max(map(len, fresh))
    ids = torch.tensor([part + [0] * (longest - len(part)) for part in fresh], device=forward.device)
    cache = None if kept is None else DynamicCache()
    width = max(shared)
    if cache is not None and width:
        example = next(prompt for prompt, _ in prompts if prompt is not None)
        for layer in range(len(example.layers)):
            cache.update(*layer_tensors(prompts, layer), layer)
    logits = forward.whole(ids, cache, shared)
    ends = [len(part) - 1 for part in fresh]
    for row, (sequence, (prompt, count)) in enumerate(zip(sequences, prompts, strict=True)):
        before = prompt.values[:count] if prompt is not None else []
        new = likeliest(logits[row, : ends[row]], fresh[row][1:], sequence.top or 0) if ends[row] else []
        sequence.prompt_values = [*before, *new]
        if kept is not None:
            columns = slice(width - count, width + len(fresh[row]))
            layers = [(each.keys[row, :, columns], each.values[row, :, columns]) for each in _layers(cache)]
            kept.keep(sequence, count, layers)
    choose(logits[torch.arange(len(ends)), torch.tensor(ends)].float(), sequences)


def check_joining(forward: Forward, vocabulary: int) -> int:
    """Return the bytes of keys and values of a token, where the model continues joined sequences exactly as it reads
    each of them alone; 0 where it does not, or cannot."""
    prompts = [
        [(7 * place + start) % vocabulary for place in range(length)] for start, length in ((3, 11), (5, 4))
    ]
    batches = [Batch(forward, [_probe(prompt)]) for prompt in prompts]
    batches[0].join(batches[1])
    joined = batches[0]
    joined.mask = torch.nn.functional.pad(joined.mask, (0, 1), value=1)
    logits = forward.next(joined._last, joined.mask, joined.cache)
    for row, sequence in zip(logits, joined.sequences, strict=True):
        alone = forward.whole(torch.tensor([sequence.all_ids], device=forward.device))[0, -1].float()
        limit = TOLERANCE.get(forward.model.dtype, LOOSE) * float(alone.std())
        if float((row - alone).abs().max()) > limit:
            return 0
    return joined.bytes_per_token()


def _probe(ids: list[int]) -> TokenSequence:
    return TokenSequence(ids=ids, limit=1, sampling=Sampling(temperature=0), on_end=lambda _: None)


def _layers(cache: Any) -> list[Any]:
    return [layer for layer in cache.layers if layer.is_initialized]
