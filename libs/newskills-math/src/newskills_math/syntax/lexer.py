# SPDX-License-Identifier: Apache-2.0
"""Text → tokens: LaTeX, Unicode maths, plain ASCII maths and words mixed, in one linear pass."""

from __future__ import annotations

import re
from typing import NamedTuple

from newskills_math.syntax import tables
from newskills_math.syntax.nodes import TooBig, Unreadable

MAX_TOKENS = 3000


class Token(NamedTuple):
    """kind: num, based, sym, fn, cmd, text, op, end; `spaced`: blanks stood before it."""

    kind: str
    text: str
    spaced: bool = False


_SCANNER = re.compile(
    r"""
    (?P<space>(?:\s|~|\\[,;:!>\ \n]|\\(?:q?quad|thinspace|enspace|displaystyle|textstyle|scriptstyle|limits|nolimits
        |left|right|middle|[bB]igg?[lrm]?|noindent|hfill|strut|mathstrut|nonumber|notag|rm|bf|it)(?![a-zA-Z])
        |\\(?:hspace|vspace|phantom|hphantom|label|tag)\*?\{[^{}]*\})+)
  | (?P<based>(?:\d[0-9A-F]*(?:\.\d+)?|[A-F][0-9A-F]+)_(?:\{\s*\d{1,2}\s*\}|\d{1,2}|\{?\\text\{\s*\w+\s*\}\}?))
  | (?P<grouped>[1-9]\d{0,2}(?:(?:\\!,\\!|\{,\}|\{\\,\}|,\s?\\!\s?|\\[,;:!]|\\\s|\{,\}\\!)\d{3})+(?!\d)(?:\.\d+)?
        |[1-9]\d{0,2}(?:[\ ~]\d{3})+(?![\d.,/]))
  | (?P<comma>[1-9]\d{0,2}(?:,\d{3})+(?!\d)(?:\.\d+)?)
  | (?P<num>(?:\d+(?:\.\d+|\.(?=[/*+\-^)]|\\(?:overline|dot|bar)))?|\.\d+)(?:[eE][+-]?\d{1,6}(?![\d.a-zA-Z]))?)
  | (?P<text>\\(?:text|mbox|textbf|textit|textrm|textnormal|texttt|textsf|mathrm|mathit|mathsf|mathtt|operatorname\*?
        |mathbf|boldsymbol|bm|mathop|hbox|emph|mathcal|mathbb|mathfrak|Bbb)\s*\{(?P<body>[^{}]*)\})
  | (?P<cmd>\\[a-zA-Z]+\*?)
  | (?P<escape>\\.)
  | (?P<speed>(?:k?m|mi|ft)/(?:s|h|hr)(?![a-zA-Z^]))
  | (?P<dots>\.\.\.+)
  | (?P<word>[A-Za-zÀ-ÖØ-öø-ɏ]{2,}|[A-Za-z])
  | (?P<other>\*\*|!=|<=|>=|==|.)
""",
    re.VERBOSE | re.DOTALL,
)

