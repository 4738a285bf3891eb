# SPDX-License-Identifier: Apache-2.0
"""Tables for terminals: every line fits, no word is cut. Imports nothing heavy: the front pages of the command use it.

A word that is longer than a whole line (a path) stands alone on its line, so that it can be copied; in a table of
figures, a name that is longer than half a line goes on in the next one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence

WIDTH = 80
"""Columns that everything fits which a person reads."""
INDENT = "    "
_NARROW = 12
"""Columns that a cell of text gets at least before it is put below its row."""

Cells = Sequence[object]


def output_width() -> int | None:
    """Return the columns of the output: `COLUMNS`, else those of the terminal; None where neither says."""
    try:
        return max(int(os.environ.get("COLUMNS", "")), 20)
    except ValueError:
        pass
    try:
        return max(os.get_terminal_size(sys.stdout.fileno()).columns, 20)
    except (OSError, ValueError):  # a pipe, a file, no file at all
        return None


def print_table(rows: Sequence[Cells], head: Cells = ()) -> None:
    """Print `rows` below each other and below `head`, as wide as the terminal; in a pipe or a file, every row is
    one line."""
    for line in table_lines(rows, head, output_width()):
        sys.stdout.write(f"{line}\n")


def print_text(text: str) -> None:
    """Print a sentence, as wide as the terminal; in a pipe or a file, one line."""
    for line in wrap_text(text, output_width(), hanging="  "):
        sys.stdout.write(f"{line}\n")


def table_lines(rows: Sequence[Cells], head: Cells = (), width: int | None = WIDTH) -> list[str]:
    """Justify cells left, below each other, in lines of at most `width` columns (None: as wide as they are).

    Where they do not fit, cells of text are wrapped. Where that is not enough, the last columns follow below their
    row, indented, each after its name in `head`.
    """
    texts = [[str(cell) for cell in row] for row in rows]
    if head:
        texts.insert(0, [str(cell) for cell in head])
    if not texts:
        return []
    beside = len(texts[0])
    while (widths := _column_widths([row[:beside] for row in texts], width, "  ")) is None:
        beside -= 1
    names = texts[0] if head else [""] * len(texts[0])
    lines: list[str] = []
    for number, row in enumerate(texts):
        lines += [line.rstrip() for line in _row_lines(row[:beside], widths, "  ")]
        if number or not head:
            for name, cell in zip(names[beside:], row[beside:], strict=True):
                if cell:
                    labelled = f"{name}: {cell}" if name else cell
                    lines += wrap_text(labelled, width, INDENT, "  ")
    return lines


def stacked_blocks(rows: Sequence[Sequence[str]], width: int | None, joint: str) -> list[list[str]]:
    """Return a table of figures, whose first row is the head, in as few blocks as fit: each repeats the first column,
    none is much wider than the others, and all lines of a block are equally long. `width` None: one block."""
    widths = _natural_widths(rows)
    if width is None or sum(widths) + len(joint) * (len(widths) - 1) <= width:
        return [_aligned_lines(rows, widths, joint)]
    least = _block_widths(rows, width, joint)
    fewest = len(_column_blocks(least, width, joint))
    while len(_column_blocks(least, width - 1, joint)) == fewest and width > max(least[1:]) + least[0] + len(
        joint
    ):
        width -= 1
    return [
        _aligned_lines(
            [[row[0], *(row[n] for n in chosen)] for row in rows], [least[0], *(least[n] for n in chosen)], joint
        )
        for chosen in _column_blocks(least, width, joint)
    ]


def markdown_table(rows: Sequence[Cells]) -> list[str]:
    """Return the lines of a Markdown table, whose first row is the head."""
    lines = [f"| {' | '.join(map(str, row))} |" for row in rows]
    return [*lines[:1], "|" + "---|" * len(rows[0]), *lines[1:]]


def wrap_text(
    text: str, width: int | None, indent: str = "", hanging: str = "", *, break_words: bool = False
) -> list[str]:
    """Wrap `text` in lines of at most `width` columns, broken between words, with `break_words` also in those that
    are longer than a line; the first begins with `indent`, the others with that and `hanging`. Lines of `text`
    stay lines. `width` None: as it is."""
    lines: list[str] = []
    for line in text.split("\n"):
        if width is None or len(indent) + len(line) <= width:
            indented = indent + line if line else ""
            lines.append(indented)
            continue
        start = indent + line[: len(line) - len(line.lstrip())]
        words = line.split()
        if break_words:
            most = max(width - len(start) - len(hanging), 1)
            words = [word[at : at + most] for word in words for at in range(0, len(word), most)]
        current = start + words[0] if words else ""
        for word in words[1:]:
            if len(current) + 1 + len(word) <= width:
                current += f" {word}"
            else:
                lines.append(current)
                current = start + hanging + word
        lines.append(current)
    return lines


def _column_widths(rows: Sequence[Sequence[str]], width: int | None, joint: str) -> list[int] | None:
    """Return the widths of columns that fit beside each other, those of text narrowed where needed; None where
    they do not fit (one column always does)."""
    widths = _natural_widths(rows)
    if width is None:
        return widths
    room = width - len(joint) * (len(widths) - 1)
    if sum(widths) <= room:
        return widths
    least = [
        min(natural, max(_NARROW, longest)) for natural, longest in zip(widths, _longest_words(rows), strict=True)
    ]
    spare = room - sum(least)
    if spare < 0:
        if len(widths) > 1:
            return None
        return least
    for column in sorted(range(len(widths)), key=lambda n: widths[n] - least[n]):
        wanting = sum(widths[n] > least[n] for n in range(len(widths)))
        more = min(widths[column] - least[column], spare // max(wanting, 1))
        least[column] += more
        spare -= more
        widths[column] = least[column]
    return least


def _natural_widths(rows: Sequence[Sequence[str]]) -> list[int]:
    """Return the width of each column where no cell is wrapped."""
    return [max(len(line) for cell in column for line in cell.split("\n")) for column in zip(*rows, strict=True)]


def _longest_words(rows: Sequence[Sequence[str]]) -> list[int]:
    """Return the width of the longest word of each column, which no cell can do without."""
    return [
        max(len(word) for cell in column for word in _breakable_words(cell)) for column in zip(*rows, strict=True)
    ]


def _breakable_words(cell: str) -> list[str]:
    """Split a cell where it may be broken: between words; figures and what belongs to them stay together."""
    if any(map(str.isalpha, cell)):
        return cell.split()
    return cell.split("\n")


def _block_widths(rows: Sequence[Sequence[str]], width: int, joint: str) -> list[int]:
    """Return the width of each column where one stands beside the first: texts that are wider are wrapped."""
    naturals = _natural_widths(rows)
    first = min(naturals[0], width // 2)
    room = width - first - len(joint)
    return [first, *(min(natural, room) for natural in naturals[1:])]


def _column_blocks(widths: Sequence[int], width: int, joint: str) -> list[list[int]]:
    """Divide the columns after the first into blocks, as many to a block as fit; return their numbers."""
    blocks: list[list[int]] = []
    taken = 0
    for number in range(1, len(widths)):
        needed = len(joint) + widths[number]
        if not blocks or taken + needed > width:
            blocks.append([])
            taken = widths[0]
        blocks[-1].append(number)
        taken += needed
    return blocks or [[]]


def _aligned_lines(rows: Sequence[Sequence[str]], widths: Sequence[int], joint: str) -> list[str]:
    return [line for row in rows for line in _row_lines(row, widths, joint, break_words=True)]


def _row_lines(
    row: Sequence[str], widths: Sequence[int], joint: str, *, break_words: bool = False
) -> Iterator[str]:
    """Yield the lines of a row, several where a cell is wrapped."""
    cells = [wrap_text(cell, width, break_words=break_words) for cell, width in zip(row, widths, strict=True)]
    for number in range(max(map(len, cells))):
        pieces = (cell[number] if number < len(cell) else "" for cell in cells)
        yield joint.join(piece.ljust(width) for piece, width in zip(pieces, widths, strict=True))
