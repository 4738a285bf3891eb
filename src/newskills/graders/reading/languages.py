# SPDX-License-Identifier: Apache-2.0
"""What replies in some ninety languages conclude with: the words of `languages.json`, compiled language by language.

Fields of a language, each a list of small-letter words between bars:

answer    words for "answer", behind which a letter stands ("Antwort: B")
option    words for "option" and "letter"
is        what stands between the two, or behind the letter ("lautet", "です")
fill      other words there ("the correct", "final")
right     what says of a letter that it is the answer ("is correct", "是对的")
choose    "I choose"; so: "therefore"
no, or, but, if
single    letters that are words of their own ("a", "y")
suffix    endings behind an apostrophe or a hyphen ("B'dir")
letters   names of the first letters, in order; several orders with blanks between them
because   what gives the reason
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from functools import cache
from importlib.resources import files
from string import ascii_uppercase
from typing import NamedTuple

import msgspec
from msgspec import Struct

ENGLISH = "en"
TOUCHING = "A-Za-z0-9\u00aa-\u02af\u0300-\u0556\u0560-\u0588\u10a0-\u10ff\u1ab0-\u1fff\u20d0-\u20ff\ufe20-\ufe2f"
"""Characters of alphabets that part words by blanks, combining marks and digits: beside them a Latin letter belongs to
a word. Beside others (B입니다, 选B) it may stand alone."""
_NO_BLANKS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
PUNCTUATION = "\u055a-\u055f\u0589\u060c\u061b\u061f\u0964\u0965\u06d4\u104a\u104b\u1361-\u1368\u17d4-\u17d6"
_PART_OF_A_WORD = rf"[^\x00-\x7f\s{PUNCTUATION}\u00ab\u00bb\u2000-\u206f\u3000-\u303f\uff00-\uff20]"
_UNGLUED = re.compile(rf"[{_NO_BLANKS}]\Z")
_LATIN = re.compile(r"[a-z\u00aa-\u024f\u1e00-\u1eff'’.-]*[a-z\u00aa-\u024f\u1e00-\u1eff]\Z")
_NO_LETTERS = {code: " " for code in range(128) if not chr(code).isalpha()}
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]")
"""Marks of direction and joiners, which show nothing."""


class LanguageWords(Struct, frozen=True, forbid_unknown_fields=True):
    """The words of one language, by the fields above."""

    answer: str = ""
    option: str = ""
    is_: str = msgspec.field(default="", name="is")
    fill: str = ""
    right: str = ""
    choose: str = ""
    so: str = ""
    no: str = ""
    or_: str = msgspec.field(default="", name="or")
    but: str = ""
    if_: str = msgspec.field(default="", name="if")
    single: str = ""
    suffix: str = ""
    letters: str = ""
    because: str = ""


class WordIndex(NamedTuple):
    """Words by what a text must have for them to be in it.

    plain    the most telling ASCII word → what it is part of; `keys` are these words
    others   a character beyond ASCII → what it is part of
    """

    keys: frozenset[str]
    plain: dict[str, list[str]]
    others: dict[str, list[str]]


@cache
def language_words() -> dict[str, LanguageWords]:
    """Return the words of every language, by its code."""
    raw = (files("newskills.graders.reading") / "languages.json").read_bytes()
    return msgspec.json.decode(raw, type=dict[str, LanguageWords])


@cache
def labels_by_language() -> dict[str, tuple[str, ...]]:
    """Return every word for "answer" with the codes of the languages that have it."""
    codes: dict[str, list[str]] = defaultdict(list)
    for code, language in language_words().items():
        for label in split_words(language.answer):
            codes[label].append(code)
    return {label: tuple(entries) for label, entries in codes.items()}


@cache
def label_index() -> WordIndex:
    """Return the labels as `labels_in` looks for them."""
    return _index_words(list(labels_by_language()))


@cache
def _conclusion_index() -> tuple[WordIndex, dict[str, tuple[str, ...]]]:
    """Index the words that conclude, as labels are indexed, with their languages.

    English has sentences of its own, and what it shares with another language does not tell that one.
    """
    codes: dict[str, list[str]] = defaultdict(list)
    english = _conclusive_words(language_words()[ENGLISH])
    for code, language in language_words().items():
        for word in _conclusive_words(language) - english:
            codes[word].append(code)
    return _index_words(list(codes)), {word: tuple(entries) for word, entries in codes.items()}


def _conclusive_words(language: LanguageWords) -> set[str]:
    return {*split_words(language.right), *split_words(language.choose), *split_words(language.so)}


def _index_words(words: list[str]) -> WordIndex:
    plain: dict[str, list[str]] = defaultdict(list)
    others: dict[str, list[str]] = defaultdict(list)
    for word in words:
        if word.isascii():
            parts = word.translate(_NO_LETTERS).split()
            plain[max(parts, key=lambda part: (part != "option", len(part)))].append(word)
        else:
            others[[character for character in word if not character.isascii()][-1]].append(word)
    return WordIndex(frozenset(plain), plain, others)


def present_words(lower: str, index: WordIndex) -> list[str]:
    """Return the words of `index` that may be in a text of small letters."""
    if lower.isascii():
        plain = lower
    else:
        plain = lower.encode("ascii", "replace").decode("ascii")
    entries: list[str] = []
    for key in index.keys.intersection(plain.translate(_NO_LETTERS).split()):
        entries += index.plain[key]
    if plain is not lower:
        for character, words in index.others.items():
            if character in lower:
                entries += words
    return entries


def concluding_languages(lower: str) -> list[str]:
    """Return the codes of the languages, English aside, of which a word that concludes is in the text."""
    index, codes = _conclusion_index()
    entries = {code for word in present_words(lower, index) if word in lower for code in codes[word]}
    return sorted(entries)


def split_words(words: str) -> list[str]:
    """Return the words of a field."""
    return [word for word in words.split("|") if word]


def plain_text(text: str) -> str:
    """Return the text composed (NFC) and without marks that show nothing."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", _INVISIBLE.sub("", text))


def pattern_of_words(words: list[str]) -> str:
    """Return an expression for one of the words, whole ones where blanks part them; of none, one without match."""
    whole, glued = [], []
    for word in sorted(set(words), key=len, reverse=True):
        escaped = re.escape(word).replace(r"\ ", r"\s")
        if _UNGLUED.search(word) or (not word[-1].isalnum() and not unicodedata.combining(word[-1])):
            glued.append(escaped)
        elif _LATIN.match(word):
            whole.append(rf"(?<![^\W\d_]){escaped}(?![^\W\d_]|[\u0300-\u036f])")
        else:
            whole.append(rf"(?<!{_PART_OF_A_WORD}){escaped}(?!{_PART_OF_A_WORD})")
    if words:
        return "(?:" + "|".join([*whole, *glued]) + ")"
    return "(?!)"


@cache
def named_letters(codes: tuple[str, ...]) -> dict[str, str]:
    """Return the letters A, B, … by their names in these languages."""
    entries: dict[str, str] = {}
    for code in codes:
        for order in language_words()[code].letters.split():
            for name, letter in zip(split_words(order), ascii_uppercase, strict=False):
                entries |= {name: letter, name.lower(): letter}
    return entries
