# SPDX-License-Identifier: Apache-2.0
"""The fall-back for what our own reader leaves open: math-verify's LaTeX grammar, with checks after a True.

Only its LaTeX extraction is used: the plain-text one hands its input to Python's parser.
"""

from __future__ import annotations

import logging
import re
from functools import lru_cache
from typing import Any

from newskills_math.phrases import DENYING, is_denial
from newskills_math.syntax.tables import VALUE_WORDS
from newskills_math.values.deadline import for_free, name_step

HINT = "pip install 'newskills-math[symbolic]'"
_SEPARATORS = re.compile(r"[,;，；、]|\\\\|\b(?:and|or)\b")
_SPACING = re.compile(r"\\[,;:! ]|\\q?quad(?![a-zA-Z])")
_BASES = re.compile(r"[0-9A-F]_\{?(\d+)\}?")
_DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?")
_WORD = re.compile(r"[a-z]{3,}")
_COMMAND = re.compile(r"\\[a-zA-Z]+")
_LETTERS = re.compile(r"[A-Za-z]+")
_LONGEST_NAME = 3
_ROW = re.compile(r"-?[\d.]+(?:\s+-?[\d.]+)+")
_SIDE_BY_SIDE = re.compile(r"(?<![\^_\d.])\d+\s+\d")
_BEHIND = re.compile(r"[\d}]\s*\\text\s*\{([^{}]*)\}")
_PRIMED_NUMBER = re.compile(r"\d\s*(?:'|\^\s*\{?\s*\\prime)")
_ENVIRONMENT = re.compile(r"\\begin\{")
_LONGEST = 600
_MATRIX_WORK = re.compile(
    r"\\det|vmatrix|\\(?:operatorname|text|mathrm)\{\w+\}|\\end\{\w*matrix\}[\s)]*(?:\\right\s*\))?\s*(?:\^|\\cdot|\\begin)"
)
_MOST_CELLS = 16
_TOO_BIG = "too big to compare symbolically"
_WARMING = ((r"\frac{1}{2}", r"\sqrt{2}+x"), (r"\int_{0}^{1} f^{-1}(x)\,dx", r"(1,2]\cup\{\log_2(3)\}"))
"""Rare constructs too: what the grammar's tables cost at their first use is not taken off an answer's time."""
_TOWER = re.compile(r"(?:\^\s?(?:[{(][^^})]{0,20}|\w)){2}\^|\d{4,}!|!{3,}|\^\{?\d{5,}")


@lru_cache(maxsize=1)
def import_library() -> Any:
    """Return the module math_verify, warm, or None where it is not installed."""
    try:
        import math_verify
    except ImportError:
        return None
    # It warns at every call without its own alarm clock; our deadline is the worker's.
    for name in ("math_verify", "latex2sympy2_extended"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    for gold, pred in _WARMING:
        _attempt_comparison(math_verify, gold, pred, 15)
    return math_verify


def preload() -> None:
    """Import the library and build its grammar's tables, so that forked workers have them."""
    import_library()


def decide_symbolically(pred: str, gold: str, digits: int) -> tuple[bool | None, str]:
    """Return (verdict, step), undecided where the library is missing or fails, or gold is too big. May raise
    OutOfTime."""
    if not has_balanced_braces(pred):
        return False, "unbalanced"
    if (_number_row(pred) is None) != (_number_row(gold) is None):
        return False, "numbers side by side"
    if _too_big(pred) or _too_big(gold):
        verdict = None if _too_big(gold) else False
        return verdict, _TOO_BIG
    if for_free(import_library) is None:
        return None, f"undecided; {HINT}"
    with name_step("math-verify"):
        outcome = _attempt_comparison(import_library(), gold, pred, digits)
    if isinstance(outcome, Exception):
        return None, f"undecided: math-verify failed ({type(outcome).__name__})"
    if outcome and (doubt := _doubt_reason(pred, gold)):
        return False, f"math-verify, but {doubt}"
    return outcome, "math-verify"


def _attempt_comparison(lib: Any, gold: str, pred: str, digits: int) -> bool | Exception:
    try:
        return _compare_by_library(lib, gold, pred, digits)
    except Exception as error:  # noqa: BLE001 - whatever the library fails with, nothing is decided
        return error


def _compare_by_library(lib: Any, gold: str, pred: str, digits: int) -> bool:
    configs = [lib.LatexExtractionConfig()]
    parsed = [
        lib.parse(
            _wrap_formula(text), extraction_config=configs, fallback_mode="no_fallback", parsing_timeout=None
        )
        for text in (gold, pred)
    ]
    return bool(lib.verify(parsed[0], parsed[1], numeric_precision=digits, timeout_seconds=None))


def _wrap_formula(text: str) -> str:
    text = text.replace("$", "").replace(r"\limits", "")
    if _ENVIRONMENT.match(text):
        return text
    return f"${text}$"


def _too_big(text: str) -> bool:
    """Return whether the work would grow beyond bounds: powers of powers, symbolic determinants, endless formulas."""
    if len(text) > _LONGEST or _TOWER.search(text) is not None:
        return True
    return text.count("&") + text.count("\\\\") >= _MOST_CELLS and _MATRIX_WORK.search(text) is not None


def _number_row(text: str) -> re.Match[str] | None:
    """Find a text that is nothing but numbers with blanks between: no product, whatever LaTeX's grammar says."""
    return _ROW.fullmatch(_SPACING.sub(" ", text).replace("~", " "))


def has_balanced_braces(text: str) -> bool:
    return text.count("{") == text.count("}")


def _in_words(text: str) -> list[str]:
    """Return the words and letters of a plain text with words in it; empty for a formula."""
    words = [] if "\\" in text else _LETTERS.findall(text)
    if any(len(word) > _LONGEST_NAME for word in words):
        return words
    return []


def _doubt_reason(pred: str, gold: str) -> str:
    """Tell why a True should not be believed: what the library is known to overlook."""
    pred, gold = _SPACING.sub(" ", pred), _SPACING.sub(" ", gold)
    if len(_SEPARATORS.findall(pred)) != len(_SEPARATORS.findall(gold)):
        return "not as many elements"
    if (set(_WORD.findall(_COMMAND.sub(" ", pred))) ^ set(_WORD.findall(_COMMAND.sub(" ", gold)))) & (
        VALUE_WORDS | DENYING
    ):
        return "other words"
    stated, wanted = _in_words(pred), _in_words(gold)
    if stated != wanted and sorted(stated) == sorted(wanted):
        return "words in another order"
    if any(is_denial(words.strip()) for words in _BEHIND.findall(pred)) and not _BEHIND.search(gold):
        return "words that deny"
    if bool(_PRIMED_NUMBER.search(pred)) != bool(_PRIMED_NUMBER.search(gold)):
        return "a prime at a number"
    if bool(_SIDE_BY_SIDE.search(pred)) != bool(_SIDE_BY_SIDE.search(gold)):
        return "numbers side by side"
    if _BASES.findall(pred) != _BASES.findall(gold):
        return "another base"
    if _DECIMAL.fullmatch(pred) and _DECIMAL.fullmatch(gold):
        a, b = float(pred), float(gold)
        if abs(a - b) > 1e-6 * max(abs(a), abs(b)):
            return "another size"
    return ""
