# SPDX-License-Identifier: Apache-2.0
"""Texts, formulas and tables of a page that a model wrote as Markdown, as OmniDocBench takes them apart."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape

from msgspec import Struct, field

_IMAGE = re.compile(r"!\[[^\]\n]*\]\([^)\n]*\)")
_FENCE = re.compile(r"^```markdown\n?", re.MULTILINE)
_FENCE_END = re.compile(r"```\n?$", re.MULTILINE)
_CODE = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)
_REPEATED = re.compile(r"([^a-zA-Z0-9])\1{10,}")
_TABULAR = re.compile(r"\\begin\{(table|tabular)\}.*?\\end\{\1\}", re.DOTALL)
_TABLE_MARK = re.compile(r"<table[^>]*>|</table>")
_RULE = re.compile(r"[\s|:-]*-[\s|:-]*")
_STYLE = re.compile(r"\\(?:title|text|section\*?)\s*\{\s*([^{}]*?)\s*\}")
_MATH = (("$$", "$$"), ("\\[", "\\]"), ("$", "$"), ("\\(", "\\)"))


class Part(Struct, frozen=True):
    """A piece of a page, and where it begins."""

    text: str
    at: int


class Page(Struct):
    """What is on a page; texts hold their inline formulas, which are among the formulas, too. Tables are HTML."""

    texts: list[Part] = field(default_factory=list)
    formulas: list[Part] = field(default_factory=list)
    tables: list[Part] = field(default_factory=list)


def read_page(markdown: str) -> Page:
    """Return the parts of a page in their order. Tables in LaTeX belong to none of them."""
    page = Page()
    content = _FENCE_END.sub("", _FENCE.sub("", _IMAGE.sub("", markdown)))
    content = re.sub(r"_{4,}", "____", content)
    content = _REPEATED.sub(r"\1\1\1\1", re.sub(r" {4,}", "    ", content))
    content = _TABULAR.sub(_blank_out, content)
    for start, end in _html_tables(content):
        page.tables.append(Part(content[start:end], start))
        content = f"{content[:start]}{' ' * (end - start)}{content[end:]}"
    content = _take_formulas(content, page)
    content = _take_markdown_tables(content, page)
    for match in list(_CODE.finditer(content)):
        page.texts.append(Part(match[2].strip(), match.start()))
        content = f"{content[: match.start()]}{_blank_out(match)}{content[match.end() :]}"
    for part in _paragraph_parts(_STYLE.sub(r"\1", content)):
        if not (part.text.startswith("$") and part.text.endswith("$")):
            page.texts.append(part)
        elif part.text.replace("$", "").strip():
            page.formulas.append(part)
    for parts in (page.texts, page.formulas, page.tables):
        parts.sort(key=lambda part: part.at)
    return page


def _blank_out(match: re.Match[str]) -> str:
    return " " * len(match[0])


def _html_tables(text: str) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of the outermost tables; one that never ends is none."""
    starts: list[int] = []
    for mark in _TABLE_MARK.finditer(text):
        if mark[0] != "</table>":
            starts.append(mark.start())
        elif starts:
            start = starts.pop()
            if not starts:
                yield start, mark.end()


def _take_formulas(content: str, page: Page) -> str:
    """Move displayed formulas from `content` to the page, and return it with blanks in their place."""
    pieces, at, shown = [], 0, 0
    ended: set[str] = set()
    while at < len(content):
        opening, closing = next(
            ((o, c) for o, c in _MATH if o not in ended and content.startswith(o, at)), ("", "")
        )
        end = content.find(closing, at + len(opening)) if opening else -1
        if end < 0:
            if opening:
                ended.add(opening)
            else:
                at += 1
            continue
        inner = "".join(content[at + len(opening) : end].split())
        stop = end + len(closing)
        page.formulas.append(Part(f"\\[{inner}\\]", at))
        if opening in ("$$", "\\["):
            pieces += [content[shown:at], " " * (stop - at)]
            shown = stop
        at = stop
    return "".join([*pieces, content[shown:]])


def _take_markdown_tables(content: str, page: Page) -> str:
    """Move tables of lines `| … |` from `content` to the page, and return it with blanks in their place."""
    lines = content.split("\n")
    at, start = 0, -1
    position = 0
    starts: list[int] = []
    for line in lines:
        starts.append(position)
        position += len(line) + 1
    for at, line in enumerate([*lines, ""]):
        row = line.strip()
        if len(row) > 1 and row.startswith("|") and row.endswith("|"):
            if start < 0:
                start = at
            continue
        if start >= 0 and at - start > 1:
            page.tables.append(Part(_as_html(lines[start:at]), starts[start]))
            lines[start:at] = [" " * len(text) for text in lines[start:at]]
        start = -1
    return "\n".join(lines)


def _as_html(lines: list[str]) -> str:
    rows = [line.strip()[1:-1].split("|") for line in lines if not _RULE.fullmatch(line)]
    cells = ("".join(f"<td>{escape(cell.strip(), quote=False)}</td>" for cell in row) for row in rows)
    return f"<table>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>"


def _paragraph_parts(content: str) -> Iterator[Part]:
    """Yield the pieces between empty lines; lines, where there are none."""
    pieces = content.split("\n\n")
    if len(pieces) == 1:
        pieces = content.split("\n")
    at = 0
    for piece in pieces:
        if text := "\n".join(line.strip() for line in piece.strip().split("\n") if line.strip()):
            yield Part(text, at)
        at += len(piece)
