# SPDX-License-Identifier: Apache-2.0
"""Rare notations of a whole answer, each with the usual one. Data and one loop."""

from __future__ import annotations

import re
from collections.abc import Callable

from newskills_math.numerals import spelled_number

_EXCEPTION = r"\$?(?:[a-z]\s?(?:=|\\neq?)\s?)?-?[\d./]{1,20}\$?"
_VALUE = r"-?(?:\d[\d.,/]{0,20}|\\[dt]?frac\s?(?:\{\d{1,9}\}\s?\{\d{1,9}\}|\d\d))"
_TEXT = r"\\text\s?\{"
_EXCLUDED = rf"\}}?\s*(?!\1(?![\d.])){_VALUE}[)}}\s]*"
_MEASURED = (
    "dollar|cent|unit|solution|way|second|minute|hour|day|week|month|year|mile|foot|inch|meter|metre|point|time|people"
    "|student|percent|degree|person|child|apple|ball|edge|side"
)
_NUMBERS = re.compile(r"-?[\d./]+")
_HALF_LINES = {"+": "(0,\\infty)", ">": "(0,\\infty)", "-": "(-\\infty,0)", "<": "(-\\infty,0)"}
_Usual = str | Callable[[re.Match[str]], str]

_NOTATIONS: tuple[tuple[str, re.Pattern[str], _Usual], ...] = (
    (
        "mathbb",
        re.compile(
            r"\\mathbb\s?\{?R\}?(?:[\^_]\{?(?P<sign>[+-])\}?|_\{\s?(?:(?P<strict>[<>])|\\geq?(?:slant)?|>=)\s?0\s?\})$"
        ),
        lambda m: _HALF_LINES.get(m["sign"] or m["strict"] or "", "[0,\\infty)"),
    ),
    (
        "^",
        re.compile(
            r"^((?:\(|\[|\\langle )(?=[^)\]]*,)[^()\[\]\\;&]{1,80}(?:\)|\]|\\rangle))\s?\^\s?\{?\s?"
            r"(?:T|t|\\top|\\intercal|\\math(?:sf|rm)\{T\})\s?\}?$"
        ),
        r"\1",
    ),
    (")_", re.compile(r"^\(([0-9A-F]{1,80})\)_(\{?\d{1,2}\}?)$"), r"\1_\2"),
    ("US", re.compile(r"^(?:USD?|\\text\s?\{\s?USD?\s?\})[\s~]?\\?\$?\s?(?=[\d.])"), r"\\$"),
    ("Rs", re.compile(r"^(?:\\(?:text|mathrm)\s?\{\s?)?Rs\.?[\s~]*\}?(?:\\[ ,]|[\s~])*(?=[\d.])"), r"\\rupee "),
    (
        "=",
        re.compile(
            r"^(?:\\|\\(?:text|mathrm|operatorname)\s?\{\s?)?(?P<end>max|min)(?:imum)?\s?\}?\s*(?:[a-zA-Z]\s?(?:\([a-z]\))?)?\s*="
        ),
        r"\\text{\g<end>imum} =",
    ),
    (
        ",",
        re.compile(r"^([^\d()\[\]{},.]{0,10}\d{1,3}(?:\.\d{3})+),(\d{1,4}[^\d()\[\]{},.]{0,10})$"),
        lambda m: f"{m[1].replace('.', '')}.{m[2]}",
    ),
    ("{:}", re.compile(r"(?:\\!)?\{:\}(?:\\!)?"), ":"),
    ("0x", re.compile(r"^0x([0-9a-fA-F]{1,40})$"), lambda m: f"{m[1].upper()}_{{16}}"),
    ("0b", re.compile(r"^0b([01]{1,80})$"), r"\1_{2}"),
    ("times", re.compile(r"^([\d.,/]{1,20})\s*(?:\\text\s*\{\s*)?times\s*\}?$"), r"\1"),
    ("\\math", re.compile(r"^\\math(?:cal|rm|sf|it)\s+([A-Za-z])$"), r"\1"),
    ("cup", re.compile(r"^([\d.,/]{1,20})\s*(?:\\text\s*\{\s*)?cups?\s*\}?$"), r"\1"),
    ("not ", re.compile(rf"^({_VALUE})(?:[\s,~(]|{_TEXT})*(?:and )?not {_EXCLUDED}$"), r"\1"),
    ("instead of ", re.compile(rf"^({_VALUE})(?:[\s,~(]|{_TEXT})*instead of {_EXCLUDED}$"), r"\1"),
    ("rather than ", re.compile(rf"^({_VALUE})(?:[\s,~(]|{_TEXT})*rather than {_EXCLUDED}$"), r"\1"),
    ("or so", re.compile(rf"^({_VALUE})(?:\s|{_TEXT})*or so\s*\}}?$"), r"\1"),
    (" since", re.compile(rf"^({_VALUE})(?:[\s,~]|{_TEXT})* since\b.{{1,80}}$"), r"\1"),
    (" because", re.compile(rf"^({_VALUE})(?:[\s,~]|{_TEXT})* because\b.{{1,80}}$"), r"\1"),
    ("\\choose", re.compile(r"\{([^{}]{1,40})\\choose([^{}]{1,40})\}"), r"\\binom{\1}{\2}"),
    ("\\\\[", re.compile(r"\\\\\[-?[\d.]{1,5}(?:pt|em|ex|mm|cm)\]"), r"\\\\"),
    ("^", re.compile(r"^([a-zA-Z])\s?\^\s?\{?-1\}?\s?(?=\([a-z]\)\s*=)"), r"\1_{inverse}"),
    (
        "for ",
        re.compile(
            r"^([a-zA-Z]\([a-z]\)\s*=[^=]{1,80}?)[\s,]*(?:\\text\s*\{)?[\s,]*for (?:all|any|every|each) [^=<>\d]{0,40}$"
        ),
        r"\1",
    ),
)
"""(what stands in every text with it, the notation, the usual one)."""

