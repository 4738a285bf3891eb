# SPDX-License-Identifier: Apache-2.0
"""Prompts of given lengths, of common English words: nearly every tokenizer has each of them as one token."""

from __future__ import annotations

import random
from collections.abc import Callable

from msgspec import Struct

from newskills.base.protocols import Model
from newskills.base.records import Request

_LIST = (
    "the of and to in is you that it he was for on are as with his they at be this have from or one had by word but "
    "not what all were we when your can said there use an each which she do how their if will up other about out many "
    "then them these so some her would make like him into time has look two more write go see number no way could "
    "people my than first water been call who oil its now find long down day did get come made may part"
)
WORDS = tuple(_LIST.split())
SHORT_PROBE, LONG_PROBE = 16, 272
"""Words of the two prompts by which the server's tokens are counted."""


class PromptLengths(Struct, frozen=True, kw_only=True):
    """Tokens of a prompt, of its beginning that others share, and of its reply. `spread`: both lengths are drawn
    between (1 - spread) and (1 + spread) times theirs."""

    input_tokens: int
    output_tokens: int
    prefix_tokens: int = 0
    prefixes: int = 1
    spread: float = 0.0
    seed: int = 0


class WordScale(Struct, frozen=True, kw_only=True):
    """Tokens that a server counts: `fixed` for what stands around a prompt, `per_word` for each word."""

    fixed: float = 0.0
    per_word: float = 1.0

    def words(self, tokens: float) -> int:
        """Return how many words make a prompt of so many tokens, at least one."""
        return max(1, round((tokens - self.fixed) / self.per_word))


async def measure_scale(model: Model, ask: Callable[[str], Request]) -> WordScale | None:
    """Ask the server twice how many tokens a prompt has; None where it does not say. Raises the HttpError family."""
    draw = random.Random("scale")  # noqa: S311 - no secret
    counts: list[int] = []
    for words in (SHORT_PROBE, LONG_PROBE):
        reply = await model.complete(ask(drawn_words(draw, words)))
        if reply.usage.input_tokens is None:
            return None
        counts.append(reply.usage.input_tokens)
    per_word = (counts[1] - counts[0]) / (LONG_PROBE - SHORT_PROBE)
    if per_word <= 0:
        return None
    return WordScale(fixed=counts[0] - SHORT_PROBE * per_word, per_word=per_word)


def prompt_text(lengths: PromptLengths, scale: WordScale, level: str, number: int) -> tuple[str, int]:
    """Return the text of prompt `number` of a level, and the tokens that its reply should have.

    Both are the same for the same seed; only shared beginnings are those of other levels, too.
    """
    draw = random.Random(f"prompt {lengths.seed} {level} {number}")  # noqa: S311 - no secret
    factor = draw.uniform(1 - lengths.spread, 1 + lengths.spread)
    total = scale.words(lengths.input_tokens * factor)
    shared = min(total - 1, round(lengths.prefix_tokens / scale.per_word))
    begin = random.Random(f"prefix {lengths.seed} {number % lengths.prefixes}")  # noqa: S311 - no secret
    text = f"{drawn_words(begin, shared)} {drawn_words(draw, total - shared)}".strip()
    return text, max(1, round(lengths.output_tokens * draw.uniform(1 - lengths.spread, 1 + lengths.spread)))


def drawn_words(draw: random.Random, count: int) -> str:
    """Return so many words, drawn with replacement."""
    return " ".join(draw.choices(WORDS, k=max(0, count)))
