# SPDX-License-Identifier: Apache-2.0
"""Arithmetic chains in a text (`1 + 2 + 3 = 6`): found, computed exactly step by step, never evaluated as code.

A chain that is cut out of something larger (`2x + 3 + 4`, `10,000 + 5 + 3`, `6^2`) is not taken for one. All work is
linear in the text; numbers and chains beyond the limits below are no arithmetic that a person wrote.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

MOST_DIGITS, MOST_PARTS, MOST_PLACES = 30, 100, 10
_RUN = re.compile(r"[0-9+\-*/=()][0-9+\-*/=(). \t]*")
_PART = re.compile(r"[ \t]*(?:([0-9]+(?:\.[0-9]*)?|\.[0-9]+)|([+\-*/()]))")
_OPERATORS = frozenset("+-*/")
_GLUED_BEFORE = frozenset("_^\\.,'%°")
_OPEN_BEFORE = frozenset(")]}!|%°")
_GLUED_AFTER = frozenset("_^%!,°'")

Part = Fraction | str
"""A number, an operator, or a bracket."""


class EqualityChain(NamedTuple):
    """`text` stands at `start`; `sides` are what `=` separates, at least two."""

    text: str
    start: int
    sides: tuple[str, ...]


class NoArithmetic(Exception):
    """The text is no expression of numbers, `+ - * /` and brackets, or has no value."""


def equality_chains(text: str, operators: int = 2) -> Iterator[EqualityChain]:
    """Yield chains of at least so many operators and one `=`, in order. They never go over a line's end."""
    for run_match in _RUN.finditer(text):
        start = run_match.start()
        run = run_match[0]
        bare = run.lstrip("= ")
        start += len(run) - len(bare)
        bare = bare.rstrip(" \t").rstrip(".")
        if "=" not in bare or sum(map(bare.count, "+-*/")) < operators:
            continue
        if not _cut_before(text, start, bare) and not _cut_after(text, start + len(bare)):
            yield EqualityChain(bare, start, tuple(bare.split("=")))


def expression_value(expression: str) -> Fraction:
    """Return the value of an expression. Raises NoArithmetic."""
    return evaluation_steps(expression)[-1][0]


def evaluation_steps(expression: str) -> list[tuple[Fraction, str]]:
    """Return (value of the first number, text) after each single operation; the last has one number only.

    Innermost brackets first, in them `*` and `/` before `+` and `-`, each from the left. Raises NoArithmetic.

    >>> [text for _, text in evaluation_steps("3 * (1 + 7) / 4")]
    ['3 * 8 / 4', '24 / 4', '6']
    """
    parts = _unwrap_numbers(_parse_parts(expression))
    done: list[tuple[Fraction, str]] = []
    while len(parts) > 1:
        parts = _apply_next_operation(parts)
        done.append((_first_number(parts), _format_parts(parts)))
    if not done:
        done.append((_first_number(parts), _format_parts(parts)))
    return done


def split_chain(chain: EqualityChain) -> str | None:
    """Return the chain with one operation for each `=`; None where it stays: more than one `=`, a wrong or endless
    value.

    >>> split_chain(next(equality_chains("1 + 2 + 3 + 4 = 10")))
    '1 + 2 + 3 + 4 = 3 + 3 + 4 = 6 + 4 = 10'
    """
    if len(chain.sides) != 2:
        return None
    left, right = chain.sides
    try:
        taken = evaluation_steps(left)
        if taken[-1][0] != expression_value(right):
            return None
        return " = ".join([left.strip(), *(text for _, text in taken)])
    except NoArithmetic:
        return None


def is_wrong(chain: EqualityChain, tolerance: float) -> bool:
    """Return whether first and last side differ by more than `tolerance` of the larger; a side without a value is
    not wrong."""
    try:
        first, last = _exact_value(chain.sides[0]), _exact_value(chain.sides[-1])
    except NoArithmetic:
        return False
    return abs(first - last) > Fraction(tolerance) * max(abs(first), abs(last))


def _exact_value(expression: str) -> Fraction:
    """Evaluate an expression as `expression_value` does, also to numbers that cannot be written down (`1 / 3`). Raises
    NoArithmetic."""
    parts = _unwrap_numbers(_parse_parts(expression))
    while len(parts) > 1:
        parts = _apply_next_operation(parts)
    return _first_number(parts)


def _cut_before(text: str, start: int, bare: str) -> bool:
    """Return whether the chain's begin belongs to what stands before it."""
    if start and (text[start - 1].isalnum() or text[start - 1] in _GLUED_BEFORE):
        return True
    before = text[max(0, start - 40) : start].rstrip(" \t")[-1:]
    open_to_the_left = bool(before) and (before.isalnum() or before in _OPEN_BEFORE)
    return bare[0] in "+*/" or (bare[0] == "-" and open_to_the_left)


