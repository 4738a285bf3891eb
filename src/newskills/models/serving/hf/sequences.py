# SPDX-License-Identifier: Apache-2.0
"""What the engine computes: a prompt as token ids, how to go on from it, and what came of it so far."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch
from msgspec import Struct, field

from newskills.base.records import Row


class Likeliest(Struct, frozen=True):
    """The logarithm of the probability of a token at its place, and those of the likeliest tokens there, by id."""

    logprob: float
    top: tuple[tuple[int, float], ...] = ()


class Sampling(Struct, frozen=True, kw_only=True):
    """How a token is chosen; temperature 0 takes the likeliest. `seed` None: another one each time."""

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    seed: int | None = None

    def narrows(self, vocabulary: int) -> bool:
        """Return whether some tokens are left out."""
        return 0 < self.top_k < vocabulary or self.top_p < 1 or self.min_p > 0


class TokenSequence(Struct, kw_only=True, eq=False):
    """One request in work. Only the engine's thread writes into it, apart from `cancelled`.

    ids           the prompt
    limit         new tokens at most
    stop          texts that end it
    top           log-probabilities of so many likeliest tokens are wanted beside the chosen one's; None: none at all
    measured      log-probabilities of the prompt's own tokens are wanted, too
    alone         it is computed without others, since a batch with it has failed
    shared        tokens of the prompt that need not be computed, as far as is foreseen
    inputs        what the processor of a vision-language model made of images, and of the ids around them
    on_end        called in the engine's thread when it has ended, or failed
    generated     ids of the new tokens, the one that ended it among them
    prompt_values of each token of the prompt but the first
    values        of each new token
    finish        stop, length; empty while it runs
    stopped_by    the text of `stop` that ended it
    rolled        random numbers of the new tokens
    """

    ids: list[int]
    limit: int
    sampling: Sampling
    on_end: Callable[[TokenSequence], None]
    stop: tuple[str, ...] = ()
    top: int | None = None
    measured: bool = False
    alone: bool = False
    shared: int = 0
    inputs: Row = {}
    cancelled: bool = False
    generated: list[int] = []
    prompt_values: list[Likeliest] = []
    values: list[Likeliest] = []
    finish: str = ""
    stopped_by: str = ""
    error: Exception | None = None
    dice: Any = field(default_factory=torch.Generator)
    rolled: list[float] = []

    def __post_init__(self) -> None:
        seed = self.sampling.seed
        self.dice.manual_seed(random.getrandbits(63) if seed is None else seed % 2**63)

    def roll(self) -> float:
        """Return the number, 0–1, that chooses the next token: the same where that is chosen again after a failure."""
        while len(self.rolled) <= len(self.generated):
            self.rolled.append(torch.rand(1, generator=self.dice, dtype=torch.float64).item())
        return self.rolled[len(self.generated)]

    @property
    def length(self) -> int:
        """Number of tokens so far."""
        return len(self.ids) + len(self.generated)

    @property
    def work(self) -> int:
        """Number of tokens that have to be computed to go on."""
        return self.length - self.shared

    @property
    def all_ids(self) -> list[int]:
        return [*self.ids, *self.generated]

    def end(self, error: Exception | None = None) -> None:
        """Tell the one who waits that nothing more will come."""
        self.error = error
        self.on_end(self)
