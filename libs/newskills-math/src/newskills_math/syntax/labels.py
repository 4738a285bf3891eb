# SPDX-License-Identifier: Apache-2.0
"""What tells one name of a value from another, and the order in which named values are meant."""

from __future__ import annotations

import re
from collections.abc import Sequence

from newskills_math.syntax.nodes import Node, symbols

_CONSTANTS = frozenset("abcd")
_PLAIN_NAME = re.compile(r"[a-zA-Z](?:_\d+)?")
_IN_WORDS = re.compile(
    r"(?:\\(?:text|mathrm|textbf)\s*\{([^{}]{1,60})\}|([A-Za-z]{4,20}(?: [a-z]{1,20}){0,4}))\s*=(?!$)"
)


def of_arguments(application: Node, value: Node) -> str:
    """Return what the arguments add to a name: `f(0)` is not `f(1)`, nor `P(A)` `P(B)`; empty for those of a function.

    A variable (`f(x) = 3`), and a letter on which the value depends, stand for any argument.
    """
    free = symbols(value)
    parts = [_of_argument(argument, free) for argument in application.args]
    if any(parts):
        return f"({','.join(parts)})"
    return ""


def _of_argument(argument: Node, free: frozenset[str]) -> str:
    if argument.kind == "num":
        return str(argument.value)
    is_fixed = argument.name.isupper() or argument.name in _CONSTANTS
    if is_fixed and argument.name not in free:
        return argument.name
    return ""


def usual_order(names: Sequence[str]) -> list[int] | None:
    """Return in which order named values stand in a tuple: `y = -2, x = 1` is (1, -2); None for other names.

    Known are neighbours in the alphabet (`x, y, z`; `a, b`; `m, n`) and one letter with subscripts.
    """
    if len(set(names)) < len(names) or not all(_PLAIN_NAME.fullmatch(name) for name in names):
        return None
    order = sorted(range(len(names)), key=lambda at: _label_rank(names[at]))
    letters = [ord(names[at][0]) for at in order]
    is_run = letters == list(range(letters[0], letters[0] + len(letters)))
    if is_run or len(set(letters)) == 1:
        return order
    return None


def _label_rank(name: str) -> tuple[str, int]:
    letter, _, subscript = name.partition("_")
    return letter, int(subscript or 0)


def are_other_points(gold: str, pred: str) -> bool:
    """Return whether both are names of three points or more in another order: the angle ABC is that of CBA, not of
    ACB."""
    return len(gold) > 2 and gold.isupper() and sorted(gold) == sorted(pred) and pred not in (gold, gold[::-1])


def are_other_names(pred: str, gold: str) -> bool:
    """Return whether both say in words what their value is of, and not the same: `\\text{Area} = 7`, `\\text{Volume} =
    7`."""
    if "," in pred or "," in gold:
        return False
    matches = [_IN_WORDS.match(text) for text in (pred, gold)]
    names = [
        " ".join((match[1] or match[2]).lower().split()).removeprefix("the ")
        for match in matches
        if match is not None
    ]
    return len(names) == 2 and not any(name in other for name, other in (names, names[::-1]))
