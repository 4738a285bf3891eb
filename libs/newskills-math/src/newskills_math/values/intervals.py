# SPDX-License-Identifier: Apache-2.0
"""Subsets of the real line: intervals, unions, inequalities in one variable, finite sets, in one normal form."""

from __future__ import annotations

from typing import Any, NamedTuple

from newskills_math.syntax.nodes import Node, number_node, replace_nodes, symbols, walk_tree
from newskills_math.syntax.tables import FLIPPED
from newskills_math.values.equal import numbers_agree, real_value
from newskills_math.values.evaluate import own_context

_ORDER = frozenset("<>≤≥")
_MOST_MEMBERS = 60


class Piece(NamedTuple):
    """One interval; `low` and `high` may be infinite (then open)."""

    low: Any
    low_closed: bool
    high: Any
    high_closed: bool


class RealSet(NamedTuple):
    """Disjoint pieces in order; `variable` is the one that an inequality spoke of, else ''."""

    pieces: tuple[Piece, ...]
    variable: str = ""


class NoRealSet(Exception):
    """The tree does not describe a set of real numbers that is known numerically."""


def looks_like_one(node: Node) -> bool:
    """Return whether the tree can only be meant as a set of reals (a bare `(1,2)` may be a point)."""
    if node.kind in ("union", "inter", "minus", "builder"):
        return True
    if node.kind == "const":
        return node.name in ("ℝ", "empty")
    if node.kind == "tuple" and len(node.args) == 2:
        return node.name in ("(]", "[)") or any(
            n.kind == "const" and n.name == "inf" for a in node.args for n in walk_tree(a)
        )
    if node.kind == "rel":
        return bool(set(node.name) & _ORDER) or node.name in ("∈", "≠")
    return node.kind == "list" and any(looks_like_one(a) for a in node.args)


def are_joined_and_apart(first: Node, second: Node) -> bool:
    """Return whether one joins sets that the other lists: `(1,2) \\cup (3,4)` is one set, `(1,2), (3,4)` may be two
    points.

    A list of what can only be intervals (`(-\\infty,1), (3,\\infty)`) is taken for their union.
    """
    for joined, listed in ((first, second), (second, first)):
        if listed.kind != "list" or listed.name == "or":
            continue
        kinds = {member.kind for member in listed.args if not looks_like_one(member) and member.name != "[]"}
        if kinds and kinds <= ({"tuple", "set"} if joined.kind == "union" else {"set"} - _member_kinds(joined)):
            return joined.kind in ("union", "set")
    return False


def _member_kinds(node: Node) -> set[str]:
    return {member.kind for member in node.args}


def real_set(node: Node) -> RealSet:
    """Return the set of real numbers that `node` is. Raises NoRealSet."""
    match node.kind:
        case "tuple":
            return RealSet(_interval_pieces(node))
        case "const" if node.name == "ℝ":
            return RealSet((_all_reals(),))
        case "const" if node.name == "empty":
            return RealSet(())
        case "set":
            return _union_of([RealSet((_point_piece(a),)) for a in node.args])
        case "union":
            return _union_of([real_set(a) for a in node.args])
        case "inter":
            return _intersection_of([real_set(a) for a in node.args])
        case "minus":
            first, second = (real_set(a) for a in node.args)
            return _intersection_of([first, _complement_of(second)])
        case "rel":
            return _relation_set(node)
        case "list":
            return _condition_set(node)
        case "builder":
            return _builder_set(node)
    return RealSet((_point_piece(node),))


def same_set(a: RealSet, b: RealSet) -> bool:
    if a.variable and b.variable and a.variable != b.variable:
        return False
    if len(a.pieces) != len(b.pieces):
        return False
    return all(
        _same_end(x.low, y.low)
        and _same_end(x.high, y.high)
        and x.low_closed == y.low_closed
        and x.high_closed == y.high_closed
        for x, y in zip(a.pieces, b.pieces, strict=True)
    )