_IGNORED_COMMANDS = frozenset(
    [
        r"\mathrm",
        r"\mathbf",
        r"\mathit",
        r"\mathsf",
        r"\boldsymbol",
        r"\bm",
        r"\text",
        r"\textbf",
        r"\textit",
        r"\textrm",
        r"\mbox",
        r"\mathop",
        r"\operatorname",
        r"\hbox",
        r"\mathcal",
        r"\angle",
        r"\boxed",
        r"\fbox",
        r"\mathstrut",
        r"\small",
        r"\large",
        r"\Large",
        r"\tiny",
        r"\normalsize",
        r"\ensuremath",
        r"\emph",
        r"\underline",
        r"\displaylimits",
        r"\protect",
        r"\relax",
        r"\unit",
        r"\textnormal",
        r"\rm",
        r"\bf",
        r"\it",
        r"\triangle",
        r"\square",
        r"\mathnormal",
        r"\color",
        r"\mathbb",
    ]
)
_RENAMED = {
    r"\dfrac": r"\frac",
    r"\tfrac": r"\frac",
    r"\cfrac": r"\frac",
    r"\sfrac": r"\frac",
    r"\dbinom": r"\binom",
    r"\tbinom": r"\binom",
    r"\lbrace": r"\{",
    r"\rbrace": r"\}",
    r"\lbrack": "[",
    r"\rbrack": "]",
    r"\lparen": "(",
    r"\rparen": ")",
    r"\lvert": "|",
    r"\rvert": "|",
    r"\vert": "|",
    r"\lVert": r"\|",
    r"\rVert": r"\|",
    r"\Vert": r"\|",
    r"\infin": r"\infty",
    r"\varnothing": r"\emptyset",
    r"\degree": "°",
    r"\textdegree": "°",
    r"\ast": "*",
    r"\star": "*",
    r"\colon": ":",
    r"\ratio": ":",
    r"\vee": r"\lor",
    r"\wedge": r"\land",
    r"\dotsc": r"\ldots",
    r"\dots": r"\ldots",
    r"\cdots": r"\ldots",
    r"\dotsb": r"\ldots",
    r"\vdots": r"\ldots",
    r"\textasciicircum": "^",
    r"\div": "/",
    r"\slash": "/",
    r"\percent": "%",
    r"\textpercent": "%",
    r"\lang": r"\langle",
    r"\rang": r"\rangle",
    r"\backslash": r"\setminus",
    r"\R": "ℝ",
    r"\reals": "ℝ",
    r"\Z": "ℤ",
    r"\N": "ℕ",
    r"\Q": "ℚ",
    r"\C": "ℂ",
    r"\mathbbR": "ℝ",
    r"\textpi": r"\pi",
    r"\newline": r"\\",
    r"\cr": r"\\",
    r"\bmod": r"\mod",
    r"\euro": r"\$",
    r"\pounds": r"\$",
    r"\yen": r"\$",
    r"\rupee": r"\$",
    r"\textdollar": r"\$",
    r"\smallsetminus": r"\setminus",
    r"\union": r"\cup",
    r"\bigcup": r"\cup",
    r"\ne": r"\ne",
}
_BOARD = {"R": "ℝ", "Z": "ℤ", "Q": "ℚ", "N": "ℕ", "C": "ℂ"}
_ASCII_COMMANDS = {
    "pi": r"\pi",
    "sqrt": r"\sqrt",
    "infinity": r"\infty",
    "inf": r"\infty",
    "infty": r"\infty",
    "oo": r"\infty",
    "frac": r"\frac",
    "pm": r"\pm",
    "cup": r"\cup",
    "binom": r"\binom",
    "union": r"\cup",
    "cdot": r"\cdot",
    "times": r"\times",
}
_SPACES = r"(?:\s|~|\\[,;:! ])*"
_BEHIND_NUMBER = re.compile(rf"[\d}}]{_SPACES}\Z")
_NO_ARGUMENT = re.compile(rf"{_SPACES}(?:\Z|[),.;/\]])")
_JOINED = re.compile(r"([a-zA-Z]?)(sin|cos|tan|sec|csc|cot|log|ln|exp|sqrt|pi)([a-zA-Z]?)")
_ALPHABET = "abcdefghijklmnopqrstuvwxyz"
_VOWELS = frozenset("aeiouyAEIOUY")
_WORD_BASES = {"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10}


def tokenise(text: str, *, comma_groups: bool) -> list[Token]:
    """Split `text` into tokens, ending with an `end` token.

    `comma_groups`: a plain `1,234` outside brackets is one number, else a list of two. Raises TooBig, Unreadable.
    """
    tokens: list[Token] = []
    spaced = False
    depth = 0
    for match in _SCANNER.finditer(text):
        kind = match.lastgroup or "other"
        if kind == "body":
            kind = "text"
        if kind == "space":
            spaced = True
            continue
        raw = match.group()
        if len(tokens) > MAX_TOKENS:
            raise TooBig("more tokens than are read")
        if kind == "other" and raw in "([":
            depth += 1
        elif kind == "other" and raw in ")]":
            depth -= 1
        if kind == "comma":
            tokens.extend(_comma_tokens(raw, spaced, joined=comma_groups and depth <= 0))
        elif kind == "text":
            tokens.extend(_text_tokens(match, spaced))
        else:
            tokens.extend(_SIMPLE[kind](raw, spaced))
        spaced = False
    tokens.append(Token("end", "", spaced))
    return tokens


def _comma_tokens(raw: str, spaced: bool, *, joined: bool) -> list[Token]:
    if joined:
        return _number_tokens(raw.replace(",", ""), spaced)
    tokens: list[Token] = []
    for part in raw.split(","):
        tokens += [Token("num", part, spaced and not tokens), Token("op", ",")]
    return tokens[:-1]


def _grouped_number(raw: str, spaced: bool) -> list[Token]:
    return _number_tokens(re.sub(r"[^\d.]", "", raw), spaced)


def _number_tokens(raw: str, spaced: bool) -> list[Token]:
    if len(raw) > 4000:
        raise TooBig("a number of more than 4,000 digits")
    return [Token("num", raw, spaced)]


def _based_number(raw: str, spaced: bool) -> list[Token]:
    digits, _, base = raw.partition("_")
    inner = base.replace(r"\text", "").strip("{} ")
    if len(digits) > 4000:
        raise TooBig("a numeral of more than 4,000 digits")
    value = int(inner) if inner.isdigit() else _WORD_BASES.get(inner.lower(), 0)
    if not 2 <= value <= 36 or any(int(d, 36) >= value for d in digits if d != "."):
        raise Unreadable(f"no numeral: {raw[:40]}")
    return [Token("based", f"{digits}_{value}", spaced)]


def _text_tokens(match: re.Match[str], spaced: bool) -> list[Token]:
    command = match.group("text").partition("{")[0].strip().strip("\\").rstrip("*")
    body = match.group("body").strip()
    if (
        command in ("mathbb", "Bbb", "mathbf", "mathrm")
        and body in _BOARD
        and (command in ("mathbb", "Bbb") or body == "R")
    ):
        return [Token("sym", _BOARD[body], spaced)]
    if not body:
        return []
    if body in tables.FUNCTIONS and not _is_time(body, match):
        return [Token("fn", tables.FUNCTIONS[body], spaced)]
    if (
        command in ("mathbf", "boldsymbol", "bm", "mathcal", "mathfrak", "mathbb")
        and len(body) == 1
        and body.isalpha()
    ):
        symbol = body if command != "mathbf" else f"vec {body}"
        return [Token("sym", symbol, spaced)]
    if command.startswith("math") and len(body) == 1 and body in "eidxyCPAB":
        return [Token("sym", body, spaced)]
    if command.startswith("math") and (body.isdigit() or "\\" in body):
        return tokenise(body, comma_groups=True)[:-1]
    words = body.replace("\\", " ").split()
    if len(words) > 1 and words[-1] in ("and", "or"):
        return [Token("text", " ".join(words[:-1]), spaced), Token("text", words[-1], True)]
    return [Token("text", " ".join(words), spaced)]


def _is_time(body: str, match: re.Match[str]) -> bool:
    """Return whether `min` or `sec` is a unit: behind a number, and nothing follows that it could be a function of."""
    before, after = match.string[max(0, match.start() - 8) : match.start()], match.string[match.end() :][:8]
    return body in ("min", "sec") and bool(_BEHIND_NUMBER.search(before) and _NO_ARGUMENT.match(after))


def _command_tokens(raw: str, spaced: bool) -> list[Token]:
    raw = _RENAMED.get(raw, raw)
    name = raw[1:]
    if raw in (r"\{", r"\}", "\\\\"):
        return [Token("op", raw, spaced)]
    if raw in _IGNORED_COMMANDS:
        return []
    if raw in tables.RELATIONS:
        return [Token("rel", tables.RELATIONS[raw], spaced)]
    if raw == r"\$":
        return [Token("cur", "$", spaced)]
    if not raw.startswith("\\"):
        kind = "sym" if raw in "ℝℤℕℚℂ" else "op"
        return [Token(kind, raw, spaced)]
    if name in tables.GREEK:
        return [Token("sym", {"varepsilon": "epsilon", "varphi": "phi"}.get(name, name), spaced)]
    if name in tables.FUNCTIONS:
        return [Token("fn", tables.FUNCTIONS[name], spaced)]
    if name == "Pr":
        return [Token("sym", "P", spaced)]
    if name in ("top", "intercal", "dagger"):
        symbol = "dagger" if name == "dagger" else "T"
        return [Token("sym", symbol, spaced)]
    if name == "lor":
        return [Token("text", "or", spaced)]
    if name == "land":
        return [Token("text", "and", spaced)]
    return [Token("cmd", raw, spaced)]


def _escape_tokens(raw: str, spaced: bool) -> list[Token]:
    if raw == r"\$":
        return [Token("cur", "$", spaced)]
    if raw in (r"\%", r"\&", r"\_", r"\#"):
        return [Token("op", raw[1:], spaced)]
    if raw in (r"\(", r"\)", r"\[", r"\]", "\\\\") and raw != "\\\\":
        return []
    return [Token("op", raw, spaced)]


def _word_tokens(raw: str, spaced: bool) -> list[Token]:
    if not raw.isascii():
        return [Token("text", raw, spaced)]
    lower = raw.lower()
    if raw in _ASCII_COMMANDS or (len(raw) > 2 and lower in _ASCII_COMMANDS):
        return _command_tokens(_ASCII_COMMANDS[lower], spaced)
    if lower in tables.FUNCTIONS and lower not in ("min", "max") and len(raw) > 1:
        return [Token("fn", tables.FUNCTIONS[lower], spaced)]
    if len(raw) == 1:
        return [Token("sym", raw, spaced)]
    if (joined := _JOINED.fullmatch(raw)) is not None:
        return [t for part in joined.groups() if part for t in _word_tokens(part, spaced)]
    if is_word(raw):
        return [Token("text", raw, spaced)]
    return [Token("sym", letter, spaced and index == 0) for index, letter in enumerate(raw)]


def is_word(run: str) -> bool:
    """Return whether a run of letters is prose or a unit, not a product of variables."""
    lower = run.lower()
    if lower in tables.SHORT_WORDS or run in tables.PLAIN_UNITS or lower in tables.NUMBER_WORDS:
        return True
    if len(run) == 3 and run.istitle():
        return any(c in _VOWELS for c in run)
    if len(run) < 4 or run in _ALPHABET or run in _ALPHABET.upper():
        return False
    return any(c in _VOWELS for c in run) and not (len(run) == 4 and run.isupper())


def _other_tokens(raw: str, spaced: bool) -> list[Token]:
    if raw in tables.RELATIONS:
        return [Token("rel", tables.RELATIONS[raw], spaced)]
    if raw == "$" or raw in '"`':
        return []
    if raw == "**":
        return [Token("op", "^", spaced)]
    if raw.isalpha():
        return [Token("text", raw, spaced)]
    return [Token("op", raw, spaced)]


_SIMPLE = {
    "grouped": _grouped_number,
    "num": _number_tokens,
    "based": _based_number,
    "cmd": _command_tokens,
    "escape": _escape_tokens,
    "dots": lambda raw, spaced: [Token("cmd", r"\ldots", spaced)],
    "speed": lambda raw, spaced: [Token("text", raw, spaced)],
    "word": _word_tokens,
    "other": _other_tokens,
}
