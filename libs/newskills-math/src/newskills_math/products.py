# SPDX-License-Identifier: Apache-2.0
"""Products whose factors must not be exchanged: words and sequences of letters (`BDCA`, `HTTH`), and matrices.

A run of letters is taken as a word or a sequence where it is in capitals or has the vowels of a word (`cat`); `xy` and
`abc` are products of numbers, and so is what stands with digits or signs (`2AB`). Capitals with an inverse or a
transpose among them are matrices, and so are those that are multiplied both ways round (`AB - BA`).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

from newskills_math.syntax.nodes import Node, walk_tree

_TRANSPOSES = frozenset({"T", "H", "*", "dagger"})
_DIMENSIONS = frozenset("MLTIJNK")
"""Letters of dimensional formulas such as `ML^{-1}T^{-2}`."""
_VOWELS = frozenset("aeiou")
_OF_PRODUCTS = frozenset("xyz")
_ALPHABET = "abcdefghijklmnopqrstuvwxyz"
_MOST_FACTORS = 24
_MOST_TERMS = 64
_MOST_POWER = 8
_FEWEST_RANKED = 3

_Factor = tuple[str, bool, str]
"""A name, whether it is inverted, and the mark of its transpose."""
_Terms = dict[tuple[_Factor, ...], Fraction]
"""Words of factors with what each is multiplied by."""


class _NoWords(Exception):
    """Something else than sums and products of names and numbers."""


def same_order(gold: Node, pred: Node) -> bool | None:
    """Return whether both have the same factors in the same order; None where the order means nothing, or is not
    known."""
    if gold.kind == "unit" or pred.kind == "unit":
        is_same = same_order(*(node.args[0] if node.kind == "unit" else node for node in (gold, pred)))
        return False if is_same is False else None  # the units are still to be compared
    if not (_is_run(gold) or _is_of_matrices(gold)):
        return None
    try:
        return _expand_product(gold) == _expand_product(pred)
    except _NoWords:
        return None


def is_ranking(items: Sequence[Node]) -> bool:
    """Return whether capital letters are listed in another order than that of the alphabet: then it was meant."""
    names = [item.name for item in items]
    capitals = all(item.kind == "sym" and len(item.name) == 1 and item.name.isupper() for item in items)
    return capitals and len(names) >= _FEWEST_RANKED and names != sorted(names)


def _is_run(node: Node) -> bool:
    """Return whether it is letters written one after another, of a word or a sequence."""
    letters = _product_factors(node)
    if len(letters) < 2 or any(len(letter) > 1 for letter in letters):
        return False
    if letters[0].isupper():
        return all(letter.isupper() for letter in letters)
    run = "".join(letters)
    return len(run) > 2 and run.isascii() and run.islower() and not _reads_as_product(run)


def _product_factors(node: Node) -> tuple[str, ...]:
    """Return the factors of a product that is written without signs; empty for anything else."""
    if node.kind == "sym" or (node.kind == "const" and node.name in ("e", "i")):
        return (node.name,)
    if node.kind != "mul" or node.name:
        return ()
    first, second = (_product_factors(factor) for factor in node.args)
    if first and second:
        return first + second
    return ()


def _reads_as_product(run: str) -> bool:
    ordered = "".join(sorted(set(run)))
    return not _VOWELS & set(run) or bool(_OF_PRODUCTS & set(run)) or ordered in _ALPHABET


def _is_of_matrices(node: Node) -> bool:
    if node.kind not in ("mul", "add", "neg", "pow", "div"):
        return False
    parts = list(walk_tree(node))
    names = {part.name.removeprefix("vec ") for part in parts if part.kind == "sym"} - _TRANSPOSES
    if not any(len(name) == 1 and name.isupper() for name in names):
        return False
    marks = {_matrix_mark(part.args[1]) for part in parts if part.kind == "pow" and _is_capital(part.args[0])} - {
        ""
    }
    if marks and (len(names) > 1 or marks != {"inverse"}):
        return all(name.isupper() for name in names) and not names <= _DIMENSIONS
    return node.kind == "add" and _goes_both_ways(node)


def _is_capital(node: Node) -> bool:
    """Return whether the node is a name in capitals, or a product or power of such names."""
    if node.kind == "pow":
        return _is_capital(node.args[0])
    if node.kind == "mul":
        return all(map(_is_capital, node.args))
    name = node.name.removeprefix("vec ")
    return node.kind == "sym" and len(name) == 1 and name.isupper()


def _matrix_mark(exponent: Node) -> str:
    """Return what `-1` or `T` above a matrix does to it; empty for a power."""
    if exponent.kind == "neg" and exponent.args[0].kind == "num" and exponent.args[0].value == 1:
        return "inverse"
    if exponent.kind == "sym" and exponent.name in _TRANSPOSES:
        return exponent.name
    return ""


def _goes_both_ways(node: Node) -> bool:
    """Return whether two terms have the same capitals in another order."""
    try:
        words = [tuple(name for name, _, _ in word) for word in _expand_product(node)]
    except _NoWords:
        return False
    words = [word for word in words if len(word) > 1 and all(name[-1:].isupper() for name in word)]
    return len({tuple(sorted(word)) for word in words}) < len(words)


def _expand_product(node: Node) -> _Terms:
    """Return the sum of products that a tree is when no factors are exchanged. Raises _NoWords."""
    match node.kind:
        case "num":
            if node.value:
                return {(): node.value}
            return {}
        case "sym" | "const" if node.name not in ("pi", "inf", "dots", "empty"):
            return {((node.name, False, ""),): Fraction(1)}
        case "neg":
            return _sum_terms([(_expand_product(node.args[0]), Fraction(-1))])
        case "add":
            return _sum_terms([(_expand_product(arg), Fraction(1)) for arg in node.args])
        case "mul":
            return _multiply_terms(_expand_product(node.args[0]), _expand_product(node.args[1]))
        case "div" if node.args[1].kind == "num" and node.args[1].value:
            return _sum_terms([(_expand_product(node.args[0]), 1 / node.args[1].value)])
        case "pow":
            return _power_of_terms(_expand_product(node.args[0]), node.args[1])
    raise _NoWords


def _sum_terms(parts: list[tuple[_Terms, Fraction]]) -> _Terms:
    total: _Terms = {}
    for terms, factor in parts:
        for word, count in terms.items():
            total[word] = total.get(word, Fraction(0)) + factor * count
    return {word: count for word, count in total.items() if count}


def _multiply_terms(left: _Terms, right: _Terms) -> _Terms:
    if len(left) * len(right) > _MOST_TERMS:
        raise _NoWords
    parts = [
        ({_cancel_inverses(first + second): a * b}, Fraction(1))
        for first, a in left.items()
        for second, b in right.items()
    ]
    return _sum_terms(parts)


def _cancel_inverses(word: tuple[_Factor, ...]) -> tuple[_Factor, ...]:
    """Remove factors beside their own inverses."""
    if len(word) > _MOST_FACTORS:
        raise _NoWords
    for at, (first, second) in enumerate(pairwise(word)):
        if first[0] == second[0] and first[2] == second[2] and first[1] != second[1]:
            return _cancel_inverses(word[:at] + word[at + 2 :])
    return word


def _power_of_terms(base: _Terms, exponent: Node) -> _Terms:
    if mark := _matrix_mark(exponent):
        return _apply_mark(base, mark)
    if exponent.kind != "num" or exponent.value.denominator != 1 or not 0 < exponent.value <= _MOST_POWER:
        raise _NoWords
    power = base
    for _ in range(int(exponent.value) - 1):
        power = _multiply_terms(power, base)
    return power


def _apply_mark(base: _Terms, mark: str) -> _Terms:
    """Return the inverse of one product, or the transposes of all: the factors change sides."""
    if mark == "inverse" and len(base) != 1:
        raise _NoWords
    marked: _Terms = {}
    for word, count in base.items():
        turned = []
        for name, inverted, transposed in reversed(word):
            if mark == "inverse":
                turned.append((name, not inverted, transposed))
            elif transposed in ("", mark):
                own_mark = "" if transposed else mark
                turned.append((name, inverted, own_mark))
            else:
                raise _NoWords
        marked[tuple(turned)] = 1 / count if mark == "inverse" else count
    return marked
