# SPDX-License-Identifier: Apache-2.0
"""Blocks of a report, as HTML and as Markdown. All text is escaped: no model, benchmark or file name is markup."""

from __future__ import annotations

import hashlib
import html
import re
from collections.abc import Sequence
from itertools import zip_longest
from typing import TypeAlias

from msgspec import Struct

from newskills.base.terminal import printable

STYLE = """
:root { color-scheme: light dark; --ink: #1a1a1a; --faint: #666; --line: #ccc; --paper: #fff; --one: #1f6feb;
  --two: #b3541e; --three: #1a7f37; --four: #8250df; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e6e6; --faint: #9a9a9a; --line: #444; --paper: #141414;
  --one: #6cb0ff; --two: #f0a06a; --three: #5fd07a; --four: #c9a6ff; } }
@media print { :root { --ink: #000; --faint: #444; --line: #999; --paper: #fff; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto;
  max-width: 60rem; padding: 0 1rem; }
h1, h2, h3 { line-height: 1.25; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; margin: 1rem 0; font-size: 0.9rem; }
th, td { border-bottom: 1px solid var(--line); padding: 0.25rem 0.75rem 0.25rem 0; text-align: left;
  vertical-align: top; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
pre { background: color-mix(in srgb, var(--ink) 6%, var(--paper)); padding: 0.75rem; }
figure { margin: 1rem 0; overflow-x: auto; }
figcaption, summary small { color: var(--faint); font-size: 0.9rem; }
svg { max-width: 100%; height: auto; }
.grid { display: grid; grid-template-columns: repeat(auto-fill, minmax(18rem, 1fr)); gap: 0 1.5rem; }
details { border-bottom: 1px solid var(--line); padding: 0.4rem 0; }
summary { cursor: pointer; font-weight: 600; overflow-wrap: anywhere; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; }
@media (max-width: 40rem) {
  thead { display: none; }
  tr { display: block; border-bottom: 1px solid var(--line); padding: 0.4rem 0; }
  td, td.number { display: flex; justify-content: space-between; gap: 1rem; border: 0; padding: 0.1rem 0;
    text-align: right; overflow-wrap: anywhere; }
  td::before { content: attr(data-label); color: var(--faint); text-align: left; overflow-wrap: normal; }
}
@page { size: A4; margin: 15mm; }
@media print { body { font-size: 10pt; margin: 0; max-width: none; } figure, tr { break-inside: avoid; }
  details::details-content { content-visibility: visible; display: block; } }
"""
CONTENT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_NUMBER = re.compile(r"[+\-−<]?\s?\d[\d.,]*\s?%?|\[.*\]|—")


class Heading(Struct, frozen=True):
    """`anchor`: a name that a `LinkList` leads to."""

    text: str
    level: int = 2
    anchor: str = ""


class Paragraph(Struct, frozen=True):
    text: str


class Table(Struct, frozen=True):
    """The first of `rows` is the head; `pictures`: SVG of our own, one for each of the others, in a last column."""

    rows: Sequence[Sequence[str]]
    pictures: Sequence[str] = ()


class Preformatted(Struct, frozen=True):
    text: str


class Figure(Struct, frozen=True):
    """`svg` is markup of our own; `caption` says in words what it shows, for Markdown and for screen readers."""

    svg: str
    caption: str


class Grid(Struct, frozen=True):
    """Small figures beside each other."""

    figures: Sequence[Figure]


class Fold(Struct, frozen=True):
    """Blocks below a title that readers open; Markdown and print show them."""

    title: str
    blocks: Sequence[Block]
    level: int = 3
    is_open: bool = False


class LinkList(Struct, frozen=True):
    """Links to headings of the page, as (text, anchor)."""

    label: str
    links: Sequence[tuple[str, str]]


Block: TypeAlias = Heading | Paragraph | Table | Preformatted | Figure | Grid | Fold | LinkList


