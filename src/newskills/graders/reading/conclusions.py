# SPDX-License-Identifier: Apache-2.0
"""Sentences of many languages that conclude with an option: "只有选项D是对的", "Daher wähle ich B.", "B सही है".

Each letter that stands alone near the end is looked at, with the words before and behind it in its sentence.
"""

from __future__ import annotations

import re
from functools import cache
from string import ascii_uppercase
from typing import NamedTuple

from newskills.graders.reading.grammar import CLOSE, OPEN, STOP, Grammar, make_grammar, words_of
from newskills.graders.reading.languages import PUNCTUATION, TOUCHING, concluding_languages, pattern_of_words
from newskills.graders.reading.letters import (
    SEVERAL,
    TAIL,
    folded_case,
    is_touched,
    letter_of_native,
    letters_joined,
)

_MANY = 40
"""Letters at the end of a reply that are looked at."""
_BEFORE, _BEHIND = 80, 60
"""Characters around a letter that are read."""
_SENTENCE = re.compile(
    "[.!?。！？\u0589\u061f\u0964\u0965\u06d4\u104b\u1362\u17d4;；]" r"(?=\s|[^\x00-\x7f]|\Z)|\n"
)
_CLAUSE = re.compile(rf"[.,;:!?…、，。：；！？{PUNCTUATION}\n]")
_ANOTHER = re.compile(rf"(?<![{TOUCHING}])[A-Z](?![{TOUCHING}])")
_NOTHING_BETWEEN = re.compile(r"[\W\d_]*\Z")


class Sentences(NamedTuple):
    """What a language says around the letter that it concludes with.

    leads     what stands before: `choose`, `so`, `named` (the correct option is)
    affirmed  what says behind the letter that it is right, or chosen
    denied    a denial or a condition; `refused` a denial at the end, `supposed` a condition
    joined    a letter and a connector before the letter
    """

    grammar: Grammar
    leads: re.Pattern[str]
    affirmed: re.Pattern[str]
    denied: re.Pattern[str]
    refused: re.Pattern[str]
    supposed: re.Pattern[str]
    joined: re.Pattern[str]
    letter: re.Pattern[str]
    ends: re.Pattern[str]


class _Conclusion(NamedTuple):
    letter: str
    start: int
    end: int
    firm: bool


@cache
def _sentence_patterns(code: str) -> Sentences:
    codes = (code,)
    words = make_grammar(codes)
    option = pattern_of_words(words_of(codes, "option"))
    filling = pattern_of_words(words_of(codes, "option", "fill", "is_"))
    right = pattern_of_words(words_of(codes, "right"))
    choose = pattern_of_words(words_of(codes, "choose"))
    so = pattern_of_words(words_of(codes, "so"))
    answer = pattern_of_words(words_of(codes, "answer"))
    connector = pattern_of_words(words_of(codes, "or_"))
    glue = rf"(?:[\s,:，、：*_\"'“”‘’«»`(（\[【$「]|{filling}|[a-z](?=\s))"
    verb = rf"(?!{option}){pattern_of_words(words_of(codes, 'is_'))}"
    named = rf"(?:(?:{filling}|{right})\s{{0,2}}){{1,6}}(?:[:：]|{verb})"
    native = "|".join(sorted(words.letters, key=len, reverse=True))
    return Sentences(
        grammar=words,
        leads=re.compile(
            rf"(?:(?P<choose>(?!{option}){choose})|(?P<so>{so})|(?P<named>{named}))(?:{glue}|{choose}){{0,12}}\Z",
            re.IGNORECASE,
        ),
        affirmed=re.compile(
            rf"{CLOSE}(?:{filling}\s{{0,2}}){{0,6}}(?:(?P<right>{right}|{answer})|(?P<choose>{choose}))",
            re.IGNORECASE,
        ),
        denied=re.compile(pattern_of_words(words_of(codes, "no", "if_")), re.IGNORECASE),
        refused=re.compile(rf"{pattern_of_words(words_of(codes, 'no'))}\s{{0,2}}\Z", re.IGNORECASE),
        supposed=re.compile(pattern_of_words(words_of(codes, "if_")), re.IGNORECASE),
        joined=re.compile(
            rf"(?-i:(?<![{TOUCHING}])[A-Z]){CLOSE}(?:[,、，/&]|{connector}){OPEN}{option}?\s?\Z", re.IGNORECASE
        ),
        letter=re.compile(
            rf"(?<![{TOUCHING}'’\\])[A-Z](?![{TOUCHING}+#])"
            rf"|(?:(?<=[(（「【])|(?<=\s)|(?<=[^\x00-\x7f]))(?:{native})(?![^\W\d_])"
        ),
        ends=words.ends or re.compile(STOP),
    )


