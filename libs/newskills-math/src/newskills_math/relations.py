# SPDX-License-Identifier: Apache-2.0
"""Equations and inequalities: labels (`x = …`), equivalence up to a factor, chains read either way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from newskills_math.chains import Chain, read_chain
from newskills_math.syntax.labels import of_arguments, usual_order
from newskills_math.syntax.nodes import Node, replace_nodes, symbols
from newskills_math.syntax.tables import FLIPPED
from newskills_math.values.equal import constant_ratio, numbers_agree
from newskills_math.values.evaluate import own_context

Same = Callable[[Node, Node], bool | None]
_ORDER = frozenset("<>≤≥")
_CURVE = frozenset("xyz")
_MEASURE = Node("sym", name="m")
"""`m \\angle A` is as large as `\\angle A`."""


class LabelledValue(NamedTuple):
    """`label = value`; '' for a chain of constants.

    `shown` is a decimal that the statement itself gives for the value (`x = \\sqrt2 \\approx 1.414`). `placed` is the
    value with the arguments of a named function renamed by place, so that `f(t)=2t` is `f(x)=2x`.
    """

    label: str
    value: Node
    shown: Node | None = None
    placed: Node | None = None


def labelled_value(node: Node) -> LabelledValue | None:
    """Return the value that an equation only gives a name to, or that a chain of constants has; else None.

    None as well for several names (`x = y = 4`), of which `split_statements` tells.
    """
    if node.kind != "rel" or set(node.name) - set("=≈∈"):
        return None
    if node.name == "∈":
        first, member = node.args
        if first.kind in ("sym", "tuple") and _label_text(first):
            return LabelledValue(_label_text(first), member)
        return None
    if "∈" in node.name:
        return None
    sides_of_chain = read_chain(node)
    if sides_of_chain is None:
        return _named_expression(node)
    if not sides_of_chain.names:
        return LabelledValue("", sides_of_chain.value, sides_of_chain.shown)
    names = _required_names(sides_of_chain)
    if len(names) != 1 or not _label_text(names[0]):
        return None
    return _name_value(names[0], sides_of_chain.value, sides_of_chain.shown)


def _named_expression(node: Node) -> LabelledValue | None:
    """Return the value that is named: of `y = 2x+1`, `f(x) = (x+1)^2 = x^2+2x+1`: the last side, where the first is a
    name that does not come again.

    Of several names (`f(x) = g(x) = x^2`) the label tells all.
    """
    first, *between, last = node.args
    if not _label_text(first):
        return None
    if first.kind != "app" and symbols(first) & frozenset().union(*map(symbols, node.args[1:])):
        return None
    stated = _name_value(first, last, None)
    names = sorted(label for label in (stated.label, *map(_label_text, between)) if label)
    return stated._replace(label=" = ".join(names))


def _name_value(name: Node, value: Node, shown: Node | None) -> LabelledValue:
    label = _label_text(name)
    if name.kind != "app":
        return LabelledValue(label, value, shown, value)
    label += of_arguments(name, value)
    return LabelledValue(label, value, shown, _by_place(value, name.args))


def _required_names(sides_of_chain: Chain) -> tuple[Node, ...]:
    """Return the names that a reply must say: of `x = -y = 3` both, of `S = \\pi r^2 = 9\\pi` only S, which it
    computes."""
    names = tuple(side for side in sides_of_chain.names if _label_text(side) or _is_multiple(side))
    if any(map(_label_text, names)) or len(names) > 1:
        return names
    return sides_of_chain.names


def _is_multiple(side: Node) -> bool:
    """Return whether it is, as `-y`, `2x` and `\\frac{a}{3}` are, a variable times a number."""
    if side.kind == "neg":
        return side.args[0].kind == "sym"
    kinds = sorted(arg.kind for arg in side.args)
    return (side.kind == "mul" and kinds == ["num", "sym"]) or (
        side.kind == "div" and side.args[0].kind == "sym" and side.args[1].kind == "num"
    )


def split_statements(node: Node) -> tuple[Node, ...]:
    """Split `x = y = 4` as `x = 4` and `y = 4`; empty where a relation names one thing or none."""
    sides_of_chain = read_chain(node) if len(node.args) > 2 else None
    names = _required_names(sides_of_chain) if sides_of_chain is not None else ()
    if sides_of_chain is None or len(names) < 2:
        return ()
    return tuple(Node("rel", (name, sides_of_chain.value), name="=") for name in names)


def value_of(node: Node) -> LabelledValue | None:
    """Return the value of several names (`x = y = 4`), or of a term of several letters (`m + n = 7`), without label.

    An equation of a curve (`x^2 + y^2 = 25`) has none.
    """
    sides_of_chain = read_chain(node)
    if sides_of_chain is None or not sides_of_chain.names:
        return None
    names = _required_names(sides_of_chain)
    letters = symbols(names[0])
    is_term = len(names) == 1 and len(letters) > 1 and not _label_text(names[0])
    if any(map(_label_text, names)):
        if len(names) > 1:
            return LabelledValue("", sides_of_chain.value, sides_of_chain.shown)
        return None
    if is_term and (not letters <= _CURVE or _is_plain_sum(names[0])):
        return LabelledValue("", sides_of_chain.value, sides_of_chain.shown)
    return None


def _is_plain_sum(node: Node) -> bool:
    """Return whether it is a sum of variables, `x + y - z`."""
    if node.kind in ("add", "neg"):
        return all(map(_is_plain_sum, node.args))
    return node.kind == "sym"


def with_every_name(node: Node) -> Node:
    """Write `x = y = 4, z = 2` as `x = 4, y = 4, z = 2`."""
    if not any(member.kind == "rel" and len(member.args) > 2 for member in node.args):
        return node
    members = (statement for member in node.args for statement in split_statements(member) or (member,))
    return Node("list", tuple(members), name=node.name)


def by_solution(node: Node) -> Node:
    """Split `p=5, q=2; p=7, q=2` as a list of two solutions: the same names come round again and again."""
    labels = labels_of(node)
    size = len(set(labels))
    if size < 2 or len(labels) < 2 * size or len(labels) % size or not all(labels):
        return node
    starts = range(0, len(labels), size)
    if any(len(set(labels[at : at + size])) < size for at in starts):
        return node
    return Node("list", tuple(Node("list", node.args[at : at + size], name=",") for at in starts), name=",")


def labels_of(node: Node) -> list[str]:
    labels = [labelled_value(a) for a in node.args]
    return [label.label if label is not None else "" for label in labels]


def without_label(node: Node, labels: Sequence[str]) -> Node:
    """Remove the name: `x=1, x=2` and `x=1, 2` are 1, 2."""
    named = set(labels) - {""}
    if len(named) != 1 or (labels[0] == "") or has_equations(node, labels):
        return node
    values = []
    for arg in node.args:
        label = labelled_value(arg)
        value = label.value if label is not None else arg
        values.append(value)
    return Node(node.kind, tuple(values), name=node.name)


def has_equations(node: Node, labels: Sequence[str]) -> bool:
    """Return whether a relation that gives no name to a value (`2y = 6`) is among the members."""
    return any(member.kind == "rel" and not label for member, label in zip(node.args, labels, strict=True))


def all_named(labels: Sequence[str]) -> bool:
    return len(set(labels)) == len(labels) > 1 and all(labels)


def values_of(node: Node, names: Sequence[str]) -> list[Node]:
    """Return the values of a list, those with `names` in the order of a tuple."""
    labels = [labelled_value(a) for a in node.args]
    values = [label.value if label is not None else arg for label, arg in zip(labels, node.args, strict=True)]
    order = usual_order(names) if names else None
    if order is None:
        return values
    return [values[at] for at in order]


def _label_text(node: Node) -> str:
    """Return what may stand before `=` as a mere name: a symbol, `f(x)`, a tuple of symbols, `AB`, `\\sin x`."""
    match node.kind:
        case "sym":
            return node.name
        case "const" if node.name in ("e", "i"):
            return node.name
        case "app" if all(a.kind == "sym" or a.kind == "num" for a in node.args):
            return node.name
        case "tuple" if node.args and all(a.kind == "sym" for a in node.args):
            return ",".join(a.name for a in node.args)
        case "mul" if node.args[0] == _MEASURE and _label_text(node.args[1]).isupper():
            return _label_text(node.args[1])
        case "mul":
            names = [_label_text(a) for a in node.args]
            if all(n and n.isupper() for n in names):
                return "".join(names)
            return ""
        case "fn" if len(node.args) == 1 and node.args[0].kind == "sym":
            return f"{node.name} {node.args[0].name}"
        case "fn" if node.name == "abs" and _label_text(node.args[0]):
            return f"abs {_label_text(node.args[0])}"
    return ""


def _by_place(body: Node, args: tuple[Node, ...]) -> Node:
    places = {a.name: f"argument {i}" for i, a in enumerate(args) if a.kind == "sym"}
    return replace_nodes(
        body, lambda n: Node("sym", name=places[n.name]) if n.kind == "sym" and n.name in places else None
    )


def same_relation(gold: Node, pred: Node, same: Same) -> bool | None:
    """Compare two relations, or one and something else (then they differ, or it cannot be told)."""
    if gold.kind != "rel" or pred.kind != "rel":
        return False
    if _same_chain(gold, pred, same) or _same_names(gold, pred):
        return True
    if len(gold.name) != 1 or len(pred.name) != 1:
        if symbols(gold) == symbols(pred) or not _share_symbols(gold, pred):
            return False
        return None
    if {gold.name, pred.name} <= _ORDER | {"=", "≠", "≈"}:
        return _same_up_to_factor(gold, pred)
    return False


def _same_names(gold: Node, pred: Node) -> bool:
    """Return whether both are `a = b = c` with the same names, in any order."""
    return (
        set(gold.name + pred.name) == {"="}
        and set(gold.args) == set(pred.args)
        and all(map(_label_text, gold.args))
    )


def _share_symbols(gold: Node, pred: Node) -> bool:
    return bool(symbols(gold) & symbols(pred))


def _same_chain(gold: Node, pred: Node, same: Same) -> bool:
    """Compare chains side by side, read forwards or backwards."""
    if len(gold.args) != len(pred.args):
        return False
    for name, sides in ((pred.name, pred.args), (_reverse_relations(pred.name), pred.args[::-1])):
        if name == gold.name and all(same(g, p) for g, p in zip(gold.args, sides, strict=True)):
            return True
    return False


def _reverse_relations(names: str) -> str:
    return "".join(FLIPPED.get(n, " ") for n in reversed(names))


def _same_up_to_factor(gold: Node, pred: Node) -> bool | None:
    """Return whether `lhs - rhs` of one is a constant times that of the other; the sign of an inequality turns with
    it."""
    first = Node("add", (gold.args[0], Node("neg", (gold.args[1],))))
    second = Node("add", (pred.args[0], Node("neg", (pred.args[1],))))
    if symbols(first) != symbols(second) or not symbols(first):
        return False
    factor = constant_ratio(first, second)
    if factor is None:
        if gold.name == pred.name and gold.name in "=≠" and not _are_polynomials(first, second):
            return None
        return False
    mp = own_context()
    if not numbers_agree(factor, mp.re(factor)):
        return False
    wanted = gold.name if mp.re(factor) > 0 else FLIPPED[gold.name]
    return pred.name == wanted


def _are_polynomials(first: Node, second: Node) -> bool:
    """Return whether both are made of sums, products and whole powers: then equal zero sets need proportional sides
    (nearly always)."""
    return _is_polynomial(first) and _is_polynomial(second)


def _is_polynomial(node: Node) -> bool:
    if node.kind in ("num", "sym", "const"):
        return True
    if node.kind in ("add", "mul", "neg"):
        return all(_is_polynomial(a) for a in node.args)
    if node.kind == "div":
        return _is_polynomial(node.args[0]) and not symbols(node.args[1])
    return node.kind == "pow" and _is_polynomial(node.args[0]) and node.args[1].kind == "num"