_IN_WORDS: tuple[tuple[re.Pattern[str], _Usual], ...] = (
    (
        re.compile(
            r"all real(?: number)?s?(?: [a-z])?,? (?:except|other than|but|excluding)(?: for)? "
            rf"({_EXCEPTION}(?:(?:,| and|, and) {_EXCEPTION}){{0,5}})"
        ),
        lambda m: rf"\mathbb{{R}}\setminus\{{{','.join(_NUMBERS.findall(m[1]))}\}}",
    ),
    (re.compile(r"(?:all|the set of(?: all)?) (?:the )?integers"), r"\\mathbb{Z}"),
    (re.compile(r"(?:all|the|the set of(?: all)?) natural numbers"), r"\\mathbb{N}"),
    (re.compile(r"(?:negative|minus) infinity"), r"-\\infty"),
    (re.compile(r"(\d{1,2})\s?o'?\s?clock"), r"\1:00"),
    (
        re.compile(
            rf"([A-Za-z]+(?:[- ][a-z]+){{0,4}}?) ((?:(?:square|cubic) )?(?:{_MEASURED})(?:e?s)?|feet|inches|children)"
        ),
        lambda m: f"{spelled_number(m[1])}\\text{{ {m[2]}}}" if spelled_number(m[1]) else m[0],
    ),
    (re.compile(r"(\d{1,9}) in (\d{1,9})"), r"\\frac{\1}{\2}"),
    (re.compile(r"\$?(\d[\d,]{0,11})\$? out of (?:every )?\$?(\d[\d,]{0,11})\$?"), r"\\frac{\1}{\2}"),
)
_LONGEST = 120


def usual_notation(text: str) -> str:
    """Return the text in usual notation."""
    for mark, pattern, usual in _NOTATIONS:
        if mark in text:
            text = pattern.sub(usual, text)
    if " " not in text or "\\" in text or len(text) > _LONGEST:
        return text
    for pattern, usual in _IN_WORDS:
        if (match := pattern.fullmatch(text)) is not None:
            if isinstance(usual, str):
                return match.expand(usual)
            return usual(match)
    return text
