# SPDX-License-Identifier: Apache-2.0
"""Figures named by their points: `\\triangle ABC`, `\\angle ABC`, `\\overline{AB}`, and which of them are similar."""

from __future__ import annotations

import re
from typing import NamedTuple

_NAMED = re.compile(
    r"angle|\\over(?:line|leftrightarrow)|△|∠|\\(?:sim|cong|parallel|perp)(?![a-zA-Z])|\\Delta [A-Z]{3}"
)
_LONGEST = 200
_DRESS = re.compile(r"\\(?:mathrm|text|textrm|mathit|mathbf)(?=\s*\{)|\\[,;:! ]|\\q?quad(?![a-zA-Z])|[${}~\s.]")
_FIGURE = re.compile(
    r"(?P<kind>\\?triangle|\\Delta|\\?angle|\\overline|\\overleftrightarrow|)(?P<points>(?:[A-Z]'{0,2}_?\d?){1,6})"
)
_POINT = re.compile(r"[A-Z]'{0,2}(?:_?\d)?")
_RELATION = re.compile(r"(\\(?:sim|cong|parallel|perp)(?![a-zA-Z])|=)")
_KINDS = {"\\Delta": "triangle", "\\overleftrightarrow": "line", "\\overline": "line"}


class _Figure(NamedTuple):
    kind: str
    points: tuple[str, ...]


class _Statement(NamedTuple):
    """One figure, or two with what is said of them."""

    figures: tuple[_Figure, ...]
    relation: str = ""


def same_figure(pred: str, gold: str) -> bool | None:
    """Return whether both name the same figure, or say the same of the same two; None where either is anything else.

    The order of its points does not change a triangle, nor the end from which it is read an angle or a line. Where two
    triangles are similar or congruent, it says which point answers to which.
    """
    if max(len(pred), len(gold)) > _LONGEST or _NAMED.search(gold) is None:
        return None
    first, second = _read_statement(pred), _read_statement(gold)
    if first is None or second is None or len(first.figures) != len(second.figures):
        return None
    if len(first.figures) == 1:
        return _same_alone(first.figures[0], second.figures[0])
    if first.relation != second.relation:
        return False
    return any(_same_pair(ours, second.figures) for ours in (first.figures, first.figures[::-1]))


def _read_statement(text: str) -> _Statement | None:
    sides = _RELATION.split(text)
    figures = tuple(figure for side in sides[::2] if (figure := _read_figure(side)) is not None)
    if len(figures) != len(sides[::2]) or len(figures) > 2:
        return None
    relation = sides[1] if len(sides) > 1 else ""
    return _Statement(figures, relation)


def _read_figure(text: str) -> _Figure | None:
    match = _FIGURE.fullmatch(_DRESS.sub("", text))
    if match is None:
        return None
    kind = _KINDS.get(match["kind"], match["kind"].removeprefix("\\"))
    points = tuple(_POINT.findall(match["points"]))
    sizes = {"triangle": (3,), "angle": (1, 3), "line": (2,)}.get(kind, (2, 3))
    if len(points) in sizes:
        return _Figure(kind, points)
    return None


def _same_alone(pred: _Figure, gold: _Figure) -> bool | None:
    kind = gold.kind or pred.kind
    if not kind or (pred.kind and pred.kind != kind):
        return None
    if kind == "triangle":
        return set(pred.points) == set(gold.points)
    return gold.points in (pred.points, pred.points[::-1])


def _same_pair(pred: tuple[_Figure, ...], gold: tuple[_Figure, ...]) -> bool:
    kinds = [g.kind or p.kind for p, g in zip(pred, gold, strict=True)]
    if any(p.kind not in ("", kind) for p, kind in zip(pred, kinds, strict=True)):
        return False
    if any(len(p.points) != len(g.points) for p, g in zip(pred, gold, strict=True)):
        return False
    if len(gold[0].points) == len(gold[1].points) == 3 and "angle" not in kinds:
        matched, wanted = (set(zip(a.points, b.points, strict=True)) for a, b in (pred, gold))
        return matched == wanted
    return all(g.points in (p.points, p.points[::-1]) for p, g in zip(pred, gold, strict=True))
