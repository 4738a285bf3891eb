# SPDX-License-Identifier: Apache-2.0
"""How alike two HTML tables are: similarity by tree edit distance, TEDS (Zhong et al. 2020, arXiv:1911.10683, §3).

Tables are made plain first, as OmniDocBench (arXiv:2412.07626) does: header cells are cells, nothing but spans counts.
"""

from __future__ import annotations

import html
import re
import unicodedata
from functools import lru_cache
from html.parser import HTMLParser

from msgspec import Struct, field

from newskills.graders.reading.overlap import edit_distance

_TABLE = re.compile(r"<table\b[^>]*>(.*)</table>", re.DOTALL | re.IGNORECASE)
_TAG = re.compile(r"<[a-zA-Z][^<>]*>")
_LOOKS = re.compile(r' (?:style|height|width|align|class)=".*?"')
_UNWRAPPED = re.compile(r"</?(?:thead|tbody|span|sup|sub|div|p)\b[^>]*>", re.IGNORECASE)
_HEADER = re.compile(r"(</?)th\b", re.IGNORECASE)
_FORMULA = re.compile(r"<math\b[^>]*?(?:alttext=\"([^\"]*)\")?[^>]*>.*?</math>", re.DOTALL | re.IGNORECASE)
_VOID = ("br", "img", "hr", "col", "input", "wbr")
_MOST = 4_000_000
"""Pairs of nodes: a table that is much larger than any on a page is not worth the time."""


class TableNode(Struct):
    """A row, a cell or another element; `content` of a cell: its characters, and the elements in it as `<tag>`."""

    tag: str
    spans: tuple[int, int] = (1, 1)
    content: list[str] = field(default_factory=list)
    children: list[TableNode] = field(default_factory=list)


def plain_table(text: str) -> str:
    """Return the table as it is compared; empty where there is none."""
    if "<table" not in text.replace(" ", ""):
        return ""
    text = _FORMULA.sub(lambda match: f"${match[1] or ''}$", text)
    text = _TAG.sub(lambda tag: " ".join(tag[0].split()), text)
    text = html.unescape(text).replace("\n", "")
    text = "".join(_TABLE.findall(unicodedata.normalize("NFKC", text).strip()))
    text = _UNWRAPPED.sub("", _HEADER.sub(r"\1td", _LOOKS.sub("", text)))
    text = re.sub(r"<colgroup>.*?</colgroup>", "", re.sub(r"\s+", " ", text))
    return f'<html><body><table border="1" >{text}</table></body></html>'


def table_likeness(first: str, second: str) -> float:
    """Return the TEDS of two tables that `plain_table` made, 0–1; 0 where one is missing, or far too large."""
    if not first or not second:
        return 0.0
    table, other = _Reader(first), _Reader(second)
    largest = max(table.elements, other.elements)
    if not largest or table.elements * other.elements > _MOST:
        return float(not largest)
    return 1.0 - tree_distance(table.tree, other.tree) / largest


