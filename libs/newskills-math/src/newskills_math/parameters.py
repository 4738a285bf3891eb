# SPDX-License-Identifier: Apache-2.0
"""Names that an answer may choose: constants of integration, integers that count turns, signs of derivatives."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import reduce
from itertools import permutations

from newskills_math.syntax.nodes import Node, has_kind, symbols
from newskills_math.values.equal import differ_by_constant, rename_symbol

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
_GAP = r"(?:[\s,;(~]|\\[,;:! ]|\\q?quad(?![a-z]))*"
_BEGIN = r"(?:\\(?:text|mbox|mathrm)\s?\{)?\s*"
_INTEGERS = r"\\(?:mathbb|Bbb|mathbf)\s?\{?\s?Z\s?\}?"
_FOR = r"(?:,?\s*(?:for|where|with)\b\s*)?(?:(?:all|any|every|each|some|an?|arbitrary)\s+)*"
_CONDITION = re.compile(
    rf"{_GAP}{_BEGIN}{_FOR}(?:integers?\s*)?\}}?\s*(?P<name>[kmnl])\s*\\in\s*{_INTEGERS}[\s)]*$"
    rf"|{_GAP}{_BEGIN}{_FOR}integers?(?:\s+values? of)?\s*\}}?\s*\$?(?P<counted>[kmnl])\$?[\s)]*$"
    rf"|{_GAP}{_BEGIN}{_FOR}\}}?\s*\$?(?P<declared>[kmnl])\$?\s*{_BEGIN}(?:is\s+|are\s+|being\s+)?(?:an?\s+|any\s+)?integers?\s*\}}?[\s)]*$"
)
"""`, k \\in \\mathbb{Z}`, `for any integer k`, `where n is an integer`."""
_TURN = re.compile(r"(?<![a-zA-Z\\])[kmnl](?![a-zA-Z])")
_CONSTANT = re.compile(
    rf"{_GAP}{_BEGIN}{_FOR}\}}?\s*\$?(?P<name>[a-dkA-DK])\$?\s*"
    rf"(?:\\in\s*\\(?:mathbb|Bbb|mathbf)\s?\{{?\s?R\s?\}}?(?:{_GAP}{_BEGIN}(?:is\s+)?(?:an?\s+)?(?:arbitrary\s+|real\s+)*constant\s*\}}?)?"
    rf"|{_BEGIN}(?:is\s+)?(?:an?\s+|any\s+)?(?:arbitrary\s+|real\s+)*(?:constant|real number)\s*\}}?)[\s)]*$"
)
"""`, c \\in \\mathbb{R}`, `where C is an arbitrary constant`."""
_QUOTIENT = re.compile(
    r"\\frac\{(?:d|\\mathrm\{d\}\s?)(?:\^\{?(?P<order>[23])\}?)?\s?(?P<function>[a-zA-Z])\}"
    r"\{(?:d|\\mathrm\{d\}\s?)\s?[a-z](?:\^\{?[23]\}?)?\}"
)


def sum_terms(node: Node) -> list[Node]:
    """Return the terms of a sum; of anything else itself."""
    if node.kind == "add":
        return [term for a in node.args for term in sum_terms(a)]
    return [node]


def constants_alike(gold: Node, pred: Node) -> Iterator[Node]:
    """Yield `pred` with the names of `gold` for constants that its author may choose: `c` or `K` for `C`, `A` for
    `C_1`.
    """
    wanted, got = sorted(symbols(gold) - symbols(pred)), sorted(symbols(pred) - symbols(gold))
    if len(wanted) != len(got) or not 1 <= len(wanted) <= _MOST_CONSTANTS:
        return
    (new, *_), (old, *_) = wanted, got
    if len(wanted) == 1 and (_one_letter(new, old, gold, pred) or _differ_by_turns(new, old, gold, pred)):
        yield rename_symbol(pred, old, new)
    elif _general_solution(wanted, got, gold) and not (
        got[0] in _FACTORS and _is_constant_of_integration(new, gold)
    ):
        for order in permutations(got):
            renamed = pred
            for name, other in zip(order, wanted, strict=True):
                renamed = rename_symbol(renamed, name, other)
            yield renamed


def _one_letter(new: str, old: str, gold: Node, pred: Node) -> bool:
    """Return whether both are the same letter in another case; or another letter, where both are added, once, to what
    depends on variables."""
    if old.lower() == new.lower() and old[:1].lower() in ("c", "k"):
        return True
    return (
        new in ("C", "c", "K")
        and old in ("C", "c", "K", "k")
        and all(_is_constant_of_integration(name, tree) for name, tree in ((new, gold), (old, pred)))
    )


def _is_constant_of_integration(name: str, tree: Node) -> bool:
    """Return whether it is added, once, to what else depends on variables only."""
    parts = sum_terms(tree)
    others = [term for term in parts if term != Node("sym", name=name)]
    if len(others) != len(parts) - 1:
        return False
    names = {other for term in others for other in symbols(term)}
    return bool(names) and names <= _VARIABLES


def same_antiderivative(gold: Node, pred: Node) -> bool:
    """Return whether both are the same but for a number that the constant of integration takes in: `ln|2x| + C`,
    `ln|x| + C`.

    Either may call that constant as it likes.
    """
    parts = [_without_constant(tree) for tree in (gold, pred)]
    return None not in parts and differ_by_constant(*(part for part in parts if part is not None))


def _without_constant(tree: Node) -> Node | None:
    """Return what is added to the constant of integration; None where there is none."""
    if tree.kind != "add":
        return None
    for name in ("C", "c", "K", "k"):
        if _is_constant_of_integration(name, tree):
            others = [term for term in sum_terms(tree) if term != Node("sym", name=name)]
            return reduce(lambda first, second: Node("add", (first, second)), others)
    return None


def _differ_by_turns(new: str, old: str, gold: Node, pred: Node) -> bool:
    """Return whether `π/4 + kπ` and `π/4 + nπ` differ in nothing but a letter for whole turns."""
    return {new, old} <= _TURNS and all(
        tree.kind == "add" and len(symbols(tree)) == 1 and has_kind(tree, "const") for tree in (gold, pred)
    )


def _general_solution(wanted: list[str], got: list[str], gold: Node) -> bool:
    """Return whether it is the solution of a differential equation, as an exponential or another function in it
    shows."""
    variables = symbols(gold) - set(wanted)
    arbitrary = all(map(_ARBITRARY.fullmatch, wanted)) and all(map(_CHOSEN.fullmatch, got))
    arbitrary = arbitrary or (all(map(_GIVEN.fullmatch, wanted)) and all(map(_ARBITRARY.fullmatch, got)))
    return (
        arbitrary
        and (has_kind(gold, "const") or has_kind(gold, "fn"))
        and bool(variables)
        and variables <= _VARIABLES | {"y"}
    )


def same_conditions(pred: str, gold: str) -> tuple[str, str]:
    """Return both answers with the letter of the gold answer and without `k ∈ ℤ`, which one of them may leave to the
    reader.

    So with a constant that the reply says to be any, if the right answer has one such letter that the reply has not.
    """
    p, g = _CONDITION.search(pred), _CONDITION.search(gold)
    if p is None and g is None:
        return _with_constant_of(gold, pred)
    if p is None or g is None:
        bare = pred[: p.start()] if p is not None else pred
        other = gold[: g.start()] if g is not None else gold
        ours, theirs = (set(_TURN.findall(text)) for text in (bare, other))
        if not ours or not theirs:
            return pred, gold
        declared = ours if p is None else ours & {p[p.lastgroup or 0]}
        return _with_letter(bare, declared, theirs), other
    pred, gold = pred[: p.start()], gold[: g.start()]
    return _with_letter(pred, {p[p.lastgroup or 0]}, {g[g.lastgroup or 0]}), gold


def _with_letter(text: str, ours: set[str], theirs: set[str]) -> str:
    """Write a text with the letter of the other answer for the one of this, where each has one."""
    if len(ours) != 1 or len(theirs) != 1 or ours == theirs:
        return text
    (old,), (new,) = ours, theirs
    if _letter_pattern(new).search(text):
        return text
    return _letter_pattern(old).sub(new, text)


def _with_constant_of(gold: str, pred: str) -> tuple[str, str]:
    constant, wanted = _CONSTANT.search(pred), _CONSTANT.search(gold)
    if constant is None:
        wanted_gold = gold if wanted is None else gold[: wanted.start()]
        return pred, wanted_gold
    pred = pred[: constant.start()]
    if wanted is not None:
        gold = gold[: wanted.start()]
    letters = {letter for letter in "abcdkABCDK" if _letter_pattern(letter).search(gold)}
    if len(letters) == 1 and not _letter_pattern(letter := letters.pop()).search(pred):
        pred = _letter_pattern(constant["name"]).sub(letter, pred)
    return pred, gold


def _letter_pattern(letter: str) -> re.Pattern[str]:
    """Find a letter as a variable, also before another (`kx`)."""
    return re.compile(rf"(?<![a-zA-Z\\]){letter}(?![a-zA-Z]{{2}})")


def with_bound_name(gold: Node, pred: Node) -> Node:
    """Return a set `{2^k | k ∈ ℕ}` with the letter of the gold answer's."""
    (element, condition), (_, other) = gold.args, pred.args
    if condition.kind == other.kind == "rel" and condition.args[0].kind == other.args[0].kind == "sym":
        new, old = condition.args[0].name, other.args[0].name
        if new not in symbols(pred) and old not in symbols(element):
            return rename_symbol(pred, old, new)
    return pred


def with_primes(pred: str, gold: str) -> tuple[str, str]:
    """Write `dy/dx` as `y'`, where only one of them writes derivatives as quotients and the other with primes."""
    if "'" in gold and "'" not in pred:
        return _QUOTIENT.sub(_with_primes, pred), gold
    if "'" in pred and "'" not in gold:
        return pred, _QUOTIENT.sub(_with_primes, gold)
    return pred, gold


def _with_primes(match: re.Match[str]) -> str:
    return match["function"] + "'" * int(match["order"] or 1)
