# SPDX-License-Identifier: Apache-2.0
"""Equations and inequalities: labels (`x = …`), equivalence up to a factor, chains read either way."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from newskills.graders.math.labels import of_arguments
from newskills.graders.math.syntax.nodes import Node, has, replace, symbols
from newskills.graders.math.syntax.tables import FLIPPED
from newskills.graders.math.values.equal import agree, ratio, real_value
from newskills.graders.math.values.evaluate import context

Same = Callable[[Node, Node], bool | None]
_ORDER = frozenset("<>≤≥")


class LabelledValue(NamedTuple):
    """`label = value`, with further values of a chain (`x = 1/2 = 0.5`).

    `placed` is the value with the arguments of a named function renamed by place, so that `f(t)=2t` is `f(x)=2x`.
    """

    label: str
    value: Node
    others: tuple[Node, ...] = ()
    placed: Node | None = None


def labelled(node: Node) -> LabelledValue | None:
    """The value that an equation only gives a name to, else None.

    A chain of constants (`3+4 = 7`) has its last side as value, an approximation (`a ≈ b`) its first. A chain that
    contradicts itself by more than rounding has none.
    """
    if node.kind != "rel" or set(node.name) - set("=≈∈"):
        return None
    first, rest = node.args[0], node.args[1:]
    if node.name == "∈":
        return LabelledValue(_label(first), rest[0]) if first.kind in ("sym", "tuple") and _label(first) else None
    if "∈" in node.name:
        return None
    if not any(symbols(a) for a in node.args) and not has(first, "app"):
        return _constant_chain(node)
    label = _label(first)
    if not label or (symbols(first) & frozenset().union(*(symbols(r) for r in rest)) and first.kind != "app"):
        return None
    if len(rest) > 1 and not _consistent(rest):
        return None
    if first.kind == "app":
        label += of_arguments(first, rest[0])
        return LabelledValue(label, rest[0], rest[1:], _by_place(rest[0], first.args))
    return LabelledValue(label, rest[0], rest[1:], rest[0])


def _constant_chain(node: Node) -> LabelledValue | None:
    if not _consistent(node.args):
        return LabelledValue("", node.args[0]) if node.name == "≈" and _rounded(*node.args) else None
    if "≈" in node.name:
        return LabelledValue("", node.args[0], node.args[1:])
    return LabelledValue("", node.args[-1], node.args[:-1])


def _consistent(sides: tuple[Node, ...]) -> bool:
    """Whether constants are the same but for rounding; sides with variables are taken at their word."""
    if any(symbols(a) for a in sides):
        return True
    values = [real_value(a) for a in sides]
    if any(v is None for v in values):
        return False
    slack = context().mpf("0.05")
    return all(abs(v - values[0]) <= abs(values[0]) * slack for v in values)


def _rounded(exact: Node, shown: Node) -> bool:
    """Whether a decimal stands for a value to the digits that it shows: `0.35 ≈ 0.4`."""
    value, near = real_value(exact), real_value(shown)
    if value is None or near is None or shown.kind != "num" or shown.places < 1:
        return False
    return bool(abs(value - near) <= context().mpf("0.5000001") * context().mpf(10) ** -shown.places)


def _label(node: Node) -> str:
    """What may stand before `=` as a mere name: a symbol, `f(x)`, a tuple of symbols, `AB`, `\\sin x`."""
    match node.kind:
        case "sym":
            return node.name
        case "const" if node.name in ("e", "i"):
            return node.name
        case "app" if all(a.kind == "sym" or a.kind == "num" for a in node.args):
            return node.name
        case "tuple" if node.args and all(a.kind == "sym" for a in node.args):
            return ",".join(a.name for a in node.args)
        case "mul":
            names = [_label(a) for a in node.args]
            return "".join(names) if all(n and n.isupper() for n in names) else ""
        case "fn" if len(node.args) == 1 and node.args[0].kind == "sym":
            return f"{node.name} {node.args[0].name}"
        case "fn" if node.name == "abs" and _label(node.args[0]):
            return f"abs {_label(node.args[0])}"
    return ""


def _by_place(body: Node, args: tuple[Node, ...]) -> Node:
    places = {a.name: f"argument {i}" for i, a in enumerate(args) if a.kind == "sym"}
    return replace(
        body, lambda n: Node("sym", name=places[n.name]) if n.kind == "sym" and n.name in places else None
    )


def same_relation(gold: Node, pred: Node, same: Same) -> bool | None:
    """Two relations, or one and something else (then they differ, or it cannot be told)."""
    if gold.kind != "rel" or pred.kind != "rel":
        return False
    if _same_chain(gold, pred, same):
        return True
    if len(gold.name) != 1 or len(pred.name) != 1:
        return False if symbols(gold) == symbols(pred) or not _linked(gold, pred) else None
    if {gold.name, pred.name} <= _ORDER | {"=", "≠", "≈"}:
        return _same_up_to_factor(gold, pred)
    return False


def _linked(gold: Node, pred: Node) -> bool:
    return bool(symbols(gold) & symbols(pred))


def _same_chain(gold: Node, pred: Node, same: Same) -> bool:
    """Side by side, read forwards or backwards."""
    if len(gold.args) != len(pred.args):
        return False
    for name, sides in ((pred.name, pred.args), (_backwards(pred.name), pred.args[::-1])):
        if name == gold.name and all(same(g, p) for g, p in zip(gold.args, sides, strict=True)):
            return True
    return False


def _backwards(names: str) -> str:
    return "".join(FLIPPED.get(n, " ") for n in reversed(names))


def _same_up_to_factor(gold: Node, pred: Node) -> bool | None:
    """`lhs - rhs` of one is a constant times that of the other; the sign of an inequality turns with it."""
    first = Node("add", (gold.args[0], Node("neg", (gold.args[1],))))
    second = Node("add", (pred.args[0], Node("neg", (pred.args[1],))))
    if symbols(first) != symbols(second) or not symbols(first):
        return False
    factor = ratio(first, second)
    if factor is None:
        return None if gold.name == pred.name and gold.name in "=≠" and not _polynomial(first, second) else False
    mp = context()
    if not agree(factor, mp.re(factor)):
        return False
    wanted = gold.name if mp.re(factor) > 0 else FLIPPED[gold.name]
    return pred.name == wanted


def _polynomial(first: Node, second: Node) -> bool:
    """Both made of sums, products and whole powers: then equal zero sets need proportional sides (nearly always)."""
    return _is_polynomial(first) and _is_polynomial(second)


def _is_polynomial(node: Node) -> bool:
    if node.kind in ("num", "sym", "const"):
        return True
    if node.kind in ("add", "mul", "neg"):
        return all(_is_polynomial(a) for a in node.args)
    if node.kind == "div":
        return _is_polynomial(node.args[0]) and not symbols(node.args[1])
    return node.kind == "pow" and _is_polynomial(node.args[0]) and node.args[1].kind == "num"
