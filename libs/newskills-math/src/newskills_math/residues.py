# SPDX-License-Identifier: Apache-2.0
"""Residue classes: `x \\equiv 3 \\pmod 7`, `3 (mod 7)`, `1, 2 \\mod 5`."""

from __future__ import annotations

import re
from math import lcm
from typing import NamedTuple

_MOST_CLASSES = 1_000
_CLASSES = re.compile(
    r"(?:(?P<name>[a-zA-Z])\s*\\equiv\s*)?(?P<residues>(?:-|\\pm\s?)?\d{1,18}(?:\s*,\s*-?\d{1,18}){0,20})"
    r"(?:\s|~|\\[,;:! ]){0,4}"
    r"\(?\s?(?:\\(?:text|mathrm|operatorname)\s?\{\s?)?\(?\s?\\?[pb]?mod(?![a-z])(?:\s|~|\\[,;:! ]|\}){0,4}"
    r"\{?\s?(?P<modulus>\d{1,18})\s?\}?\s?\)?\s?\}?\s?\)?"
)


_PROGRESSION = re.compile(
    r"(?:(?P<name>[a-zA-Z])\s*=\s*)?(?:(?P<first>\d{1,18})\s*\+\s*)?(?P<modulus>\d{1,18})\s*(?P<turn>[kmntlq])"
    r"(?:\s*(?P<last>[+-]\s*\d{1,18}))?"
    r"(?:[\s,]|\\[,;:! ]|\\q?quad)*(?:(?:\\text\s?\{)?\s?(?:for|where|with)?[a-z ]{0,20}\}?\s*(?P=turn)\s*\\in\s*"
    r"\\(?:mathbb|Bbb|mathbf)\s?\{?\s?Z\s?\}?)?"
)
"""`n = 7k + 3`, `k \\in \\mathbb{Z}`."""


class _Classes(NamedTuple):
    """Residues of a modulus; the name is that of the unknown, or empty."""

    name: str
    residues: tuple[int, ...]
    modulus: int


def same_residues(pred: str, gold: str) -> bool | None:
    """Return whether both are the same residue classes (`3, 10 (mod 14)` is `3 (mod 7)`); None where either is
    anything else, or none of them names a modulus.

    A name that only one of them states is forgiven; so is a modulus that is stated beside a bare number. A class that
    is named (`m \\equiv 3 \\pmod 7`) is more than its number.
    """
    if "mod" not in pred and "mod" not in gold:
        return None
    first, second = _read_classes(pred), _read_classes(gold)
    for classes, bare in ((second, pred), (first, gold)):
        if classes is not None and bare.lstrip("-").isdecimal():
            return not classes.name and (int(bare),) == classes.residues and 0 <= int(bare) < classes.modulus
    if first is None or second is None:
        return None
    period = lcm(first.modulus, second.modulus)
    if not period or period // min(first.modulus, second.modulus) > _MOST_CLASSES:
        return None
    if first.name and second.name and first.name != second.name:
        return False
    ours, theirs = (
        {
            (residue + turn * classes.modulus) % period
            for residue in classes.residues
            for turn in range(period // classes.modulus)
        }
        for classes in (first, second)
    )
    return ours == theirs


def _read_classes(text: str) -> _Classes | None:
    if (match := _CLASSES.fullmatch(text)) is not None:
        listed = match["residues"]
        residues = [int(residue) for residue in listed.replace("\\pm", "").split(",")]
        both = [-residues[0]] if listed.startswith("\\pm") else []
        return _Classes(match["name"] or "", tuple(residues + both), int(match["modulus"]))
    match = _PROGRESSION.fullmatch(text)
    if match is None or (match["first"] and match["last"]) or match["name"] == match["turn"]:
        return None
    residue = int((match["first"] or match["last"] or "0").replace(" ", ""))
    return _Classes(match["name"] or "", (residue,), int(match["modulus"]))
