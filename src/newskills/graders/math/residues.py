# SPDX-License-Identifier: Apache-2.0
"""Residue classes: `x \\equiv 3 \\pmod 7`, `3 (mod 7)`, `1, 2 \\mod 5`."""

from __future__ import annotations

import re
from math import lcm

_MOST_CLASSES = 1_000
_CLASSES = re.compile(
    r"(?:(?P<name>[a-zA-Z])\s*\\equiv\s*)?(?P<residues>-?\d{1,18}(?:\s*,\s*-?\d{1,18}){0,20})(?:\s|~|\\[,;:! ]){0,4}"
    r"\(?\s?(?:\\(?:text|mathrm|operatorname)\s?\{\s?)?\\?[pb]?mod(?![a-z])(?:\s|~|\\[,;:! ]|\}){0,4}"
    r"\{?\s?(?P<modulus>\d{1,18})\s?\}?\s?\)?"
)


def same_residues(pred: str, gold: str) -> bool | None:
    """Whether both are the same residue classes (`3, 10 (mod 14)` is `3 (mod 7)`); None where either is anything else.

    A name that only one of them states is forgiven.
    """
    first, second = _CLASSES.fullmatch(pred), _CLASSES.fullmatch(gold)
    if first is None or second is None:
        return None
    moduli = [int(match["modulus"]) for match in (first, second)]
    period = lcm(*moduli)
    if not period or period // min(moduli) > _MOST_CLASSES:
        return None
    if first["name"] and second["name"] and first["name"] != second["name"]:
        return False
    ours, theirs = (
        {
            (int(residue) + turn * modulus) % period
            for residue in match["residues"].split(",")
            for turn in range(period // modulus)
        }
        for match, modulus in zip((first, second), moduli, strict=True)
    )
    return ours == theirs
