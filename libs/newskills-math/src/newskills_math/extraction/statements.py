# SPDX-License-Identifier: Apache-2.0
"""What a formula says in the end: the last side of a calculation, the conclusion of a chain; equations stay whole."""

from __future__ import annotations

import re

_CONCLUSION = re.compile(
    r"\\(?:implies|Rightarrow|Longrightarrow|iff|Leftrightarrow|therefore)(?![a-zA-Z])|=>|⟹|⇒|∴"
)
_ALIGNED = re.compile(
    r"\\begin\{(?:align|aligned|gather|gathered|equation|split|eqnarray)\*?\}|\\end\{(?:align|aligned|gather|gathered|equation|split|eqnarray)\*?\}"
)
_MODULUS = re.compile(r"\\(?:pmod|bmod|mod)\s*(?:\{[^{}]*\}|\S+)")
_ABOUT = re.compile(r"\\(?:approx|simeq|doteq)(?![a-zA-Z])|≈")
_COMMAND = re.compile(r"\\(?:[dt]?frac|sqrt|cdot|times|left|right|div|pi|%|\$|,|binom|dbinom)(?![a-zA-Z])")
_LETTERS = re.compile(r"[A-Za-z]")
_SUM_OF_LETTERS = re.compile(r"\(?[a-zA-Z](?:_\{?\w\}?)?(?:\s*[+*-]?\s*[a-zA-Z](?:_\{?\w\}?)?){1,5}\)?")
_POWER = re.compile(r"[a-zA-Z]\^\{?\d\}?")
_MEASURED = (_SUM_OF_LETTERS, _POWER, re.compile(r"\d[^+-]*"))
"""Left sides that say of what a number is the value."""
_NAMED = re.compile(
    r"m\s?(?:\\angle|∠)|\\(?:int|iint|oint|lim|sum|prod|det|gcd|lcm|log|ln|sin|cos|tan|cot|sec|csc|arc\w+|binom|dbinom|text|mathrm|mathbf|mathbb"
    r"|operatorname|bold|boldsymbol|mathcal|angle|Pr|lfloor|lceil|overline|vec|left\||\||max|min|arg|lvert|deg|dim|boxed|sqrt|measuredangle)(?![a-zA-Z])"
    r"|\\[dt]?frac\s*\{\s*(?:d|\\partial|\\mathrm\{d\})"
    r"|[A-Z]{1,4}(?:\^\{?(?:-?\d|T)\}?)?\s*$|[A-Za-z]\s*\([^()]{2,}\)\s*$|[A-Za-z]\s*\(\d+\)\s*$|[PE]\s*[(\[]|[a-zA-Z]\s*\^\s*\{-1\}\s*\(|\||∠|[a-zA-Z]'+\s*\("
)
_IMAGINARY = re.compile(r"(?<=[\d+-])i(?![a-zA-Z])|(?<=\()i(?![a-zA-Z])")
_TIMES_X = re.compile(r"(?<=\d)\s*x\s*(?=\d)")
_END = " \t\n.,;:!?&"


def value_of(formula: str) -> str | None:
    """Return what an equation comes to: `2+3=5` → 5, `x = 2+3 = 5` → x = 5, `\\int x dx = F` → F, `x+y=2` → 2; `y =
    2x+1` and `x < 3` stay as they are.

    None for a formula of nothing but signs.
    """
    exact, about = _without_estimate(_last_conclusion(formula))
    if "," in exact and len(parts := _split_at_sign(exact, ",")) > 1 and all("=" in part for part in parts):
        return ", ".join(filter(None, map(value_of, parts))) or None
    sides = [side.strip() for side in _split_at_sign(exact, "=")]
    sides = [side for side in sides if side]
    if not sides:
        return None
    first, last = sides[0], sides[-1]
    if len(sides) == 1:
        return first + about
    if _is_calculation(first) or _NAMED.match(first):
        return last + about
    if any(p.fullmatch(first) for p in _MEASURED) and _LETTERS.search(_COMMAND.sub("", last)) is None:
        return last + about
    if len(sides) > 2:
        if len(first) > 2:
            return last + about
        return f"{first} = {last}{about}"
    return " = ".join(sides) + about


def is_calculated(formula: str) -> bool:
    """Return whether it is an equation that says what more than a name comes to."""
    sides = _split_at_sign(formula, "=")
    return len(sides) > 1 and len(sides[0].strip()) > 2 and bool(sides[-1].strip())


def _last_conclusion(formula: str) -> str:
    """Return the last line of several, behind the last arrow."""
    if _ALIGNED.search(formula):
        lines = [line for line in _ALIGNED.sub(" ", formula).split("\\\\") if line.strip(_END)]
        formula = lines[-1].replace("&", " ") if lines else ""
    congruent = formula.split("\\equiv")
    if len(congruent) > 2 or (len(congruent) == 2 and len(congruent[0].strip()) != 1):
        formula = _MODULUS.sub("", congruent[-1])
    parts = [part for part in _CONCLUSION.split(formula) if part.strip(_END)]
    if parts:
        return parts[-1].strip(_END).rstrip("\\")
    return ""


def _without_estimate(formula: str) -> tuple[str, str]:
    """Return what stands before the first ≈, and that sign with what follows, where both sides have something."""
    match = _ABOUT.search(formula)
    if match is None:
        return formula, ""
    before, behind = formula[: match.start()].strip(_END), formula[match.end() :].strip(_END)
    if not before or not behind:
        return before or behind, ""
    return before, rf" \approx {behind}"


def _split_at_sign(formula: str, sign: str) -> list[str]:
    """Return what stands between the signs outside of brackets; `<=` and its like are no equals signs."""
    sides, depth, start = [], 0, 0
    for at, char in enumerate(formula):
        if char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        elif char == sign and depth <= 0 and formula[at - 1 : at] not in ("<", ">", "!", ":"):
            sides.append(formula[start:at].rstrip("&"))
            start = at + 1
    return [*sides, formula[start:]]


def _is_calculation(side: str) -> bool:
    """Return whether it is made of numbers alone, so that only what it comes to counts."""
    return _LETTERS.search(_COMMAND.sub("", _TIMES_X.sub("*", _IMAGINARY.sub("", side)))) is None
