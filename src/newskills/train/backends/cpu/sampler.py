# SPDX-License-Identifier: Apache-2.0
"""Samples many sequences at once: each prompt is read once for all its samples, and what has ended leaves the batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

from newskills.train.backends.cpu.llama import Llama
from newskills.train.verbs import Sampled, SamplingParams

CACHE_BYTES = 1 << 30
"""Keys and values of what is sampled at once take at most this much (one prompt's samples always go together)."""

SHRINK = 0.75
"""Sequences that have ended are dropped when at most this share is left: dropping copies the cache."""


Decode = Callable[[Sequence[int]], str]


@torch.inference_mode()
def sample_continuations(
    model: Llama,
    prompts: Sequence[Sequence[int]],
    num_samples: int,
    params: SamplingParams,
    decode: Decode | None = None,
) -> list[list[Sampled]]:
    """Sample `num_samples` continuations of each prompt. `decode` makes text of tokens, where texts may end a sequence.

    Every sequence has random numbers of its own, drawn from the seed and its place, so that neither when others end
    nor how they are batched changes it (but for rounding in matrix products).
    """
    generator = torch.Generator().manual_seed(params.seed)
    dice = torch.rand(len(prompts) * num_samples, params.max_tokens, generator=generator, dtype=torch.float64)
    sampled: list[list[Sampled]] = []
    with model.steady():
        for start, end in _prompt_batches(model, prompts, num_samples, params.max_tokens):
            part = dice[start * num_samples : end * num_samples]
            flat = _Batch(model, prompts[start:end], num_samples, params, part, decode).run()
            sampled += [flat[at : at + num_samples] for at in range(0, len(flat), num_samples)]
    return sampled


def _prompt_batches(
    model: Llama, prompts: Sequence[Sequence[int]], copies: int, more: int
) -> Iterator[tuple[int, int]]:
    shape = model.shape
    place = 2 * shape.num_hidden_layers * shape.kv_heads * shape.head * model.embedding.element_size()
    start, longest = 0, 0
    for index, prompt in enumerate(prompts):
        longest = max(longest, len(prompt))
        if index > start and (index + 1 - start) * copies * (longest + more) * place > CACHE_BYTES:
            yield start, index
            start, longest = index, len(prompt)
    yield start, len(prompts)


class _Batch:
    """Sequences that are sampled together. `alive` [B] are those still in the batch, by their place."""

    def __init__(
        self,
        model: Llama,
        prompts: Sequence[Sequence[int]],
        copies: int,
        params: SamplingParams,
        dice: Tensor,
        decode: Decode | None,
    ) -> None:
        self.model, self.params, self.dice, self.decode = model, params, dice, decode
        self.copies, self.prompts = copies, prompts
        count = len(prompts) * copies
        self.tokens = torch.zeros(count, params.max_tokens, dtype=torch.long)
        self.logprobs = torch.zeros(count, params.max_tokens)
        self.lengths = torch.full((count,), params.max_tokens)
        self.stopped = torch.zeros(count, dtype=torch.bool)
        self.stops = torch.tensor(list(params.stop), dtype=torch.long)
        # A token holds at least a byte of its text, so the end of a stop text is seen in so many of them.
        self.window = max((len(text.encode()) for text in params.stop_texts), default=0)

    def run(self) -> list[Sampled]:
        logits, cache = self.model.prefill(self.prompts, self.copies, self.params.max_tokens)
        alive = torch.arange(len(self.tokens))
        for step in range(self.params.max_tokens):
            chosen, logprobs = draw_tokens(logits, self.params, self.dice[alive, step])
            self.tokens[alive, step], self.logprobs[alive, step] = chosen, logprobs
            ended = (torch.isin(chosen, self.stops) | self._ended_by_text(alive, step)) & ~self.stopped[alive]
            self.lengths[alive[ended]] = step + 1
            self.stopped[alive[ended]] = True
            going = ~self.stopped[alive]
            left = int(going.sum())
            if left == 0 or step + 1 == self.params.max_tokens:
                break
            if left <= SHRINK * len(alive):
                rows = going.nonzero().squeeze(1)
                alive, chosen = alive[rows], chosen[rows]
                cache.keep(rows)
            logits = self.model.step(chosen, cache)
        return [self._make_sample(row) for row in range(len(self.tokens))]

    def _ended_by_text(self, alive: Tensor, step: int) -> Tensor:
        """Return [B]: whether the last tokens of a sequence hold a stop text."""
        ended = torch.zeros(len(alive), dtype=torch.bool)
        if self.decode is None or not self.window:
            return ended
        tails = self.tokens[alive, max(0, step + 1 - self.window) : step + 1].tolist()
        for place, tail in enumerate(tails):
            if not self.stopped[alive[place]]:
                text = self.decode(tail)
                ended[place] = any(stop in text for stop in self.params.stop_texts)
        return ended

    def _make_sample(self, row: int) -> Sampled:
        length = int(self.lengths[row])
        return Sampled(
            tokens=self.tokens[row, :length].tolist(),
            logprobs=self.logprobs[row, :length].tolist(),
            stop_reason="stop" if self.stopped[row] else "length",
        )


def draw_tokens(logits: Tensor, params: SamplingParams, dice: Tensor) -> tuple[Tensor, Tensor]:
    """Choose from logits [B, V] and one number in [0, 1) a row → token ids [B] and their log-probabilities [B].

    The token is where the cumulative distribution passes the number: one sum, no random number a vocabulary entry.
    The log-probabilities are those at `logprob_temperature`, before cuts: those that training computes.
    """
    wide = logits.float()
    top = wide.amax(-1, keepdim=True)
    own = (wide - top).exp_()
    if params.temperature == 0:
        chosen = wide.argmax(-1, keepdim=True)
    else:
        plain = params.temperature == 1 and params.top_p >= 1 and params.top_k < 1
        shares = own if plain else _truncate_logits(wide / params.temperature, params).softmax(-1)
        cumulative = shares.cumsum(-1)
        aim = dice.to(cumulative.dtype).unsqueeze(1) * cumulative[:, -1:]
        chosen = torch.searchsorted(cumulative, aim, right=True).clamp_(max=wide.shape[1] - 1)
        # Rounding can stop at an entry that was cut away; the likeliest one is then taken.
        if (lost := shares.gather(1, chosen) == 0).any():
            chosen = torch.where(lost, wide.argmax(-1, keepdim=True), chosen)
    if (temperature := params.logprob_temperature) != 1:
        wide, top = wide / temperature, top / temperature
        own = (wide - top).exp_()
    logprobs = wide.gather(1, chosen) - top - own.sum(-1, keepdim=True).log()
    return chosen.squeeze(1), logprobs.squeeze(1)


def _truncate_logits(logits: Tensor, params: SamplingParams) -> Tensor:
    """Cut top_k, then top_p (https://arxiv.org/abs/1904.09751); what is cut away becomes -inf."""
    if 0 < params.top_k < logits.shape[1]:
        least = logits.topk(params.top_k).values[:, -1:]
        logits = logits.masked_fill(logits < least, -torch.inf)
    if params.top_p < 1:
        ordered, order = logits.sort(descending=True)
        shares = ordered.softmax(-1)
        beyond = shares.cumsum(-1) - shares >= params.top_p
        logits = logits.masked_fill(beyond.scatter(1, order, beyond), -torch.inf)
    return logits
