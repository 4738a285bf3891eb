# SPDX-License-Identifier: Apache-2.0
"""Passes of the model over several sequences: prompts read or measured, one more token for each.

What is read stands at the left end of its row, behind the keys and values of a kept prompt that begins alike: nothing
but its own tokens is before it. What is continued stands at the right end, so that one column takes all next tokens.
Rows can be dropped from a batch and joined with another's: what has ended leaves at once, what waits comes in.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import torch
from msgspec import Struct
from torch import Tensor
from transformers import DynamicCache

from newskills.models.serving.hf.choosing import choose_tokens, likeliest_tokens
from newskills.models.serving.hf.prefixes import KeptPrompt, PrefixCache, layer_tensors
from newskills.models.serving.hf.sequences import Sampling, TokenSequence

TOLERANCE = {torch.float32: 1e-3}
LOOSE = 0.3
"""Differences of logits that rounding explains, as a share of their spread (standard deviation). On SmolLM2-135M:
3e-6 in float32, 0.002 in float16, 0.09 in bfloat16; 0.96 with one token too many in sight."""


class Forward:
    """The model's forward pass, with the names of arguments that its class has."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.device: torch.device = model.get_input_embeddings().weight.device
        taken = inspect.signature(model.forward).parameters
        self._cache = "cache" if "cache" in taken else "past_key_values"
        self._picks = "logits_to_keep" in taken and type(model).__module__.startswith("transformers.")

    def read(self, ids: Tensor, cache: Any, shared: Sequence[int], places: Sequence[int] | None = None) -> Tensor:
        """Return the logits of [sequences, length], which follow the `shared` tokens of each in the cache (None: no
        cache); only those of `places`, where some are named."""
        settings: dict[str, Any] = {"use_cache": cache is not None}
        if cache is not None:
            settings[self._cache] = cache
        if width := max(shared):
            rows = [[0] * (width - count) + [1] * (count + ids.shape[1]) for count in shared]
            columns = torch.arange(ids.shape[1], device=self.device)
            settings["attention_mask"] = torch.tensor(rows, device=self.device)
            settings["position_ids"] = torch.tensor(shared, device=self.device)[:, None] + columns
        index = None if places is None else torch.tensor(places, device=self.device)
        if index is not None and self._picks:
            settings["logits_to_keep"] = index
        logits: Tensor = self.model(input_ids=ids, **settings).logits
        if index is None or self._picks:
            return logits
        return logits[:, index]

    def next(self, ids: Tensor, mask: Tensor, cache: Any) -> Tensor:
        """Return the logits of the last place [sequences, vocabulary] in float32; `cache` grows by the `ids`."""
        positions = (mask.cumsum(-1) - 1).clamp(min=0)[:, -ids.shape[1] :]
        settings = {self._cache: cache, "use_cache": True}
        out = self.model(input_ids=ids, attention_mask=mask, position_ids=positions, **settings)
        logits: Tensor = out.logits[:, -1].float()
        return logits


