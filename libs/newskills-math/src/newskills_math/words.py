# SPDX-License-Identifier: Apache-2.0
"""Answers in words: names, days, yes and no, dates, option letters."""

from __future__ import annotations

import re

from newskills_math.phrases import same_phrase
from newskills_math.syntax.tables import NUMBER_WORDS, SYNONYMS

_COMMAND = re.compile(
    r"\\(?:text|mbox|textbf|textit|textrm|mathrm|mathbf|mathit|operatorname)\s*(?=\{)|\\[,;:! ]|[{}$]|\\(?=[a-zA-Z])"
)
_BLANK = re.compile(r"[^\w.:/+\-|<>]+|(?<!\d)[:/]|[.:/](?!\d)|(?<=\w)-(?=[^\W\d])")
_BAR = re.compile(r"\\mid(?![a-zA-Z])")
_SIGN = re.compile(r"[|<>]")
_BARE_POINT = re.compile(r"(?<!\d)\.(?=\d)")
_ARTICLE = re.compile(r"(?<![\w'|])(?:(?i:an|the)(?![\w'|])|a(?=\s+(?:\d|[^\W\d_]{2}))|(?<!\s)A(?=\s+[a-z]{2}))")
"""`A` is one where the text begins with it, and `a` before a word; elsewhere they are names: `Type A`, `P(A|B)`."""
_OPTION = re.compile(
    r"(?:\\(?:text|textbf|mathrm|mathbf|mbox)\s*\{\s*)?\(?\s*(?:\\(?:text|textbf|mathrm|mathbf|mbox)\s*\{\s*)?\(?([A-Ja-j])\)?\s*\}?\s*\)?\s*\}?[.:]?"
)
_OPTION_WITH_TEXT = re.compile(r"(?:\(([A-J])\)|\(?([A-J])\s*[.):])\s*(.*)", re.DOTALL)
_OPTION_LEAD = re.compile(
    r"(?:the\s+)?(?:correct\s+)?(?:final\s+)?(?:option|choice|answer)\s*(?:is)?\s*:?\s*\(?([A-J])\)?[.:]?",
    re.IGNORECASE,
)
_OPTION_DRESS = re.compile(
    r"\\(?:text|textbf|textrm|mathrm|mathbf|mbox|boxed)\s*\{|\\[,;:! ]|\\q?quad(?![a-zA-Z])|[{}~$*]"
)
_SECOND_OPTION = re.compile(
    r"\([A-J]\)|(?<![A-Za-z(\\])[A-J][).:/](?!\d)|\b(?:not|maybe|perhaps|wrong|incorrect|either|neither)\b"
    r"|^[,/]?\s*(?:or|and|&|but)\b"
)
_NAMED_OPTION = re.compile(r"(?:option|choice)\s*\(?([A-J])\)?", re.IGNORECASE)
_JOINED_LETTERS = re.compile(r"[A-Z]{2,10}")
_STEP = r"-+>?|→|\\(?:long)?(?:to|rightarrow|Rightarrow|implies)(?![a-zA-Z])"
_LISTED_LETTERS = re.compile(
    rf"\s*\(?[A-Z]\)?(?:\s*(?:(?:[,;、&]|and)+\s*(?:and\s*)?|{_STEP})\s*\(?[A-Z]\)?){{1,9}}\s*"
)
_ROMAN = frozenset("IVX")
_STEPS = re.compile(_STEP)
_ORDINAL_WORDS = (
    "first 1st second 2nd third 3rd fourth 4th fifth 5th sixth 6th seventh 7th eighth 8th ninth 9th tenth 10th"
)
_ORDINALS = dict(zip(_ORDINAL_WORDS.split()[::2], _ORDINAL_WORDS.split()[1::2], strict=True))
_JOINT = re.compile(r"(?<!\d) | (?!\d)")
_LETTERS = re.compile(r"[^\W\d_]{2,}")


def plain_words(text: str) -> str:
    """Return lower-case words and numbers without punctuation, articles or LaTeX wrappers, synonyms made one."""
    plain = _ARTICLE.sub(" ", _COMMAND.sub(" ", _BAR.sub("|", text)).strip())
    plain = _BARE_POINT.sub("0.", plain.casefold().replace("'", ""))
    plain = _BLANK.sub(" ", _SIGN.sub(r" \g<0> ", plain))
    joined = " ".join(_ORDINALS.get(w) or str(NUMBER_WORDS.get(w, w)) for w in plain.split())
    return SYNONYMS.get(joined, joined)


def same_words(gold: str, pred: str) -> bool:
    """Return whether both are the same words in the same order, blanks aside; a date may be written either way
    round."""
    a, b = plain_words(gold), plain_words(pred)
    if same_letters(gold, pred):
        return True
    if not any(c.isalpha() for c in a) and a != "∅":
        return False
    if a == b or _JOINT.sub("", a) == _JOINT.sub("", b):
        return True
    one_word = sum(w.isalpha() for w in a.split()) == 1 and bool(_LETTERS.search(a))
    if one_word and any(c.isdigit() for c in a) and sorted(a.split()) == sorted(b.split()):
        return True
    return same_phrase(a, b)


def is_prose(text: str) -> bool:
    """Return whether at least two words of three letters stand in it."""
    return sum(len(w) > 2 for w in _LETTERS.findall(_COMMAND.sub(" ", re.sub(r"\\[a-zA-Z]+", " ", text)))) >= 2


def bare_option_letter(text: str) -> str:
    """Return the letter of an answer that is nothing but an option letter, however bracketed; else ''."""
    if len(text) > 40:
        return ""
    match = _OPTION.fullmatch(text)
    if match is not None:
        return match[1]
    return ""


def same_letters(gold: str, pred: str) -> bool:
    """Compare several letters, run together on one side and listed on the other: `AC` and `A, C`, `BDA` and `B → D →
    A`.

    Their order counts, except of options that are run together in the order of the alphabet.
    """
    for joined, listed in ((gold, pred), (pred, gold)):
        if _JOINED_LETTERS.fullmatch(joined) and (
            parts := _LISTED_LETTERS.fullmatch(_OPTION_DRESS.sub(" ", listed))
        ):
            letters = re.findall(r"[A-Z]", _STEPS.sub(" ", parts[0]))
            if "".join(letters) == joined:
                return not set(letters) <= _ROMAN
            are_options = sorted(joined) == list(joined) and _STEPS.search(parts[0]) is None
            return are_options and len(set(joined)) == len(joined) == len(letters) and set(joined) == set(letters)
    return False


def option_letter(text: str) -> str:
    """Return the option letter of `C`, `(C)`, `C) 12`, `Option C`; upper case; '' also where another option is named
    too."""
    text = text.strip()
    if letter := bare_option_letter(text):
        return letter.upper()
    if (match := _NAMED_OPTION.fullmatch(text.strip(" .*"))) is not None:
        return match[1].upper()
    plain = _OPTION_DRESS.sub(" ", text).strip()
    if (match := _OPTION_LEAD.fullmatch(plain.strip(" ."))) is not None:
        return match[1].upper()
    if (match := _OPTION_WITH_TEXT.fullmatch(plain)) is not None and _SECOND_OPTION.search(match[3]) is None:
        return match[1] or match[2]
    return ""


def behind_letter(text: str) -> str:
    """Return what stands behind the letter of `(C) 12`; '' for any other text."""
    match = _OPTION_WITH_TEXT.fullmatch(_OPTION_DRESS.sub(" ", text).strip())
    if match is not None:
        return match[3]
    return ""