def repeats_member(node: Node) -> bool:
    """Return whether a list has a member that lies within the others, as `5` or `\\emptyset` beside `(2,12)`.

    Such a list says more than the set of its points.
    Raises NoRealSet.
    """
    if node.kind != "list" or len(node.args) > _MOST_MEMBERS or any(a.kind == "rel" for a in node.args):
        return False
    parts = [real_set(a) for a in node.args]
    others = (_union_of(parts[:at] + parts[at + 1 :]) for at in range(len(parts)))
    return any(
        not part.pieces or same_set(_union_of([_intersection_of([part, other])]), part)
        for part, other in zip(parts, others, strict=True)
    )


def _same_end(a: Any, b: Any) -> bool:
    mp = own_context()
    if mp.isinf(a) or mp.isinf(b):
        return bool(a == b)
    return numbers_agree(a, b)


def _all_reals() -> Piece:
    mp = own_context()
    return Piece(-mp.inf, False, mp.inf, False)


def _end_value(node: Node) -> Any:
    mp = own_context()
    if node.kind == "const" and node.name == "inf":
        return mp.inf
    if node.kind == "neg" and node.args[0].kind == "const" and node.args[0].name == "inf":
        return -mp.inf
    if symbols(node) or (value := real_value(node)) is None:
        raise NoRealSet("an end that is no real number")
    return value


def _point_piece(node: Node) -> Piece:
    value = _end_value(node)
    if own_context().isinf(value):
        raise NoRealSet("a point at infinity")
    return Piece(value, True, value, True)


def _interval_pieces(node: Node) -> tuple[Piece, ...]:
    if len(node.args) != 2 or node.name not in ("()", "(]", "[)", "[]"):
        raise NoRealSet("no interval")
    mp = own_context()
    low, high = _end_value(node.args[0]), _end_value(node.args[1])
    piece = Piece(
        low, node.name[0] == "[" and not mp.isinf(low), high, node.name[1] == "]" and not mp.isinf(high)
    )  # an infinite end is open however it is written
    if low > high:
        raise NoRealSet("ends in the wrong order")
    if low < high or (piece.low_closed and piece.high_closed):
        return (piece,)
    return ()


def _relation_set(node: Node) -> RealSet:
    """Return the set of `a < x ≤ b`, `x ≠ a`, `x ∈ S`: one side is the variable."""
    sides, names = node.args, node.name
    if names == "∈":
        inner = real_set(sides[1])
        return RealSet(inner.pieces, sides[0].name if sides[0].kind == "sym" else "")
    where = [i for i, side in enumerate(sides) if side.kind == "sym"]
    if not where and (distance := _distance_set(node)) is not None:
        return distance
    if len(where) != 1:
        raise NoRealSet("no single variable")
    at, mp = where[0], own_context()
    variable = sides[at].name
    pieces = RealSet((_all_reals(),))
    for i, name in enumerate(names):
        if i not in (at - 1, at):
            if name in _ORDER:
                continue
            raise NoRealSet(name)
        other, relation = (sides[i], FLIPPED.get(name, "")) if i == at - 1 else (sides[i + 1], name)
        pieces = _intersection_of([pieces, RealSet(_half_line(relation, _end_value(other), mp))])
    return RealSet(pieces.pieces, variable)


def _distance_set(node: Node) -> RealSet | None:
    """Read the set of `|ax + b| < c`, either way round."""
    mp, (first, second) = own_context(), node.args[:2]
    for side, other, relation in ((first, second, node.name), (second, first, FLIPPED.get(node.name, ""))):
        variables = symbols(side)
        if side.kind != "fn" or side.name != "abs" or len(variables) != 1 or relation not in _ORDER:
            continue
        (variable,), bound = variables, _end_value(other)
        inside = [_replace_variable(side.args[0], value) for value in (0, 1, 2, -7)]
        start, *values = [real_value(tree) for tree in inside]
        if start is None or None in values or mp.isinf(bound):
            raise NoRealSet("no distance")
        slope = values[0] - start
        if not slope or not (
            numbers_agree(values[1], start + 2 * slope) and numbers_agree(values[2], start - 7 * slope)
        ):
            raise NoRealSet("no line")
        low, high = sorted(((-bound - start) / slope, (bound - start) / slope))
        closed = relation in "≤>"
        near = (Piece(low, closed, high, closed),) if bound > 0 or (closed and bound == 0) else ()
        part = RealSet(near) if relation in "<≤" else _complement_of(RealSet(near))
        return RealSet(part.pieces, variable)
    return None


