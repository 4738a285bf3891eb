# SPDX-License-Identifier: Apache-2.0
"""The next token of each sequence of a batch, and its log-probability.

Settings are applied in vLLM's order: repetition penalty, temperature, `min_p`, `top_k`, `top_p`. A sequence draws one
number for each token from a generator of its own, so that its neighbours in the batch do not change what it draws.
Log-probabilities are those of the model, before any of these settings.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from newskills.base.errors import ServerError
from newskills.models.serving.hf.sequences import Likeliest, TokenSequence


def choose_tokens(logits: Tensor, sequences: Sequence[TokenSequence]) -> list[int]:
    """Return the next token of each sequence; `logits` is [sequences, vocabulary] in float32.

    Appends the token, and its log-probability where one is wanted. Raises ServerError for logits that are no numbers.
    """
    if not torch.isfinite(logits.amax(-1)).all():
        raise ServerError(
            "The model computes numbers that are not finite: nothing can be read from them.",
            hint="Another --dtype may help: float32 or bfloat16.",
        )
    chosen = _penalize_repetition(logits, sequences).argmax(-1)
    size = logits.shape[-1]
    for narrows in (False, True):  # apart, since what one draw gives depends on the order of the tokens
        drawing = [
            place
            for place, sequence in enumerate(sequences)
            if sequence.sampling.temperature > 0 and sequence.sampling.narrows(size) == narrows
        ]
        if drawing:
            picked = [sequences[place] for place in drawing]
            chosen[drawing] = _draw_tokens(_penalize_repetition(logits[drawing], picked), picked)
    tokens: list[int] = chosen.tolist()
    for place, (sequence, token) in enumerate(zip(sequences, tokens, strict=True)):
        sequence.generated.append(token)
        if sequence.top is not None:
            sequence.values += likeliest_tokens(logits[place : place + 1], [token], sequence.top)
    return tokens


def likeliest_tokens(logits: Tensor, tokens: Sequence[int], count: int) -> list[Likeliest]:
    """Return the log-probability of each token at its place, with the `count` likeliest there; `logits` is [tokens,
    vocabulary]."""
    logits = logits.float()
    total = logits.logsumexp(-1)
    own = logits.gather(-1, torch.tensor(tokens, device=logits.device)[:, None])[:, 0] - total
    if count == 0:
        return [Likeliest(value) for value in own.tolist()]
    # argmax rather than topk: many times faster, and nearly all requests want one
    if count == 1:
        best, ids = logits.max(-1, keepdim=True)
    else:
        best, ids = logits.topk(min(count, logits.shape[-1]))
    best = best - total[:, None]
    rows = zip(own.tolist(), ids.tolist(), best.tolist(), strict=True)
    return [Likeliest(value, tuple(zip(row_ids, row_best, strict=True))) for value, row_ids, row_best in rows]


def _penalize_repetition(logits: Tensor, sequences: Sequence[TokenSequence]) -> Tensor:
    """Return the logits with the tokens of the sequence so far made less likely (https://arxiv.org/abs/1909.05858)."""
    if all(sequence.sampling.repetition_penalty == 1 for sequence in sequences):
        return logits
    logits = logits.clone()
    for place, sequence in enumerate(sequences):
        penalty = sequence.sampling.repetition_penalty
        if penalty != 1:
            used = torch.tensor(sorted(set(sequence.all_ids)), device=logits.device)
            values = logits[place, used]
            logits[place, used] = torch.where(values > 0, values / penalty, values * penalty)
    return logits


def _draw_tokens(logits: Tensor, sequences: Sequence[TokenSequence]) -> Tensor:
    device = logits.device
    settings = [sequence.sampling for sequence in sequences]

    def column(values: Sequence[float]) -> Tensor:
        return torch.tensor(values, device=device)[:, None]

    dice = column([sequence.roll() for sequence in sequences])
    probs = (logits / column([each.temperature for each in settings])).softmax(-1)
    size = probs.shape[-1]
    order = None
    if any(each.narrows(size) for each in settings):
        probs, order = probs.sort(dim=-1, descending=True, stable=True)
        kept = probs >= probs[:, :1] * column([each.min_p for each in settings])
        kept &= torch.arange(size, device=device) < column(
            [each.top_k if each.top_k > 0 else size for each in settings]
        )
        probs = probs * kept
        probs = probs / probs.sum(-1, keepdim=True)
        probs = probs * (probs.cumsum(-1) - probs < column([each.top_p for each in settings]))
    reached = probs.double().cumsum(-1)
    place = torch.searchsorted(reached, dice.double() * reached[:, -1:], right=True)
    last = (
        size - 1 - (probs.flip(-1) > 0).int().argmax(-1, keepdim=True)
    )  # rounding must not choose what was left out
    place = torch.minimum(place, last)
    if order is not None:
        place = order.gather(-1, place)
    return place[:, 0]
