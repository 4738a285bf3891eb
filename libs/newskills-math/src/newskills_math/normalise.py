# SPDX-License-Identifier: Apache-2.0
"""Pure text clean-up before an answer is read: Unicode, wrappers, trailing punctuation. Linear in the text."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from newskills_math.notations import usual_notation
from newskills_math.numerals import spelled_number
from newskills_math.syntax.tables import SCRIPTS, UNICODE

_SCRIPT_RUN = re.compile("[" + re.escape("".join(SCRIPTS)) + "]+")
_BARE_ROOT = re.compile(r"\\sqrt (\d+|[a-zA-Z])(?![\d{])")
_STRIP = " \t\r\n$.,;:。，\u3000"
_TRAILING_SLASHES = re.compile(r"\\+$")
_WRAPPERS = tuple(
    "\\" + name + "{"
    for name in [
        "boxed",
        "fbox",
        "framebox",
        "text",
        "mbox",
        "textbf",
        "textrm",
        "textit",
        "mathrm",
        "mathbf",
        "mathit",
        "bm",
        "boldsymbol",
        "underline",
        "ensuremath",
        "mathcal",
        "mathsf",
        "texttt",
        "textnormal",
        "emph",
    ]
)
_BLANKS = re.compile(
    r"\s+|\\[,;:!> ]|~|\\(?:left|right|displaystyle|limits|q?quad|[bB]igg?[lrm]?)(?![a-zA-Z])|\$|\\[()]"
)
_GAP = r"(?:\s|\\[,;:!> ]|~|\\q?quad(?![a-zA-Z]))+"
_SPACING = re.compile(r"(?:\\[,;: ]|~)+\s*")
_SPLIT = re.compile(rf"(?<=\d){_GAP}(?=[\d.])|(?<=\d\.){_GAP}(?=\d)")
_THOUSANDS = re.compile(r"(?<![\d.])\d{1,3}(?:(?: |~|\\[,;:! ])\d{3})+(?![\d.,/]|\s?\d)")
_MODULES = re.compile(r"\b(?:np|numpy|math|sympy)\.(?=[a-z])")
_ONE_SIGN = re.compile(r"([_^])\{(\w)\}(?!\d)")
_FRACTIONS = re.compile(r"\\[dtc]frac(?![a-zA-Z])")
_KEPT_LENGTH = 500
_REPEATING = re.compile(r"^([+-]?\d*\.\d*)\((\d{1,60})\)$")
_LEADING = re.compile(
    r"(?:\\(?:therefore|because|Rightarrow|implies|Longrightarrow|iff"
    r"|left\s*\.|(?:math|text)rm\{[~ ]*\})(?![a-zA-Z])|&|\s)+"
)
_RESULT = re.compile(r"(?:=|\\(?:approx|simeq|doteq)(?![a-zA-Z]))\s*(?!$)")
_TRAILING = re.compile(r"(?:\\(?:qed|blacksquare|square|Box|checkmark|quad|qquad|right\s*\.)(?![a-zA-Z])|\s)+$")
_ENDLESS = re.compile(r"([+-]?\d{0,20}\.\d{0,8}?)(\d{1,6}?)\2{2,20}(?:\.\.\.+|\\[lcd]?dots[cb]?)")
_FRENCH = re.compile(r"([\[\]])([^\[\](){}]{1,60})([\[\]])")
_COUNTS = re.compile(r"[CAP](?:\}|_|\^)")
_SIZE = r"(?:\{\s*([\da-z][\da-z+\- ]{0,11})\s*\}|(\d|[a-z]))"
_SIGN = r"(?:\\(?:mathrm|text)\s*\{([CAP])\}|([CAP]))"
_CHOOSE_AFTER = re.compile(rf"(?<![A-Za-z}}]){_SIGN}_{_SIZE}\^{_SIZE}")
_CHOOSE_ABOVE = re.compile(rf"(?<![A-Za-z}}]){_SIGN}\^{_SIZE}_{_SIZE}")
_CHOOSE_BEFORE = re.compile(rf"(?<![A-Za-z}}\d])(?:\{{\s*\}})?[_^]{_SIZE}\s?{_SIGN}_{_SIZE}")
_TEXT_CURRENCY = re.compile(r"\\text\{\s*(\\(?:euro|pounds|yen|rupee|\$))\s*\}")
_COLOR = re.compile(r"\\(?:text)?color\s*\{\w{1,20}\}\s*(?=\{)|\\color\s*\{\w{1,20}\}")
_MARKDOWN = re.compile(r"^(\*\*|__|`+|\*)(.+)\1$", re.DOTALL)
_LABEL = re.compile(
    r"^(?:(?:the\s+)?(?:final\s+|correct\s+)?answer(?:\s+is)?|the\s+value(?:\s+of\s+[a-zA-Z])?\s+is|ans|答案(?:是|为)?)\s*[:：=]?\s*(?=[^a-zA-Z\s:：=])",
    re.IGNORECASE,
)


def strip_around(text: str, around: str) -> str:
    """Return `text` without the characters `around` at both ends; the point of `.5` is no punctuation and stays."""
    left = text.lstrip(around)
    at = len(text) - len(left)
    if left[:1].isdecimal() and text[max(at - 2, 0) : at].lstrip(around.replace(".", "")) == ".":
        left = "." + left
    return left.rstrip(around)


def tidy_answer(text: str) -> str:
    """Return the answer without what is around it: dollars, boxes, one `\\text{…}` around all, markdown, end
    punctuation."""
    if len(text) <= _KEPT_LENGTH:
        return _tidy_once(text)
    return _tidy_once.__wrapped__(text)


@lru_cache(maxsize=1 << 12)
def _tidy_once(text: str) -> str:
    text = _usual_notation(latinise(text).strip())
    for _ in range(8):
        before = text
        text = strip_around(text, _STRIP)
        if text.endswith("\\"):
            text = _TRAILING_SLASHES.sub("", text)
        if text.startswith(("\\(", "\\[")) and text.endswith(("\\)", "\\]")):
            text = text[2:-2]
        if text.startswith(("*", "`", "_")) and (match := _MARKDOWN.match(text)) is not None:
            text = match.group(2)
        bare_text = _without_decoration(text) if "\\" in text or text[:1] in ("=", "&") else text
        text = _unwrap_once(bare_text)
        if text == before:
            break
        text = _usual_notation(text)
    if "." in text and _MODULES.search(text) is not None:
        text = _MODULES.sub("", text)
    if text.endswith(")") and (match := _REPEATING.match(text)) is not None:
        text = f"{match[1]}\\overline{{{match[2]}}}"
    return _LABEL.sub("", text)


def _usual_notation(text: str) -> str:
    """Write rare notations in their usual form: `n \\choose k`, `]0,1[`, `0.333…`, line breaks with a height,
    inverses."""
    if len(text) < 80 and text.endswith((".", "dots")) and (match := _ENDLESS.fullmatch(text)) is not None:
        return f"{match[1]}\\overline{{{match[2]}}}"
    if text[:1].isalpha() and (number := spelled_number(_SPACING.sub(" ", text))) is not None:
        return number
    if text[:1] in ("[", "]") and (match := _FRENCH.fullmatch(text)) is not None:
        opening = "(" if match[1] == "]" else "["
        closing = ")" if match[3] == "[" else "]"
        return opening + match[2] + closing
    if "_" in text and _COUNTS.search(text) is not None:
        text = _CHOOSE_AFTER.sub(
            lambda m: _choice_count(m[1] or m[2], m[3] or m[4], m[5] or m[6], m.group()), text
        )
        text = _CHOOSE_ABOVE.sub(
            lambda m: _choice_count(m[1] or m[2], m[5] or m[6], m[3] or m[4], m.group()), text
        )
        text = _CHOOSE_BEFORE.sub(
            lambda m: _choice_count(m[3] or m[4], m[1] or m[2], m[5] or m[6], m.group()), text
        )
    return usual_notation(text)


def _choice_count(sign: str, total: str, taken: str, written: str) -> str:
    """Write `C_{10}^3` and `{}_{10}C_3` as a binomial, `A_{10}^3` and `{}_{10}P_3` as a quotient of factorials.

    `C_1^2` is as likely the square of a constant.
    """
    if total.isdigit() and taken.isdigit():
        if int(total) <= int(taken):
            return written
    elif sign != "C":
        return written
    if sign == "C":
        return rf"\binom{{{total}}}{{{taken}}}"
    return rf"\frac{{{total}!}}{{{int(total) - int(taken)}!}}"


def _without_decoration(text: str) -> str:
    """Remove colours, signs of conclusion before and marks of an end of proof behind."""
    if "color" in text:
        text = _COLOR.sub("", text)
    text = _TEXT_CURRENCY.sub(r"\1 ", text)
    if (leading := _LEADING.match(text)) is not None:
        text = text[leading.end() :]
    if (leading := _RESULT.match(text)) is not None:
        text = text[leading.end() :]
    if (
        text.endswith((" ", ".", "d", "e", "k", "x"))
        and (end := _TRAILING.search(text, max(len(text) - 80, 0))) is not None
    ):
        text = text[: end.start()]
    return text


def latinise(text: str) -> str:
    """Convert Unicode maths to LaTeX; other compatibility characters through NFKC. ASCII comes back unchanged."""
    if text.isascii():
        return text
    text = _SCRIPT_RUN.sub(_unicode_script, text).translate(UNICODE)
    if "\\sqrt " in text:
        text = _BARE_ROOT.sub(r"\\sqrt{\1}", text)
    if text.isascii():
        return text
    return unicodedata.normalize("NFKC", text)


def comparison_key(text: str) -> str:
    """Return the form in which two texts are the same answer whatever it means: no blanks, no decoration.

    Blanks between two digits go only where they part groups of three; elsewhere they stay as a mark.
    """
    if _SPLIT.search(text) is not None:
        text = _SPLIT.sub("\0", _THOUSANDS.sub(lambda m: _BLANKS.sub("", m.group()), text))
    return _ONE_SIGN.sub(r"\1\2", _FRACTIONS.sub(r"\\frac", _BLANKS.sub("", text)))


def _unicode_script(match: re.Match[str]) -> str:
    parts: list[str] = []
    mark = ""
    for char in match.group():
        kind, plain = SCRIPTS[char]
        if kind != mark:
            end_brace = "}" if mark else ""
            parts.append(end_brace + kind + "{")
            mark = kind
        parts.append(plain)
    return "".join(parts) + "}"


def _unwrap_once(text: str) -> str:
    """Remove one wrapper that spans the whole text."""
    wrappers = _WRAPPERS if text.startswith("\\") else ()
    for opening in wrappers:
        if text.startswith(opening) and text.endswith("}"):
            inner = text[len(opening) : -1]
            if _closed_alone(inner):
                return inner
    if text.startswith("{") and text.endswith("}") and "," not in text and _closed_alone(text[1:-1]):
        return text[1:-1]
    return text


def _closed_alone(inner: str) -> bool:
    """Return whether every brace inside is matched inside."""
    depth = 0
    escaped = False
    for char in inner:
        if escaped:
            escaped = False
        elif char == "\\":
            escaped = True
        elif char == "{":
            depth += 1
        elif char == "}":
            depth -= 1
            if depth < 0:
                return False
    return depth == 0