def _replace_variable(node: Node, value: int) -> Node:
    """Replace the one variable by a number."""
    return replace_nodes(node, lambda part: number_node(value) if part.kind == "sym" else None)


def _half_line(relation: str, value: Any, mp: Any) -> tuple[Piece, ...]:
    """Return all x with `x relation value`."""
    match relation:
        case "<" | "≤":
            return (Piece(-mp.inf, False, value, relation == "≤" and not mp.isinf(value)),)
        case ">" | "≥":
            return (Piece(value, relation == "≥" and not mp.isinf(value), mp.inf, False),)
        case "=":
            return (Piece(value, True, value, True),)
        case "≠":
            return (Piece(-mp.inf, False, value, False), Piece(value, False, mp.inf, False))
    raise NoRealSet(relation)


def _condition_set(node: Node) -> RealSet:
    """Join conditions that stand one after another: all hold, unless `or` stands between or together they exclude each
    other."""
    first = node.args[0]
    if first.kind == "rel" and first.name == "≠" and len(node.args) > 1 and node.args[1].kind != "rel":
        excluded = [Node("rel", (first.args[0], a), name="≠") if a.kind != "rel" else a for a in node.args[1:]]
        node = Node("list", (first, *excluded), name="and")
    parts = [real_set(a) for a in node.args]
    variable = next((p.variable for p in parts if p.variable), "")
    if any(p.variable not in ("", variable) for p in parts):
        raise NoRealSet("two variables")
    if node.name != "or" and all(a.kind == "rel" for a in node.args):
        together = _intersection_of(parts)
        if together.pieces:
            return RealSet(together.pieces, variable)
    return RealSet(_union_of(parts).pieces, variable)


def _builder_set(node: Node) -> RealSet:
    element, condition = node.args
    if element.kind == "rel" and element.name == "∈":
        variable = element.args[0]
    else:
        variable = element
    if variable.kind != "sym":
        raise NoRealSet("elements that are no plain variable")
    if element.kind == "rel" and not (element.args[1].kind == "const" and element.args[1].name == "ℝ"):
        raise NoRealSet("elements of a smaller set")
    inner = real_set(condition)
    if inner.variable and inner.variable != variable.name:
        raise NoRealSet("a condition on something else")
    return RealSet(inner.pieces)


def _union_of(parts: list[RealSet]) -> RealSet:
    pieces = sorted((p for part in parts for p in part.pieces), key=lambda p: (p.low, not p.low_closed))
    merged: list[Piece] = []
    for piece in pieces:
        if merged and _pieces_touch(merged[-1], piece):
            last = merged[-1]
            high, closed = max((last.high, last.high_closed), (piece.high, piece.high_closed))
            merged[-1] = Piece(last.low, last.low_closed, high, closed)
        else:
            merged.append(piece)
    return RealSet(tuple(merged))


def _pieces_touch(left: Piece, right: Piece) -> bool:
    if _same_end(left.high, right.low):
        return left.high_closed or right.low_closed
    return bool(right.low < left.high)


def _intersection_of(parts: list[RealSet]) -> RealSet:
    pieces = parts[0].pieces
    for part in parts[1:]:
        pieces = tuple(c for a in pieces for b in part.pieces if (c := _common_piece(a, b)) is not None)
    return RealSet(pieces)


def _common_piece(a: Piece, b: Piece) -> Piece | None:
    low, low_open = max((a.low, not a.low_closed), (b.low, not b.low_closed))
    high, high_closed = min((a.high, a.high_closed), (b.high, b.high_closed))
    if low > high or (low == high and (low_open or not high_closed)):
        return None
    return Piece(low, not low_open, high, high_closed)


def _complement_of(part: RealSet) -> RealSet:
    rest = RealSet((_all_reals(),))
    mp = own_context()
    for piece in part.pieces:
        outside = []
        if not mp.isinf(piece.low):
            outside.append(Piece(-mp.inf, False, piece.low, not piece.low_closed))
        if not mp.isinf(piece.high):
            outside.append(Piece(piece.high, not piece.high_closed, mp.inf, False))
        rest = _intersection_of([rest, RealSet(tuple(outside))])
    return rest