def letter_concluded(text: str, count: int) -> str | None:
    """Return the letter that the last sentence that chooses or concludes names, else the one said to be right.

    SEVERAL where the reply names more than one side by side, None where it names none.
    """
    tail = text[-TAIL:]
    conclusions: list[_Conclusion] = []
    codes = tuple(concluding_languages(folded_case(tail)))
    for code in codes:
        conclusions += _find_conclusions(tail, _sentence_patterns(code), count, _denial_pattern(codes))
    conclusions.sort(key=lambda conclusion: conclusion.end)
    firm = [conclusion for conclusion in conclusions if conclusion.firm]
    if firm:
        return _last_letter(firm, tail)
    letters = {conclusion.letter for conclusion in conclusions}
    if not letters:
        return None
    if len(letters) == 1:
        return letters.pop()
    return SEVERAL


def _last_letter(conclusions: list[_Conclusion], tail: str) -> str:
    """Return the last letter; SEVERAL where another one was named right before it."""
    last = conclusions[-1]
    for earlier in conclusions[:-1]:
        if earlier.letter != last.letter and _NOTHING_BETWEEN.match(tail[earlier.end : last.start]):
            return SEVERAL
    return last.letter


@cache
def _denial_pattern(codes: tuple[str, ...]) -> re.Pattern[str]:
    """Return what denies in one of the languages: those that are near share words, but not these."""
    return re.compile(pattern_of_words(words_of(codes, "no")), re.IGNORECASE)


def _find_conclusions(tail: str, sentences: Sentences, count: int, denials: re.Pattern[str]) -> list[_Conclusion]:
    conclusions: list[_Conclusion] = []
    for match in list(sentences.letter.finditer(tail))[-_MANY:]:
        if match[0].isascii():
            letter = match[0]
        else:
            letter = letter_of_native(match[0], tail, sentences.grammar)
        if not letter or letter not in ascii_uppercase[:count]:
            continue
        conclusion = _read_conclusion(tail, match, letter, sentences, count)
        if conclusion is not None and _taken_back(tail, conclusion.end, denials):
            continue
        if conclusion is not None:
            conclusions.append(conclusion)
    return conclusions


def _read_conclusion(
    tail: str, match: re.Match[str], letter: str, sentences: Sentences, count: int
) -> _Conclusion | None:
    before = _SENTENCE.split(tail[max(match.start() - _BEFORE, 0) : match.start()])[-1]
    clause = _CLAUSE.split(before)[-1]
    native = not match[0].isascii()
    if native and is_touched(tail, match.end()):
        return None
    lead = sentences.leads.search(before)
    beginning = lead[0] if lead else clause
    affirmed = sentences.affirmed.match(tail, match.end(), match.end() + _BEHIND)
    if sentences.denied.search(beginning):
        return None
    if lead is None and affirmed is None:
        return None
    if native and not (lead or before[-1:] in ("(", "（", "「", "【")):
        return None
    if sentences.grammar.refuted is not None and sentences.grammar.refuted.match(tail, match.end()):
        return None
    if affirmed is None and not sentences.ends.match(tail, match.end()):
        return None
    if sentences.supposed.search(before) or (lead and sentences.refused.search(before[: lead.start()])):
        return None
    start = match.start() - len(beginning)
    end = affirmed.end() if affirmed else match.end()
    joined = letters_joined(tail, match.end(), count, sentences.grammar) - {letter}
    if joined or (affirmed and sentences.joined.search(before)):
        return _Conclusion(SEVERAL, start, end, firm=True)
    firm = lead is not None or (affirmed is not None and affirmed["choose"] is not None)
    return _Conclusion(letter, start, end, firm)


def _taken_back(tail: str, end: int, denials: re.Pattern[str]) -> bool:
    """Return whether a denial follows in the clause: "B doğru değil", "B सही नहीं है"; not "B not A"."""
    behind = _CLAUSE.split(tail[end : end + _BEHIND])[0]
    denial = denials.search(behind)
    return denial is not None and not _ANOTHER.search(behind, denial.end())
