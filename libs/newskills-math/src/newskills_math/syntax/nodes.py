# SPDX-License-Identifier: Apache-2.0
"""The tree an answer is read into, and what may go wrong on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import NamedTuple


class Unreadable(Exception):
    """The text is not in the language of the parser; says nothing about right or wrong."""


class TooBig(Exception):
    """A value or a text beyond what is worth computing."""


class Node(NamedTuple):
    """One node. `kind` tells which of the other fields count.

    num       value; places = digits after a decimal point, -1 for an integer
    sym       name (`x`, `x_1`, `theta`); const: name in pi, e, i, inf, dots, reals, empty, …
    add mul   two args (name `*`: a sign stands between the factors); div pow: two args; neg: one;
              pm: (left, right) with name ± or ∓
    fn        name and args; app: an unknown function `f(x)`; big: sum or prod (variable, low, high, body)
    rel       args joined by the relations in `name` (one character each)
    list      args, name = separator (`,` `;` `or`); tuple: args, name = its two brackets; set: args
    builder   set-builder: (element, condition); union inter minus: two args
    matrix    args = rows (tuples)
    text      name; unit: one arg, name = unit; percent deg: one arg
    based     name = digits, places = base; ratio: args
    """

    kind: str
    args: tuple[Node, ...] = ()
    name: str = ""
    value: Fraction = Fraction(0)
    places: int = -1


def number_node(value: int | Fraction) -> Node:
    return Node("num", value=Fraction(value))


def walk_tree(node: Node) -> Iterator[Node]:
    stack = [node]
    while stack:
        top = stack.pop()
        yield top
        stack.extend(top.args)


def symbols(node: Node) -> frozenset[str]:
    """Return the names of the free variables; those bound by a sum or product are left out."""
    if node.kind == "sym":
        return frozenset((node.name,))
    if node.kind == "big":
        variable, low, high, body = node.args
        return symbols(low) | symbols(high) | (symbols(body) - {variable.name})
    names: frozenset[str] = frozenset()
    for arg in node.args:
        names |= symbols(arg)
    return names


def has_kind(node: Node, *kinds: str) -> bool:
    return any(n.kind in kinds for n in walk_tree(node))


def replace_nodes(node: Node, change: Callable[[Node], Node | None]) -> Node:
    """Return the tree with every node for which `change` returns a node exchanged for it, from the top."""
    if (new := change(node)) is not None:
        return new
    if not node.args:
        return node
    return Node(node.kind, tuple(replace_nodes(a, change) for a in node.args), node.name, node.value, node.places)
