# SPDX-License-Identifier: Apache-2.0
"""Answers in words: names, days, yes and no, dates, option letters."""

from __future__ import annotations

import re

from newskills.graders.math.tables import NUMBER_WORDS, SYNONYMS

_COMMAND = re.compile(
    r"\\(?:text|mbox|textbf|textit|textrm|mathrm|mathbf|mathit|operatorname)\s*(?=\{)|\\[,;:! ]|[{}$]|\\(?=[a-zA-Z])"
)
_BLANK = re.compile(r"[^\w.:/+\-]+|(?<!\d)[.:/]|[.:/](?!\d)|(?<=\w)-(?=[^\W\d])")
_ARTICLES = frozenset({"a", "an", "the"})
_OPTION = re.compile(
    r"(?:\\(?:text|textbf|mathrm|mathbf|mbox)\s*\{\s*)?\(?\s*(?:\\(?:text|textbf|mathrm|mathbf|mbox)\s*\{\s*)?\(?([A-Ja-j])\)?\s*\}?\s*\)?\s*\}?[.:]?"
)
_OPTION_WITH_TEXT = re.compile(
    r"(?:(?:the\s+)?(?:correct\s+)?(?:option|choice|answer)\s*(?:is)?\s*:?\s*)?(?:\(([A-J])\)|\{?\(?([A-J])\s*[.):]\}?)\s*(.*)",
    re.DOTALL | re.IGNORECASE,
)
_NAMED_OPTION = re.compile(r"(?:option|choice)\s*\(?([A-J])\)?", re.IGNORECASE)
_LETTERS = re.compile(r"[^\W\d_]{2,}")


def words(text: str) -> str:
    """Lower-case words and numbers without punctuation, articles or LaTeX wrappers, synonyms made one."""
    plain = _BLANK.sub(" ", _COMMAND.sub(" ", text).casefold().replace("'", ""))
    kept = [str(NUMBER_WORDS.get(w, w)) for w in plain.split() if w not in _ARTICLES]
    joined = " ".join(kept)
    return SYNONYMS.get(joined, joined)


def same_words(gold: str, pred: str) -> bool:
    """The same words in the same order, blanks aside; a date may be written either way round."""
    a, b = words(gold), words(pred)
    if not any(c.isalpha() for c in a):
        return False
    if a == b or a.replace(" ", "") == b.replace(" ", ""):
        return True
    return any(c.isdigit() for c in a) and bool(_LETTERS.search(a)) and sorted(a.split()) == sorted(b.split())


def is_prose(text: str) -> bool:
    """Whether at least two words of three letters stand in it."""
    return sum(len(w) > 2 for w in _LETTERS.findall(_COMMAND.sub(" ", re.sub(r"\\[a-zA-Z]+", " ", text)))) >= 2


def option(text: str) -> str:
    """The letter of an answer that is nothing but an option letter, however bracketed; else ''."""
    if len(text) > 40:
        return ""
    match = _OPTION.fullmatch(text)
    return match[1] if match is not None else ""


def option_letter(text: str) -> str:
    """The option letter of `C`, `(C)`, `C) 12`, `Option C`; upper case; else ''."""
    text = text.strip()
    if letter := option(text):
        return letter.upper()
    if (match := _NAMED_OPTION.fullmatch(text.strip(" .*"))) is not None:
        return match[1].upper()
    if (match := _OPTION_WITH_TEXT.fullmatch(text)) is not None:
        return (match[1] or match[2]).upper()
    return ""
