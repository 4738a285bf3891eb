# SPDX-License-Identifier: Apache-2.0
"""Stems of English words (Porter 1980, "An algorithm for suffix stripping"), with the additions that NLTK makes."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

_IRREGULAR = {
    form: stem
    for stem, forms in {
        "sky": "sky skies",
        "die": "dying",
        "lie": "lying",
        "tie": "tying",
        "news": "news",
        "inning": "innings inning",
        "outing": "outings outing",
        "canning": "cannings canning",
        "howe": "howe",
        "proceed": "proceed",
        "exceed": "exceed",
        "succeed": "succeed",
    }.items()
    for form in forms.split()
}
_STEP_2 = (
    ("ational", "ate"), ("tional", "tion"), ("enci", "ence"), ("anci", "ance"), ("izer", "ize"), ("bli", "ble"),
    ("alli", "al"), ("entli", "ent"), ("eli", "e"), ("ousli", "ous"), ("ization", "ize"), ("ation", "ate"),
    ("ator", "ate"), ("alism", "al"), ("iveness", "ive"), ("fulness", "ful"), ("ousness", "ous"), ("aliti", "al"),
    ("iviti", "ive"), ("biliti", "ble"), ("fulli", "ful"),
)  # fmt: skip
_STEP_3 = (
    ("icate", "ic"), ("ative", ""), ("alize", "al"), ("iciti", "ic"), ("ical", "ic"), ("ful", ""), ("ness", ""),
)  # fmt: skip
_STEP_4 = (
    "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou", "ism", "ate", "iti",
    "ous", "ive", "ize",
)  # fmt: skip


def _is_consonant(word: str, at: int) -> bool:
    if word[at] in "aeiou":
        return False
    return word[at] != "y" or at == 0 or not _is_consonant(word, at - 1)


def _count_syllables(stem: str) -> int:
    """Count how often consonants follow vowels."""
    kinds = [_is_consonant(stem, at) for at in range(len(stem))]
    return sum(not before and after for before, after in pairwise(kinds))


def _has_vowel(stem: str) -> bool:
    return any(not _is_consonant(stem, at) for at in range(len(stem)))


def _ends_doubled(word: str) -> bool:
    return len(word) >= 2 and word[-1] == word[-2] and _is_consonant(word, len(word) - 1)


def _is_short(word: str) -> bool:
    """Return whether the word ends with consonant, vowel, consonant other than w, x, y; or is a vowel and a
    consonant."""
    end = len(word) - 1
    if len(word) == 2:
        return not _is_consonant(word, 0) and _is_consonant(word, 1)
    return (
        len(word) >= 3
        and _is_consonant(word, end - 2)
        and not _is_consonant(word, end - 1)
        and _is_consonant(word, end)
        and word[end] not in "wxy"
    )


def _strip_plural(word: str) -> str:
    if word.endswith("ies") and len(word) == 4:
        return word[:-1]
    for suffix, stem in (("sses", "ss"), ("ies", "i"), ("ss", "ss"), ("s", "")):
        if word.endswith(suffix):
            return word[: -len(suffix)] + stem
    return word


def _strip_past(word: str) -> str:
    if word.endswith("ied"):
        ending = "ie" if len(word) == 4 else "i"
        return word[:-3] + ending
    if word.endswith("eed"):
        if _count_syllables(word[:-3]) > 0:
            return word[:-1]
        return word
    for suffix in ("ed", "ing"):
        stem = word.removesuffix(suffix)
        if stem != word and _has_vowel(stem):
            break
    else:
        return word
    if stem.endswith(("at", "bl", "iz")):
        return stem + "e"
    if _ends_doubled(stem) and stem[-1] not in "lsz":
        return stem[:-1]
    if _count_syllables(stem) == 1 and _is_short(stem):
        return stem + "e"
    return stem


def _y_to_i(word: str) -> str:
    stem = word[:-1]
    if word.endswith("y") and len(stem) > 1 and _is_consonant(word, len(stem) - 1):
        return stem + "i"
    return word


def _long_suffix(word: str) -> str:
    if word.endswith("alli") and _count_syllables(word[:-4]) > 0:
        return _long_suffix(word[:-4] + "al")
    for suffix, other in _STEP_2:
        if word.endswith(suffix):
            stem = word[: -len(suffix)]
            if _count_syllables(stem) > 0:
                return stem + other
            return word
    if word.endswith("logi"):
        if _count_syllables(word[:-3]) > 0:
            return word[:-1]
        return word
    return word


def _shorter_suffix(word: str) -> str:
    for suffix, other in _STEP_3:
        if word.endswith(suffix):
            stem = word[: -len(suffix)]
            if _count_syllables(stem) > 0:
                return stem + other
            return word
    return word


def _last_suffix(word: str) -> str:
    for suffix in _STEP_4:
        if word.endswith(suffix):
            stem = word[: -len(suffix)]
            fits = _count_syllables(stem) > 1 and (suffix != "ion" or stem[-1:] in ("s", "t"))
            if fits:
                return stem
            return word
    return word


def _final_e(word: str) -> str:
    if not word.endswith("e"):
        return word
    stem = word[:-1]
    measure = _count_syllables(stem)
    if measure > 1 or (measure == 1 and not _is_short(stem)):
        return stem
    return word


@lru_cache(maxsize=1 << 16)
def stem_word(word: str) -> str:
    """Return the stem of a word, in small letters.

    >>> [stem(word) for word in ("flies", "relational", "hopping", "dying", "is")]
    ['fli', 'relat', 'hop', 'die', 'is']
    """
    word = word.lower()
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) <= 2:
        return word
    for step in (_strip_plural, _strip_past, _y_to_i, _long_suffix, _shorter_suffix, _last_suffix, _final_e):
        word = step(word)
    if word.endswith("ll") and _count_syllables(word[:-1]) > 1:
        return word[:-1]
    return word
