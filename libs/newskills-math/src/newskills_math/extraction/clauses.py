# SPDX-License-Identifier: Apache-2.0
"""The formula that a sentence states: of its main clause, what stands behind a verb or an equals sign, else the last.

English first, since most replies are; of other languages only their letters are known to be words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from newskills_math.extraction.masks import FORMULA, MaskedText, unmask
from newskills_math.extraction.statements import is_calculated, value_of
from newskills_math.syntax.tables import FUNCTIONS

ODD_ENDS = " \t\n,;:.!?*_`\"'|&~"
CONCLUDES = re.compile(
    r"[,;]\s(?:and |but )?(?:so|thus|hence|therefore|but)\b(?! (?:we are done|that))", re.IGNORECASE
)
PREDICATE = re.compile(
    r".*\b(?:is|are|be|becomes|called|named|on)\s+(?:therefore |thus |also |always |indeed )?(?:an?\s|the\s)?"
    r"([^\W\d_]+(?:[\s-][^\W\d_]+){0,2})[\W_]*$",
    re.IGNORECASE | re.DOTALL,
)
_REASONED = re.compile(r"\b(?:because|answer)\b", re.IGNORECASE)
_LEADING_CLAUSE = re.compile(
    r"^\W*(?:(?:so|thus|hence|therefore|and|but|now|then)\W+)?(?:since|because|as|when|whenever|if|for|given|after"
    r"|before|using|by|with|from|looking|in|on|of|at|during)\b[^,]*,",
    re.IGNORECASE,
)
_ALWAYS_BEHIND = re.compile(
    r"[,;:]?\s+(?:because|since|rather than|instead of|and not|but not|even though|although|while|whereas)\b"
    r"|[,;]\s+(?:not|as|or(?! rather)|where|with|which|when|who|while|if|attained|valid|about|approximately|roughly)\b"
    r"|,?\s(?:so |and )?we are done\b|\s-\s(?=[a-z]{2})",
    re.IGNORECASE,
)
_SOMETIMES_BEHIND = re.compile(
    r"\s+(?:if|when|whenever|where|as|which|that|so that|for (?:all|any|every|each|some)|valid|after|before|attained"
    r"|out of (?:the|a)|of the (?=\d)|at the end of|each|to [a-z]{3,})\b",
    re.IGNORECASE,
)
_STATING = re.compile(
    r"(?:\b(?:is|are|was|were|be|equals?|costs?|gives?|gets?|gains?|yields?|makes?|has|have|left|leaves?|leaving|becomes?|needs?"
    r"|pays?|paid|obtain|earns?|earned|made|sold|spent|saved|received|bought|collected|produced"
    r"|(?<!to )(?:travels?|walks?|drives?|make|sells?|spends?|saves?|receives?|weighs?|contains?|holds?|produces?)"
    r"|thus|hence|therefore|rather|(?:comes?|up|simplifies|reduces|amounts|equal|down|evaluates) to"
    r"|(?:expressed|written) as)|[:=])(?:\s+(?:us|exactly|only|just|about|approximately|roughly|therefore|thus|then"
    r"|the|a|an|of|simply|now|also))*[\s*$]*$",
    re.IGNORECASE,
)
_STATING_REACH = 80
_DENIED = re.compile(
    r"(?:\bnot|n't|\bnever|≠|\\neq?)\s+(?:equal(?:s|\sto)?\s+|be\s+|just\s+)?[$*]*$", re.IGNORECASE
)
_OPERATOR_FIRST = re.compile(r"(?:[=+*/](?!>)|x\s+[$\d]|\\times|\\cdot)")
_OPEN_JOINT = re.compile(r"\s(?:and|or|und|oder|et|ou)\s*$")
_STATED_FIRST = re.compile(
    r"\W*?(?:(?:therefore|so|thus|hence|then|finally)\W+)*((?:[A-Za-z]\s?=\s?)?[^\sA-Za-z](?:[^A-Za-z]*[^\sA-Za-z])?)"
    r"\s+(?:is|are)\s+(?:the|our|your|my)\b",
    re.IGNORECASE,
)
_APPOSITION = re.compile(r",\s+(?:the|a|an)\s", re.IGNORECASE)
_WORKED_OUT = re.compile(
    r"\b(?:minus|plus|times|divided|choose|multiplied|over|squared|cubed|of)\b[^,]*,"
    r" which (?:is|equals|gives|comes to)\b",
    re.IGNORECASE,
)
_COPULA = re.compile(r"\b(?:is|are|was|equals?|be|becomes|gives?|gets?|yields?|makes?)\b|=", re.IGNORECASE)
_ASIDE = re.compile(r"(?<=[\s\ue000-\uf7ff])\s*\((?=[^()]*(?:[A-Za-z]{2,}|[=+×*≈%]|i\.e|e\.g))[^()]{0,300}\)")
_GREEK_OR_FUNCTION = "|".join(
    sorted((*FUNCTIONS, "pi", "sqrt", "theta", "alpha", "beta", "infinity", "cup"), key=len, reverse=True)
)
_WORD = re.compile(
    rf"(?<![\\a-zA-Z])(?!(?:{_GREEK_OR_FUNCTION})(?![a-zA-Z]))[^\W\d_]{{2,}}(?:[-'][^\W\d_]+)*(?:\^\{{?[23]\}}?(?![\d^]))?|\d+-[^\W\d_]{{2,}}"
    r"|[^\x00-\x7f\ue000-\uf7ff]+"
)
_LONE = re.compile(r"(?<![\w\\^_({'=+*/<>≤≥-])[aAI](?![\w^_'(])(?!\s*[=<>≤≥+*/^-])")
_CONTENT = re.compile(rf"\d|{FORMULA}|\\[a-zA-Z]|[<>]")
_HALF_OF_DAY = re.compile(r"(\d{1,2}(?::\d{2})?)\s?([ap])\.?\s?m\b\.?", re.IGNORECASE)
_PERCENT = re.compile(r"(\d)\s?(?:percent|per cent|Prozent)\b", re.IGNORECASE)
_JOINT = re.compile(r"[,;\s]*\b(?:and|or|und|oder|et|ou)\b\s*", re.IGNORECASE)
_JOINED = re.compile(rf"([,;]?\s(?:and|or|und|oder|et|ou)\s|\s(?={FORMULA}\s*$))")
_CLOSED_BY = {"(": ")", "[": "]", "{": "}"}


class MaskedSpan(NamedTuple):
    """A stretch of masked text; `stated`: it is what something comes to, or stands behind a verb such as `is`."""

    text: str
    stated: bool


def formula_of(sentence: str, masked: MaskedText) -> str | None:
    whole = _without_asides(sentence)
    runs = list(_value_runs(main_clause(whole), masked.formulas))
    if not any(run.stated for run in runs):
        runs = [run for run in _value_runs(whole, masked.formulas) if run.stated] or runs
    if not runs:
        return None
    best = next((run for run in reversed(runs) if run.stated), runs[-1])
    pieces = _JOINED.split(best.text)
    if any(is_calculated(unmask(piece, masked.formulas)) for piece in pieces[::2]):
        pieces = pieces[-1:]
    values = [value_of(unmask(piece, masked.formulas)) or "" for piece in pieces[::2]]
    return "".join(value + joint for value, joint in zip(values, [*pieces[1::2], ""], strict=True)) or None


def _without_asides(sentence: str) -> str:
    """Remove what stands in brackets and the clause that goes before, as long as something is left."""
    if (first := _STATED_FIRST.match(sentence)) is not None:
        return first[1]
    for match in CONCLUDES.finditer(sentence):
        if _CONTENT.search(sentence, match.end()) and not _REASONED.search(sentence, 0, match.start()):
            sentence = sentence[match.end() :]
            break
    for pattern in (_ASIDE, _LEADING_CLAUSE):
        shorter = pattern.sub(" ", sentence)
        if _CONTENT.search(_WORD.sub(" ", shorter)) or (pattern is _LEADING_CLAUSE and PREDICATE.match(shorter)):
            sentence = shorter
    return sentence


def main_clause(sentence: str) -> str:
    """Remove what comes behind the statement, as long as something is left."""
    if (worked := _WORKED_OUT.search(sentence)) is not None:
        return sentence[worked.end() :]
    for match in _ALWAYS_BEHIND.finditer(sentence):
        if _CONTENT.search(sentence, 0, match.start()):
            sentence = sentence[: match.start()]
            break
    for match in _APPOSITION.finditer(sentence):
        copula = _COPULA.search(sentence, 0, match.start())
        if copula is not None and _CONTENT.search(sentence, copula.end(), match.start()):
            sentence = sentence[: match.start()]
            break
    for match in _SOMETIMES_BEHIND.finditer(sentence):
        if _CONTENT.search(sentence, 0, match.start()) and not _COPULA.search(sentence, match.end()):
            return sentence[: match.start()]
    return sentence


def _value_runs(clause: str, formulas: list[str]) -> Iterator[MaskedSpan]:
    """Yield the stretches between plain words that hold a number or a formula; those that only `and` parts are one
    list.
    """
    clause = _PERCENT.sub(r"\1%", _HALF_OF_DAY.sub(lambda m: f"{m[1]}{m[2].upper()}M", clause))
    begun, end = -1, 0
    places = [*_word_spans(clause), (len(clause), len(clause))]
    for start, stop in places:
        piece = clause[end:start]
        if _CONTENT.search(piece):
            if begun < 0:
                begun = end
        elif begun >= 0 and piece.strip(ODD_ENDS):
            yield from _value_run(clause, begun, end, formulas)
            begun = -1
        if begun >= 0 and _JOINT.fullmatch(clause[start:stop]) is None:
            yield from _value_run(clause, begun, start, formulas)
            begun = -1
        end = stop


def _value_run(clause: str, start: int, stop: int, formulas: list[str]) -> Iterator[MaskedSpan]:
    text = _OPEN_JOINT.sub("", clause[start:stop].strip(ODD_ENDS)).strip(ODD_ENDS).rstrip("/+-*")
    goes_on = _OPERATOR_FIRST.match(text) is not None
    if goes_on:
        text = text.rpartition("=")[2].strip(ODD_ENDS)
    text = _without_open_brackets(text)
    denied = _DENIED.search(clause, max(start - _STATING_REACH, 0), start) is not None
    if text and not denied and _CONTENT.search(text):
        whole = unmask(text, formulas)
        stated = (
            goes_on
            or is_calculated(whole)
            or _STATING.search(clause, max(start - _STATING_REACH, 0), start) is not None
        )
        yield MaskedSpan(text, stated)


def _word_spans(clause: str) -> Iterator[tuple[int, int]]:
    spans = [m.span() for m in _WORD.finditer(clause)] + [m.span() for m in _LONE.finditer(clause)]
    yield from sorted(span for span in spans if not re.fullmatch(r"[AP]M", clause[span[0] : span[1]]))


def _without_open_brackets(text: str) -> str:
    """Remove brackets whose other half is missing."""
    for opening, closing in _CLOSED_BY.items():
        surplus = text.count(opening) - text.count(closing)
        if surplus > 0 and closing not in text and not (opening in "[(" and set("])") & set(text)):
            text = text.replace(opening, " ")
        elif surplus < 0 and opening not in text and not (closing in "])" and set("[(") & set(text)):
            text = text.replace(closing, " ")
    return " ".join(text.split())