class _Reader(HTMLParser):
    """The tree of the first table; rows and cells that are not closed end where the next begins."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tree = TableNode("table")
        self.elements = 0
        """Below the table, those in cells included."""
        self._open: list[TableNode] = []
        self._inside: list[str] = []
        """Elements that are open within a cell."""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("html", "body"):
            return
        if not self._open:
            if tag == "table":
                self._open.append(self.tree)
            return
        cell = self._open[-1].tag == "td"
        if cell and tag not in ("td", "tr"):
            self.elements += 1
            self._open[-1].content.append(f"<{tag}>")
            if tag in _VOID:
                self._open[-1].content.append(f"</{tag}>")
            else:
                self._inside.append(tag)
            return
        while self._open[-1].tag == "td" or (tag == "tr" and self._open[-1].tag == "tr"):
            self._close_element()
        self.elements += 1
        node = TableNode(tag, _read_spans(dict(attrs)))
        self._open[-1].children.append(node)
        if tag not in _VOID:
            self._open.append(node)

    def handle_endtag(self, tag: str) -> None:
        if self._inside:
            if tag in self._inside:
                while self._inside and self._close_inside() != tag:
                    pass
                return
            if tag not in ("td", "tr", "table"):
                return
        if any(node.tag == tag for node in self._open):
            while self._open and self._close_element() != tag:
                pass

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1].tag == "td":
            self._open[-1].content += data

    def _close_inside(self) -> str:
        tag = self._inside.pop()
        self._open[-1].content.append(f"</{tag}>")
        return tag

    def _close_element(self) -> str:
        while self._inside:
            self._close_inside()
        return self._open.pop().tag


def _read_spans(attributes: dict[str, str | None]) -> tuple[int, int]:
    values = (str(attributes.get(name) or "1").strip() for name in ("colspan", "rowspan"))
    column, row = (int(value) if value.isascii() and value.isdigit() and len(value) < 5 else 1 for value in values)
    return column, row


def tree_distance(first: TableNode, second: TableNode) -> float:
    """Count the elements to insert, delete and rename (Zhang and Shasha 1989).

    A cell's new text costs its share of change.
    """
    nodes, others = _post_order(first), _post_order(second)
    left, other_left = _leftmost_leaves(nodes), _leftmost_leaves(others)
    trees = [[0.0] * len(others) for _ in nodes]
    for i in _key_roots(left):
        for j in _key_roots(other_left):
            _fill_subtree_distances(i, j, nodes, others, left, other_left, trees)
    return trees[-1][-1]


def _fill_subtree_distances(
    i: int,
    j: int,
    nodes: list[TableNode],
    others: list[TableNode],
    left: list[int],
    right: list[int],
    trees: list[list[float]],
) -> None:
    """Fill in the distances of the trees below the roots `i` and `j`."""
    low, other_low = left[i], right[j]
    previous = [float(column) for column in range(j - other_low + 2)]
    forests = [previous]
    for row in range(low, i + 1):
        line = [previous[0] + 1.0]
        whole = left[row] == low
        before = forests[left[row] - low]
        for column in range(other_low, j + 1):
            at = column - other_low
            cheapest = min(previous[at + 1], line[at]) + 1.0
            if whole and right[column] == other_low:
                changed = previous[at] + _change_cost(nodes[row], others[column])
                trees[row][column] = cheapest = min(cheapest, changed)
            else:
                cheapest = min(cheapest, before[right[column] - other_low] + trees[row][column])
            line.append(cheapest)
        forests.append(line)
        previous = line


def _change_cost(first: TableNode, second: TableNode) -> float:
    if first.tag != second.tag or (first.tag == "td" and first.spans != second.spans):
        return 1.0
    if first.tag != "td" or first.content == second.content:
        return 0.0
    return _content_change(tuple(first.content), tuple(second.content))


@lru_cache(maxsize=100_000)
def _content_change(first: tuple[str, ...], second: tuple[str, ...]) -> float:
    return edit_distance(first, second) / max(len(first), len(second))


def _post_order(root: TableNode) -> list[TableNode]:
    order, waiting = [], [root]
    while waiting:
        node = waiting.pop()
        order.append(node)
        waiting += node.children
    return order[::-1]


def _leftmost_leaves(nodes: list[TableNode]) -> list[int]:
    """Return, for each node in post-order, the number of its leftmost leaf."""
    numbers = {id(node): at for at, node in enumerate(nodes)}
    left: list[int] = []
    for at, node in enumerate(nodes):
        leaf = left[numbers[id(node.children[0])]] if node.children else at
        left.append(leaf)
    return left


def _key_roots(left: list[int]) -> list[int]:
    """Return the number of the last node of each leftmost leaf, in order."""
    return sorted({leaf: at for at, leaf in enumerate(left)}.values())
