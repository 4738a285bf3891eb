# SPDX-License-Identifier: Apache-2.0
"""Formulas that are the same but for one integer, and so differ in value: seen at once, without computer algebra."""

from __future__ import annotations

from newskills_math.syntax.nodes import Node, walk_tree

_INJECTIVE = frozenset({"add", "mul", "div", "neg", "rel", "tuple", "pow", "root"})
"""Where another value of one argument gives another value of the whole, if no factor is 0 and no base 1."""
_COMMON = _INJECTIVE | {"num", "sym", "const", "factorial"}
_CONSTANTS = frozenset({"pi", "e", "i"})


def differ_in_one_integer(gold: Node, pred: Node) -> bool:
    """Return whether two formulas cannot be equal, since one integer alone differs; False says nothing.

    `x' + 2y = 6` differs from `x' + 2y = 5`; `0x = 6` need not differ from `0x = 5`, nor `(x - 1)^2` from `(x - 3)^2`.
    """
    pairs, differing = [(gold, pred)], 0
    while pairs:
        a, b = pairs.pop()
        if a == b:
            if any(_may_hide(part) for part in walk_tree(a)):
                return False
        elif a.kind == b.kind == "num":
            if max(a.places, b.places) >= 0:  # a decimal may be rounded
                return False
            differing += 1
        elif _node_kind(a) in _INJECTIVE and (a.kind, a.name, len(a.args)) == (b.kind, b.name, len(b.args)):
            if not _keeps_apart(a, b):
                return False
            pairs += zip(a.args, b.args, strict=True)
        else:
            return False
    return differing == 1


def _node_kind(node: Node) -> str:
    if node.kind == "fn":
        return node.name
    return node.kind


def _keeps_apart(a: Node, b: Node) -> bool:
    """Return whether two of one kind differ as their arguments do: so `x^2` and `x^3`, `2^x` and `3^x`, two
    equations."""
    kind, first, other = _node_kind(a), a.args[0], b.args[0]
    if kind == "rel":
        return set(a.name) == {"="}
    if kind == "root":
        return a.args[1:] == b.args[1:]
    if kind != "pow":
        return True
    if first == other:
        return first.kind == "sym" or (first.kind == "num" and first.value > 1)
    return first.kind == other.kind == "num"


def _may_hide(part: Node) -> bool:
    """Return whether what both have in common may make the rest count for nothing: a zero, an infinity, a period."""
    if part.kind == "const":
        return part.name not in _CONSTANTS
    return _node_kind(part) not in _COMMON or (part.kind == "num" and part.value == 0)
