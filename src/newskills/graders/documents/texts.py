# SPDX-License-Identifier: Apache-2.0
"""What is compared of a page's texts and formulas: letters and digits, and LaTeX without fonts and blanks.

After OmniDocBench (Ouyang et al. 2025, arXiv:2412.07626), in whose program pylatexenc reads formulas within texts.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache

_INLINE = re.compile(r"\$(.*?)\$|\\\((.*?)\\\)")
_NO_LETTER = re.compile(r"[^\w\u4e00-\u9fff]")
_BREAKS = ("\\t", "\\n", "\t", "\n", "/t", "/n")
_FONTS = (
    *("mathbf", "mathrm", "mathnormal", "mathit", "mathbb", "mathcal", "mathscr", "mathfrak", "mathsf", "mathtt"),
    *("textbf", "text", "boldmath", "boldsymbol", "operatorname", "bm", "symbfit", "mathbfcal", "symbf"),
    *("scriptscriptstyle", "notag", "setlength", "coloneqq", "space", "thickspace", "thinspace", "medspace"),
    *("nobreakspace", "negmedspace", "quad", "qquad", "enspace", "substackw"),
)
"""Without them a formula says the same; in the order in which the original takes them away."""
_LAYOUT = re.compile(r"\\(?:tag|hspace|begin|end)\{.*?\}|\\arraycolsep.*?\}")
_DISPLAY = re.compile(r"\\\[(.+?)(?<!\\)\\\]")
_STYLES = {
    "mathbf": ("MATHEMATICAL BOLD",),
    "mathit": ("MATHEMATICAL ITALIC",),
    "mathbb": ("MATHEMATICAL DOUBLE-STRUCK", "DOUBLE-STRUCK"),
    "mathcal": ("MATHEMATICAL SCRIPT", "SCRIPT"),
    "mathscr": ("MATHEMATICAL SCRIPT", "SCRIPT"),
    "mathfrak": ("MATHEMATICAL FRAKTUR", "BLACK-LETTER"),
    "mathsf": ("MATHEMATICAL SANS-SERIF",),
    "mathtt": ("MATHEMATICAL MONOSPACE",),
}
_ACCENTS = {"hat": "\u0302", "dot": "\u0307", "ddot": "\u0308", "check": "\u030c", "breve": "\u0306"} | {
    "acute": "\u0301",
    "grave": "\u0300",
    "tilde": "\u0303",
    "'": "\u0301",
    "`": "\u0300",
    '"': "\u0308",
    "~": "\u0303",
    "=": "\u0304",
}
_GREEK = (
    *("alpha", "beta", "gamma", "delta", "zeta", "eta", "theta", "iota", "kappa", "mu", "nu", "xi", "omicron"),
    *("pi", "rho", "sigma", "tau", "upsilon", "chi", "psi", "omega"),
)
_LETTERS = {
    **{name: unicodedata.lookup(f"GREEK SMALL LETTER {name.upper()}") for name in _GREEK},
    **{name.title(): unicodedata.lookup(f"GREEK CAPITAL LETTER {name.upper()}") for name in _GREEK},
    "lambda": "λ",
    "Lambda": "Λ",
    "phi": "ϕ",
    "Phi": "Φ",
    "epsilon": "ϵ",
    "Epsilon": "Ε",
    "varepsilon": "ε",
    "vartheta": "ϑ",
    "varpi": "ϖ",
    "varrho": "ϱ",
    "varsigma": "ς",
    "varphi": "φ",
    "varkappa": "ϰ",
    "oe": "œ",
    "OE": "Œ",
    "ae": "æ",
    "AE": "Æ",
    "aa": "å",
    "AA": "Å",
    "o": "ø",
    "O": "Ø",
    "ss": "ß",
    "L": "Ł",
    "l": "ł",
    "i": "ı",
    "j": "ȷ",
    "hbar": "ħ",
    "hslash": "ℏ",
    "ell": "ℓ",
    "aleph": "ℵ",
    "beth": "ℶ",
    **{
        name: name
        for name in (
            *("cos", "sin", "tan", "arccos", "arcsin", "arctan", "cosh", "sinh", "tanh", "ln", "log", "exp"),
            *("max", "min", "sup", "inf", "lim", "limsup", "liminf"),
        )
    },
}
_TOKEN = re.compile(r"\\(?:([A-Za-z]+)\*?|(.))\s*|(.)", re.DOTALL)
_ARGUMENT = re.compile(r"\s*(?:\{([^{}]*)\}|(\\[A-Za-z]+|.))", re.DOTALL)
_ENVIRONMENT = re.compile(r"\\(?:begin|end)\{[^}]*\}(?:\{[^}]*\})?")


def plain_text(text: str) -> str:
    """Return the letters, digits and `_` of a text, with its formulas as they are read."""
    text = _INLINE.sub(_read_inline, text)
    for mark in _BREAKS:
        text = text.replace(mark, "")
    return _NO_LETTER.sub("", text)


def plain_formula(latex: str) -> str:
    """Return a formula in lower case, without fonts, blanks, names of environments and its number."""
    if match := _DISPLAY.search(latex):
        latex = match[1].strip()
    latex = _LAYOUT.sub("", latex).strip(".")
    for font in _FONTS:
        latex = latex.replace(f"\\{font}", "")
    return latex.replace(" ", "").lower()


def _read_inline(match: re.Match[str]) -> str:
    content = match[1] if match[1] is not None else match[2]
    if not any(char in re.sub(r"\\([\\_&%^])", "", content) for char in "\\^_"):
        return match[0]
    return _letters_of_formula(_ENVIRONMENT.sub("", re.sub(r"\\([\\_&%^])", "", content)))


def _letters_of_formula(latex: str) -> str:
    """Return the letters of a formula: named ones, those of alphabets and accents; other commands have none."""
    shown, at = [], 0
    while match := _TOKEN.match(latex, at):
        name, at = match[1] or match[2] or "", match.end()
        if name in _STYLES or name in _ACCENTS:
            argument = _ARGUMENT.match(latex, at)
            if argument is None:
                inner = ""
            else:
                argument_text = argument[1] if argument[1] is not None else argument[2]
                inner = _letters_of_formula(argument_text)
            if argument is not None:
                at = argument.end()
            if name in _ACCENTS:
                letters = _accented_letter(inner, name)
            else:
                letters = "".join(_styled_letter(c, name) for c in inner)
            shown.append(letters)
        else:
            shown.append(_LETTERS.get(name, "") if name else match[3])
    return "".join(shown)


def _accented_letter(inner: str, name: str) -> str:
    if inner:
        return unicodedata.normalize("NFC", inner[:1] + _ACCENTS[name]) + inner[1:]
    return ""


@cache
def _styled_letter(char: str, style: str) -> str:
    """Return a letter or digit in another alphabet of Unicode; anything else is returned unchanged."""
    try:
        name = unicodedata.name(char).removeprefix("LATIN ").replace(" LETTER", "")
    except ValueError:
        return char
    for prefix in _STYLES[style]:
        try:
            return unicodedata.lookup(f"{prefix} {name}")
        except KeyError:
            continue
    if (char, style) == ("h", "mathit"):
        return "ℎ"
    return char