def _cut_after(text: str, end: int) -> bool:
    """Return whether the chain's end goes on in what stands after it."""
    after = text[end : end + 1]
    if after == ",":
        return text[end + 1 : end + 2].isdigit()
    if after == ".":
        return text[end + 1 : end + 2].isdigit()
    if after.isalnum() or (after in _GLUED_AFTER and after):
        return True
    rest = text[end : end + 40].lstrip(" \t")
    return rest[:1] == "^" or (rest[:1] == "\\" and rest[1:2].isalpha() and not rest.startswith("\\text"))


def _parse_parts(expression: str) -> list[Part]:
    """Split an expression into numbers, with their sign where one is meant, and operators. Raises NoArithmetic."""
    parts: list[Part] = []
    at, end = 0, len(expression.rstrip(" \t"))
    while at < end:
        match = _PART.match(expression, at)
        if match is None or len(parts) >= MOST_PARTS:
            raise NoArithmetic
        at = match.end()
        number, sign = match.groups()
        if number is None:
            parts.append(sign)
        elif len(number) > MOST_DIGITS:
            raise NoArithmetic
        else:
            parts.append(Fraction(number))
    signed = _join_signs(parts)
    _check_parts(signed)
    return signed


def _join_signs(parts: list[Part]) -> list[Part]:
    """Join a `+` or `-` at the beginning, or after an opening bracket, with the number behind it. Raises NoArithmetic
    where no number follows."""
    done: list[Part] = []
    sign: str | None = None
    for part in parts:
        if sign is not None:
            if isinstance(part, str):
                raise NoArithmetic
            done.append(-part if sign == "-" else part)
            sign = None
        elif isinstance(part, str) and part in "+-" and (not done or done[-1] == "("):
            sign = part
        else:
            done.append(part)
    if sign is not None:
        raise NoArithmetic
    return done


def _check_parts(parts: list[Part]) -> None:
    """Raise NoArithmetic unless numbers and operators alternate and brackets close."""
    depth = 0
    operand_is_next = True
    for part in parts:
        if part == "(":
            depth += 1
            if not operand_is_next:
                raise NoArithmetic
        elif part == ")":
            depth -= 1
            if operand_is_next or depth < 0:
                raise NoArithmetic
        elif isinstance(part, Fraction) is not operand_is_next:
            raise NoArithmetic
        else:
            operand_is_next = not operand_is_next
    if operand_is_next or depth:
        raise NoArithmetic


def _unwrap_numbers(parts: list[Part]) -> list[Part]:
    """Remove brackets around single numbers."""
    done: list[Part] = []
    for part in parts:
        done.append(part)
        while len(done) > 2 and done[-1] == ")" and done[-3] == "(":
            done[-3:] = [done[-2]]
    return done


def _apply_next_operation(parts: list[Part]) -> list[Part]:
    """Apply the operation that comes first. Raises NoArithmetic for a division by zero and for giant numbers."""
    close = parts.index(")") if ")" in parts else len(parts)
    start = max((i for i in range(close) if parts[i] == "("), default=-1) + 1
    inside = range(start, close)
    at = next((i for i in inside if parts[i] in ("*", "/")), -1)
    if at < 0:
        at = next(i for i in inside if parts[i] in ("+", "-"))
    left, right = parts[at - 1], parts[at + 1]
    assert isinstance(left, Fraction), "numbers and operators alternate"
    assert isinstance(right, Fraction), "numbers and operators alternate"
    result = _apply_operator(str(parts[at]), left, right)
    return _unwrap_numbers([*parts[: at - 1], result, *parts[at + 2 :]])


def _apply_operator(operator: str, left: Fraction, right: Fraction) -> Fraction:
    if operator == "/":
        if not right:
            raise NoArithmetic
        return left / right
    if operator == "+":
        return left + right
    if operator == "-":
        return left - right
    return left * right


def _first_number(parts: list[Part]) -> Fraction:
    return next(part for part in parts if isinstance(part, Fraction))


def _format_parts(parts: list[Part]) -> str:
    """Return the parts as text. Raises NoArithmetic for a number without an end. Negative numbers stand in brackets,
    except at the beginning and after an opening bracket."""
    pieces = []
    for at, part in enumerate(parts):
        if isinstance(part, str):
            pieces.append(part)
        else:
            text = _format_decimal(part)
            if at and part < 0 and parts[at - 1] != "(":
                text = f"({text})"
            pieces.append(text)
    spaced = [f"{a} " if a in _OPERATORS or b in _OPERATORS else a for a, b in pairwise(pieces)]
    return "".join([*spaced, pieces[-1]])


def _format_decimal(number: Fraction) -> str:
    if number.denominator == 1:
        return str(number.numerator)
    scaled = number * 10**MOST_PLACES
    if scaled.denominator != 1 or len(str(scaled.numerator)) > MOST_DIGITS + MOST_PLACES:
        raise NoArithmetic
    whole, places = divmod(abs(scaled.numerator), 10**MOST_PLACES)
    sign = "-" if number < 0 else ""
    return f"{sign}{whole}.{places:0{MOST_PLACES}d}".rstrip("0")
