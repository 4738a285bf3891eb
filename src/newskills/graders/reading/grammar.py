# SPDX-License-Identifier: Apache-2.0
"""Expressions for what stands before and behind an option's letter, made of the words of some languages."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from newskills.graders.reading.languages import (
    ENGLISH,
    PUNCTUATION,
    TOUCHING,
    LanguageWords,
    language_words,
    named_letters,
    pattern_of_words,
    split_words,
)

WORD_ENDS = r"(?![^\W\d_])"
_NATIVE_ORDERS = ("ΑΒΓΔΕ", "कखगघङ", "אבגדה", "甲乙丙丁戊", "กขคง", "ابجده", "কখগঘঙ", "অবডঢ")
_NATIVE = {mark: letter for order in _NATIVE_ORDERS for mark, letter in zip(order, "ABCDE", strict=False)}
_NATIVE |= {"أ": "A", "إ": "A"}
_CYRILLIC_B = "\u0411"
_LIKE_C = {"\u0421": "C", "\u0441": "C"}
"""The Cyrillic letter that looks like C is none of the first of its alphabet."""
_NOUN = "option|choice|letter"
_DRESS = r"[\s*_\]】\"'“”„‘’«»`(（\[【{$<>|#~「『《〈]|\\[(\[]|\\[a-zA-Z]{2,14}|\\boldsymbol"
_OPTION = rf"[\"“(*\[]{{0,3}}(?-i:[A-Z])(?![{TOUCHING}])"
_REASONS = "because|since|as|is|for|due|which|with|and|or|while|but|given|that|weil|da|car|porque|perché|parce|ya"
_CLOSE = r"[\s)\]*_\"'`}$»”’】）>」』》]{0,12}"
_OPEN = r"[\s(\[*_\"'`{$«“‘【（<「『《]{0,12}"
_STOP = rf"\Z|[.,;:!?\n(（\[【。．，、；：！？{PUNCTUATION})）=→>\\}}*\"]|[-–—](?=\s)"


class Grammar(NamedTuple):
    """What of some languages stands around a letter.

    token      one thing before it: `firm` (is, a colon), `dress`, `noun` (option), `fill`
    mark       the letter itself: `latin` or `native`
    letters    native letters → A, B, …
    single     letters that are words, too
    goes_on    a word behind a letter that does not give the reason
    refuted    what denies the letter before it
    other      a connector and one more letter
    ends       what ends a statement behind a letter; English needs none
    but        a word that takes back what stands before it
    """

    token: re.Pattern[str]
    mark: re.Pattern[str]
    letters: dict[str, str]
    single: frozenset[str]
    goes_on: re.Pattern[str]
    refuted: re.Pattern[str] | None
    other: re.Pattern[str]
    ends: re.Pattern[str] | None
    but: re.Pattern[str]


def words_of(codes: tuple[str, ...], *fields: str) -> list[str]:
    """Return the words of these fields in these languages."""
    forms: list[str] = []
    for code in codes:
        language: LanguageWords = language_words()[code]
        for field in fields:
            forms += split_words(getattr(language, field))
    return forms


@cache
def make_grammar(codes: tuple[str, ...]) -> Grammar:
    """Return the grammar of these languages and of English, whose words models mix in."""
    every = codes if ENGLISH in codes else (*codes, ENGLISH)
    foreign = tuple(code for code in codes if code != ENGLISH)
    firm = pattern_of_words(_longer_words(words_of(every, "is_")))
    fill = pattern_of_words(_longer_words([*words_of(every, "fill"), *words_of(foreign, "option")]))
    article = rf"(?-i:[aeou])(?=\s{{1,3}}(?:{_OPTION}|{fill}))"
    token = (
        rf"(?P<firm>[:：=→ঃ፦፡՝៖]|-+>|[-–—]+(?=\s)|{firm})|(?P<dress>{_DRESS})"
        rf"|(?P<noun>(?:{_NOUN}){WORD_ENDS})|(?P<fill>{fill}|{article})"
    )
    letters = {**_NATIVE, **named_letters(codes)}
    if _CYRILLIC_B in letters:
        letters |= _LIKE_C
    names = "|".join(re.escape(name) for name in sorted(letters, key=len, reverse=True))
    suffixes = pattern_of_words(words_of(codes, "suffix"))
    mark = rf"(?P<latin>[A-Za-z])(?![{TOUCHING}+#]|[-'’](?!{suffixes})[A-Za-z])|(?P<native>{names})"
    reasons = pattern_of_words([*words_of(foreign, "because", "is_", "right", "or_"), *words_of(codes, "answer")])
    connectors = pattern_of_words(words_of(every, "or_"))
    other = (
        rf"(?:{_CLOSE}(?:[,/&+、،|]|(?P<or>{connectors})){_OPEN}|[ \t]{{1,4}}|[)\]}}】）][ \t]{{0,4}}[(\[{{【（])"
        rf"(?P<letter>(?-i:[A-Z]))(?![{TOUCHING}'’+#-])"
    )
    ends = _ending_pattern(foreign) if len(foreign) == len(codes) else None
    return Grammar(
        token=re.compile(token, re.IGNORECASE),
        mark=re.compile(mark),
        letters=letters,
        single=frozenset(words_of(codes, "single")),
        goes_on=re.compile(
            rf"[ \t]+(?!(?:{_REASONS}){WORD_ENDS}|{reasons}|(?-i:[A-HJ-Z])(?![{TOUCHING}'’]))[^\W\d_]",
            re.IGNORECASE,
        ),
        refuted=_refutation_pattern(foreign),
        other=re.compile(other, re.IGNORECASE),
        ends=ends,
        but=re.compile(pattern_of_words(words_of(every, "but")), re.IGNORECASE),
    )


def _longer_words(words: list[str]) -> list[str]:
    """Leave out words such as "a" and "e", which are options as well: articles are known by what follows."""
    return [word for word in words if len(word) > 1 or not word.isascii()]


def _refutation_pattern(codes: tuple[str, ...]) -> re.Pattern[str] | None:
    """Make a pattern for "B ist nicht richtig", "B不对", but not "B不是A": that one affirms B."""
    if not codes:
        return None
    between = pattern_of_words(words_of(codes, "is_", "fill", "option"))
    denial = pattern_of_words(words_of(codes, "no"))
    return re.compile(
        rf"{_CLOSE}(?:{between}\s{{0,2}}){{0,3}}{denial}(?!(?:\s|{between}){{0,4}}{_OPEN}(?-i:[A-Z])(?![{TOUCHING}]))",
        re.IGNORECASE,
    )


def _ending_pattern(codes: tuple[str, ...]) -> re.Pattern[str]:
    behind = pattern_of_words(words_of(codes, "is_", "right", "fill", "option"))
    reason = pattern_of_words(words_of(codes, "because"))
    suffix = pattern_of_words(words_of(codes, "suffix"))
    return re.compile(
        rf"(?:[-'’:]?{suffix})?{_CLOSE}(?:{behind}\s{{0,2}}){{0,4}}(?:{_STOP}|{reason})", re.IGNORECASE
    )


CLOSE, OPEN, STOP = _CLOSE, _OPEN, _STOP