def as_html(title: str, blocks: Sequence[Block]) -> str:
    """Render one page without scripts that asks nothing of any server; it reads in print and in dark mode."""
    body = "\n".join(map(_html_block, blocks))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{CONTENT_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_safe_text(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{_safe_text(title)}</h1>\n{body}\n</body>\n</html>\n"
    )


def _html_block(block: Block) -> str:
    match block:
        case Heading(text, level, anchor):
            name = f' id="{_anchor_id(anchor)}"' if anchor else ""
            return f"<h{level}{name}>{_safe_text(text)}</h{level}>"
        case LinkList(label, links):
            listed = " · ".join(
                f'<a href="#{_anchor_id(anchor)}">{_safe_text(text)}</a>' for text, anchor in links
            )
            return f"<p>{_safe_text(label)}: {listed}</p>"
        case Paragraph(text):
            return f"<p>{_safe_text(text)}</p>"
        case Preformatted(text):
            return f"<pre>{_safe_text(text)}</pre>"
        case Figure(svg, caption):
            return f"<figure>{svg}<figcaption>{_safe_text(caption)}</figcaption></figure>"
        case Grid(figures):
            return f'<div class="grid">\n{chr(10).join(map(_html_block, figures))}\n</div>'
        case Fold(title, blocks, _, is_open):
            start = "<details open>" if is_open else "<details>"
            body = "\n".join(map(_html_block, blocks))
            return f"{start}<summary>{_safe_text(title)}</summary>\n{body}\n</details>"
        case Table(rows, pictures):
            head, *rest = rows
            labels = [*head, ""] if pictures else head
            cells = "".join(f'<th scope="col">{_safe_text(cell)}</th>' for cell in labels)
            lines = "".join(
                f"<tr>{''.join(map(_table_cell, row, head))}{f'<td>{picture}</td>' if picture else ''}</tr>\n"
                for row, picture in zip_longest(rest, pictures, fillvalue="")
            )
            return (
                f'<div class="wide"><table>\n<thead><tr>{cells}</tr></thead>\n<tbody>\n{lines}</tbody>'
                "\n</table></div>"
            )


def _anchor_id(name: str) -> str:
    """Return a name as the id of an element: a hash, whatever the name holds."""
    return f"h{hashlib.blake2b(name.encode('utf-8', 'replace'), digest_size=6).hexdigest()}"


def _table_cell(text: str, label: str) -> str:
    kind = ' class="number"' if _NUMBER.fullmatch(text) else ""
    return f'<td{kind} data-label="{_safe_text(label)}">{_safe_text(text)}</td>'


def _safe_text(text: str) -> str:
    return html.escape(printable(text))


def as_markdown(title: str, blocks: Sequence[Block]) -> str:
    """Return the page in Markdown; of figures, what they show in words."""
    return "\n\n".join([f"# {_plain_text(title)}", *map(_markdown_block, blocks)]) + "\n"


def _markdown_block(block: Block) -> str:
    match block:
        case Heading(text, level):
            return f"{'#' * level} {_plain_text(text)}"
        case LinkList(label, links):
            return f"{_plain_text(label)}: {', '.join(_plain_text(text) for text, _ in links)}"
        case Paragraph(text):
            return _plain_text(text)
        case Preformatted(text):
            longest = max(map(len, re.findall(r"`+", text)), default=0)
            fence = "`" * max(3, longest + 1)
            return f"{fence}text\n{printable(text)}\n{fence}"
        case Figure(_, caption):
            return f"*{_plain_text(caption)}*"
        case Grid(figures):
            return "\n\n".join(map(_markdown_block, figures))
        case Fold(title, blocks, level):
            return "\n\n".join(map(_markdown_block, [Heading(title, level), *blocks]))
        case Table(rows):
            lines = [
                f"| {' | '.join(_plain_text(cell).replace('|', chr(92) + '|') for cell in row)} |" for row in rows
            ]
            return "\n".join([lines[0], f"|{'---|' * len(rows[0])}", *lines[1:]])


def _plain_text(text: str) -> str:
    """Return a text on one line, with what Markdown and HTML would obey escaped."""
    flat = " ".join(printable(text).split())
    return re.sub(r"([\\`*\[\]<>#~]|(?<!\w)_|_(?!\w))", r"\\\1", flat)
