# SPDX-License-Identifier: Apache-2.0
"""Names that an answer may choose: constants of integration, integers that count turns, signs of derivatives."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import permutations

from newskills.graders.math.syntax.nodes import Node, has, symbols
from newskills.graders.math.values.equal import rename

_VARIABLES = frozenset("xytuvwzsrθ") | {"theta"}
_ARBITRARY = re.compile(r"C|[CcKkA]_?\{?\d\}?")
"""Constants that are surely those of a general solution; beside them …"""
_CHOSEN = re.compile(r"[A-DKck]|[CcKkA]_?\{?\d\}?")
"""… those of a reply, …"""
_GIVEN = re.compile(r"[A-D]|[CcKkA]_?\{?\d\}?")
"""… and those of the right answer."""
_FACTORS = frozenset("ABD")
"""Names of factors: nobody adds them to an antiderivative."""
_MOST_CONSTANTS = 3
_TURNS = frozenset("kmnl")
_CONDITION = re.compile(
    r"[\s,;]*(?:\\[,;:! ]|\\q?quad|[\s,(])*(?:\\text\s?\{\s?(?:for|where|with)?[a-z ]{0,20}\}|for|where|with)?\s*"
    r"(?P<name>[kmnl])\s*\\in\s*\\(?:mathbb|Bbb|mathbf)\s?\{?\s?Z\s?\}?\)?\s*$"
)
_QUOTIENT = re.compile(
    r"\\frac\{(?:d|\\mathrm\{d\}\s?)(?:\^\{?(?P<order>[23])\}?)?\s?(?P<function>[a-zA-Z])\}"
    r"\{(?:d|\\mathrm\{d\}\s?)\s?[a-z](?:\^\{?[23]\}?)?\}"
)


def terms(node: Node) -> list[Node]:
    """The terms of a sum; of anything else itself."""
    return [term for a in node.args for term in terms(a)] if node.kind == "add" else [node]


def constants_alike(gold: Node, pred: Node) -> Iterator[Node]:
    """`pred` with the names of `gold` for constants that its author may choose: `c` or `K` for `C`, `A` for `C_1`."""
    wanted, got = sorted(symbols(gold) - symbols(pred)), sorted(symbols(pred) - symbols(gold))
    if len(wanted) != len(got) or not 1 <= len(wanted) <= _MOST_CONSTANTS:
        return
    (new, *_), (old, *_) = wanted, got
    if len(wanted) == 1 and (_one_letter(new, old, gold, pred) or _turns(new, old, gold, pred)):
        yield rename(pred, old, new)
    elif _general_solution(wanted, got, gold) and not (
        got[0] in _FACTORS and _is_constant_of_integration(new, gold)
    ):
        for order in permutations(got):
            renamed = pred
            for name, other in zip(order, wanted, strict=True):
                renamed = rename(renamed, name, other)
            yield renamed


def _one_letter(new: str, old: str, gold: Node, pred: Node) -> bool:
    """The same letter in another case; or another letter, where both are added, once, to what depends on variables."""
    if old.lower() == new.lower() and old[:1].lower() in ("c", "k"):
        return True
    return (
        new in ("C", "c", "K")
        and old in ("C", "c", "K", "k")
        and all(_is_constant_of_integration(name, tree) for name, tree in ((new, gold), (old, pred)))
    )


def _is_constant_of_integration(name: str, tree: Node) -> bool:
    """Whether it is added, once, to what else depends on variables only."""
    parts = terms(tree)
    others = [term for term in parts if term != Node("sym", name=name)]
    names = {other for term in others for other in symbols(term)}
    return len(others) == len(parts) - 1 and bool(names) and names <= _VARIABLES


def _turns(new: str, old: str, gold: Node, pred: Node) -> bool:
    """`π/4 + kπ` and `π/4 + nπ`: nothing but a letter for whole turns."""
    return {new, old} <= _TURNS and all(
        tree.kind == "add" and len(symbols(tree)) == 1 and has(tree, "const") for tree in (gold, pred)
    )


def _general_solution(wanted: list[str], got: list[str], gold: Node) -> bool:
    """Of a differential equation, as an exponential or another function in it shows."""
    variables = symbols(gold) - set(wanted)
    arbitrary = all(map(_ARBITRARY.fullmatch, wanted)) and all(map(_CHOSEN.fullmatch, got))
    arbitrary = arbitrary or (all(map(_GIVEN.fullmatch, wanted)) and all(map(_ARBITRARY.fullmatch, got)))
    return (
        arbitrary
        and (has(gold, "const") or has(gold, "fn"))
        and bool(variables)
        and variables <= _VARIABLES | {"y"}
    )


def same_conditions(pred: str, gold: str) -> tuple[str, str]:
    """Both with the letter of the gold answer and without `k ∈ ℤ`, where both say this of one letter each."""
    p, g = _CONDITION.search(pred), _CONDITION.search(gold)
    if p is None or g is None:
        return pred, gold
    pred, gold = pred[: p.start()], gold[: g.start()]
    named = re.compile(rf"(?<![a-zA-Z\\]){p['name']}(?![a-zA-Z])")
    if p["name"] != g["name"] and not re.search(rf"(?<![a-zA-Z\\]){g['name']}(?![a-zA-Z])", pred):
        pred = named.sub(g["name"], pred)
    return pred, gold


def with_primes(pred: str, gold: str) -> tuple[str, str]:
    """`dy/dx` as `y'`, where only one of them writes derivatives as quotients and the other with primes."""
    if "'" in gold and "'" not in pred:
        return _QUOTIENT.sub(_primed, pred), gold
    if "'" in pred and "'" not in gold:
        return pred, _QUOTIENT.sub(_primed, gold)
    return pred, gold


def _primed(match: re.Match[str]) -> str:
    return match["function"] + "'" * int(match["order"] or 1)