class Batch:
    """Sequences that are continued together; `cache` has keys and values of all tokens but the last of each."""

    def __init__(self, forward: Forward, sequences: Sequence[TokenSequence], kept: PrefixCache | None) -> None:
        """Read the sequences, and choose one more token for each."""
        self._forward = forward
        self.sequences = list(sequences)
        # Without the model's settings all layers keep all tokens, also those that look at a window only: joined
        # sequences have different lengths.
        cache: Any = DynamicCache()
        reading = read_sequences(forward, sequences, kept, cache, everywhere=False)
        if kept is not None:
            keep_prompts(kept, sequences, reading, cache)
        longest = max(sequence.length for sequence in sequences)
        masks = [[0] * (longest - sequence.length) + [1] * sequence.length for sequence in sequences]
        self.mask = torch.tensor(masks, device=forward.device)
        for layer in _filled_layers(cache):
            layer.keys, layer.values = (_at_right(value, reading, longest) for value in (layer.keys, layer.values))
        self.cache = cache
        self._last = self._chosen(reading.ends)

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
        for layer in _filled_layers(self.cache):
            at = index.to(layer.keys.device)
            layer.keys, layer.values = layer.keys[at][..., empty:, :], layer.values[at][..., empty:, :]

    def join(self, other: Batch) -> None:
        """Take in the sequences of another batch, which is of no use afterwards."""
        width = max(self.width, other.width)
        here, there = width - self.width, width - other.width

        def widened(value: Tensor, by: int, *rest: int) -> Tensor:
            if by:
                return torch.nn.functional.pad(value, (*rest, by, 0))
            return value

        self.mask = torch.cat([widened(self.mask, here), widened(other.mask, there)])
        self._last = torch.cat([self._last, other._last])
        for mine, its in zip(_filled_layers(self.cache), _filled_layers(other.cache), strict=True):
            mine.keys = torch.cat([widened(mine.keys, here, 0, 0), widened(its.keys, there, 0, 0)])
            mine.values = torch.cat([widened(mine.values, here, 0, 0), widened(its.values, there, 0, 0)])
        self.sequences += other.sequences

    def bytes_per_token(self) -> int:
        """Return the bytes of keys and values of one token of one sequence."""
        held = sum(
            value.numel() * value.element_size()
            for each in _filled_layers(self.cache)
            for value in (each.keys, each.values)
        )
        rows, tokens = len(self.sequences), _filled_layers(self.cache)[0].keys.shape[-2]
        return int(held // (rows * tokens))

    def _chosen(self, logits: Tensor) -> Tensor:
        return torch.tensor(choose_tokens(logits, self.sequences), device=self.mask.device)[:, None]


class Reading(Struct, frozen=True, eq=False):
    """What a pass over prompts gave.

    logits   of all new tokens [sequences, tokens, vocabulary], or empty
    ends     of the last token of each, in float32
    prompts  what each has in common with a kept prompt, and how many tokens that are
    fresh    the other tokens
    """

    logits: Tensor
    ends: Tensor
    prompts: list[tuple[KeptPrompt | None, int]]
    fresh: list[list[int]]

    def columns(self, row: int) -> slice:
        """Return where the keys and values of a sequence stand."""
        width = max(count for _, count in self.prompts)
        return slice(width - self.prompts[row][1], width + len(self.fresh[row]))


def read_sequences(
    forward: Forward, sequences: Sequence[TokenSequence], kept: PrefixCache | None, cache: Any, *, everywhere: bool
) -> Reading:
    """Read all tokens of the sequences into `cache` (None: into nothing); what they have in common with a `kept` prompt
    is not computed again. `everywhere`: logits of all new tokens are wanted."""
    prompts: list[tuple[KeptPrompt | None, int]] = [(None, 0)] * len(sequences)
    if kept is not None:
        prompts = [kept.find_shared(sequence) for sequence in sequences]
    shared = [count for _, count in prompts]
    fresh = [sequence.all_ids[count:] for sequence, count in zip(sequences, shared, strict=True)]
    longest = max(map(len, fresh))
    ids = torch.tensor([part + [0] * (longest - len(part)) for part in fresh], device=forward.device)
    if max(shared):
        example = next(prompt for prompt, count in prompts if prompt is not None and count)
        for layer in range(len(example.layers)):
            cache.update(*layer_tensors(prompts, layer), layer)
    lasts = [len(part) - 1 for part in fresh]
    places = sorted(set(lasts))
    logits = forward.read(ids, cache, shared, None if everywhere else places)
    at = lasts if everywhere else [places.index(last) for last in lasts]
    ends = logits[torch.arange(len(at)), torch.tensor(at)].float()
    return Reading(logits, ends, prompts, fresh)


def keep_prompts(kept: PrefixCache, sequences: Sequence[TokenSequence], reading: Reading, cache: Any) -> None:
    """Keep the prompts that were read into `cache`, for others that begin alike."""
    for row, sequence in enumerate(sequences):
        start = reading.columns(row).start
        columns = slice(start, start + len(sequence.ids))
        layers = [(layer.keys[row, :, columns], layer.values[row, :, columns]) for layer in _filled_layers(cache)]
        kept.keep(sequence, reading.prompts[row][1], layers)


def measure_prompts(forward: Forward, sequences: Sequence[TokenSequence], kept: PrefixCache | None) -> None:
    """Measure the prompts of the sequences, and choose one more token for each; `kept` None: keep nothing."""
    cache = None if kept is None else DynamicCache()
    reading = read_sequences(forward, sequences, kept, cache, everywhere=True)
    for row, (sequence, new) in enumerate(zip(sequences, reading.fresh, strict=True)):
        prompt, count = reading.prompts[row]
        before = prompt.values[:count] if prompt is not None else []
        logits = reading.logits[row, : len(new) - 1]
        sequence.prompt_values = [
            *before,
            *(likeliest_tokens(logits, new[1:], sequence.top or 0) if len(new) > 1 else []),
        ]
    if kept is not None:
        keep_prompts(kept, sequences, reading, cache)
    choose_tokens(reading.ends, sequences)


def check_joining(forward: Forward, vocabulary: int) -> int:
    """Return the bytes of keys and values of a token, where the model continues joined sequences, one of which begins
    with a kept prompt, exactly as it reads each of them alone; 0 where it does not. Raises what the model raises."""
    prompts = [[(7 * place + 3) % vocabulary for place in range(length)] for length in (11, 6)]
    prompts[1] += [1, 2, 3]  # it shares its beginning with the other
    kept = PrefixCache(1 << 20, 1)
    batches = [Batch(forward, [_probe_sequence(prompt)], kept) for prompt in prompts]
    batches[0].join(batches[1])
    joined = batches[0]
    joined.mask = torch.nn.functional.pad(joined.mask, (0, 1), value=1)
    logits = forward.next(joined._last, joined.mask, joined.cache)
    for row, sequence in zip(logits, joined.sequences, strict=True):
        alone = forward.read(torch.tensor([sequence.all_ids], device=forward.device), None, [0])[0, -1].float()
        difference = float((row - alone).std() / alone.std())
        if not difference <= TOLERANCE.get(forward.model.dtype, LOOSE):
            return 0
    return joined.bytes_per_token()


def _probe_sequence(ids: list[int]) -> TokenSequence:
    return TokenSequence(ids=ids, limit=1, sampling=Sampling(temperature=0), on_end=lambda _: None)


def _filled_layers(cache: Any) -> list[Any]:
    return [layer for layer in cache.layers if layer.is_initialized]


def _at_right(value: Tensor, reading: Reading, width: int) -> Tensor:
    """Return keys or values with the tokens of each sequence at the right end of `width` columns."""
    moved = value.new_zeros(value.shape[0], value.shape[1], width, value.shape[3])
    for row in range(value.shape[0]):
        own = value[row, :, reading.columns(row)]
        moved[row, :, width - own.shape[1] :] = own
    return moved
