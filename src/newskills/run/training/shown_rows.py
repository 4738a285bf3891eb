# SPDX-License-Identifier: Apache-2.0
"""Training examples as the model sees them, with marks around the tokens that have a loss."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import NamedTuple

from newskills.base.records import Row
from newskills.base.terminal import counted, printable
from newskills.train.verbs import Datum

ROWS_SHOWN = 3
_MOST = 2_000
"""Characters of a piece without a loss that are shown: its beginning and its end."""
_BEGIN, _END = "⟦", "⟧"
_COLOURED = "\033[1;32m", "\033[0m"

Decode = Callable[[Sequence[int]], str]


class ShownPiece(NamedTuple):
    """A run of tokens as text, and whether the model learns to write it."""

    text: str
    learnt: bool


def pieces_of(datum: Datum, decode: Decode) -> list[ShownPiece]:
    """Return the text of an example in pieces, by whether their tokens have a loss."""
    tokens = [datum.tokens[0], *datum.targets]
    flags = [False, *(weight > 0 for weight in datum.weights or ())]
    pairs = groupby(zip(tokens, flags, strict=True), key=lambda pair: pair[1])
    return [ShownPiece(decode([token for token, _ in group]), learnt) for learnt, group in pairs]


def show_examples(examples: Sequence[Datum], rows: int, decode: Decode) -> None:
    """Print examples, made of the first of so many rows; tokens with a loss are green in a terminal, else between ⟦
    and ⟧."""
    begin, end = _COLOURED if sys.stdout.isatty() else (_BEGIN, _END)
    sys.stdout.write(
        f"What the model sees of the first of {counted(rows, 'row')} (trained on: {begin}this{end}):\n"
    )
    for number, datum in enumerate(examples, 1):
        learnt = sum(weight > 0 for weight in datum.weights or ())
        tokens = counted(len(datum.tokens) + 1, "token")
        sys.stdout.write(f"\n── example {number}: {tokens}, {learnt} of them trained on\n")
        for text, is_learnt in pieces_of(datum, decode):
            if is_learnt:
                written = f"{begin}{printable(text)}{end}"
            else:
                written = printable(_shorten_text(text))
            sys.stdout.write(written)
        sys.stdout.write("\n")
    sys.stdout.write("\n")


def example_rows(examples: Sequence[Datum], decode: Decode) -> list[Row]:
    """Return the first examples as pieces of text, which a run keeps for the viewer."""
    return [
        {
            "tokens": len(datum.tokens) + 1,
            "pieces": [{"text": text, "learnt": learnt} for text, learnt in pieces_of(datum, decode)],
        }
        for datum in examples[:ROWS_SHOWN]
    ]


def _shorten_text(text: str) -> str:
    if len(text) <= _MOST:
        return text
    return f"{text[: _MOST // 2]} … {len(text) - _MOST:,} characters … {text[-_MOST // 2 :]}"
