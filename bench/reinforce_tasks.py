# SPDX-License-Identifier: Apache-2.0
"""Small tasks with one right answer each, made from a seed: what GRPO learns in `bench.reinforce`."""

from __future__ import annotations

import random
from collections.abc import Callable
from string import ascii_lowercase

from msgspec import Struct

HELD_OUT, TUNE, REINFORCE = 400, 640, 800
"""Problems to measure on, examples to fine-tune with, problems to reinforce with; no question twice."""

TUNE_STEPS = {"reversal": 28, "backwards": 28, "numerals": 160, "alphabet": 32}
"""Of 16 examples: until the model is right now and then."""

_ROMAN = (
    (1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL"), (10, "X"),
    (9, "IX"), (5, "V"), (4, "IV"), (1, "I"),
)  # fmt: skip
_WORDS = [
    "apple", "river", "stone", "cloud", "bread", "tiger", "music", "green", "table", "night", "water", "horse",
    "paper", "glass", "light", "plant", "sugar", "chair", "ocean", "lemon", "house", "train", "silver", "garden",
    "window", "summer", "winter", "bridge", "candle", "forest", "island", "mirror", "orange", "pencil", "rabbit",
    "shadow",
]  # fmt: skip


class Item(Struct, frozen=True):
    question: str
    answer: str


class Split(Struct, frozen=True):
    held_out: list[Item]
    tune: list[Item]
    reinforce: list[Item]


def numerals(draw: random.Random) -> Item:
    number = rest = draw.randrange(1, 4000)
    text = ""
    for value, letters in _ROMAN:
        text, rest = text + letters * (rest // value), rest % value
    return Item(f"{number} as a Roman numeral:\n", text)


def alphabet(draw: random.Random) -> Item:
    """The task that the learning rate was looked for with; the others have had no part in that."""
    letters = draw.sample(ascii_lowercase, 5)
    return Item(f"{' '.join(letters)} in alphabetical order:\n", " ".join(sorted(letters)))


def reversal(draw: random.Random) -> Item:
    words = draw.sample(_WORDS, 4)
    return Item(f"{' '.join(words)} backwards:\n", " ".join(reversed(words)))


def backwards(draw: random.Random) -> Item:
    letters = draw.choices(ascii_lowercase, k=5)
    return Item(f"{' '.join(letters)} backwards:\n", " ".join(reversed(letters)))


TASKS: dict[str, Callable[[random.Random], Item]] = {
    "reversal": reversal,
    "backwards": backwards,
    "numerals": numerals,
    "alphabet": alphabet,
}


def split(task: str) -> Split:
    """The same every time."""
    draw, found = random.Random(f"reinforce-{task}"), dict[str, Item]()
    while len(found) < HELD_OUT + TUNE + REINFORCE:
        item = TASKS[task](draw)
        found.setdefault(item.question, item)
    items = list(found.values())
    return Split(items[:HELD_OUT], items[HELD_OUT : HELD_OUT + TUNE], items[HELD_OUT + TUNE :])
