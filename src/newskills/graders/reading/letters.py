# SPDX-License-Identifier: Apache-2.0
"""Which option a text names by its letter: "Answer: **(B)**", "\\text{B) Vitamin C}", "答案是 B". Linear in the text.

Letters of other alphabets that number options stand for A, B, …; "A or B" names none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from string import ascii_uppercase

from newskills.graders.reading.replies import stripped

SEVERAL = ""
"""In place of a letter: the text offers a choice between letters, which is no answer."""

_ORDERS = ("ΑΒΓΔΕ", "कखगघङ", "אבגדה", "甲乙丙丁戊", "กขคง", "ابجده", "কখগঘঙ", "অবডঢ")
_NATIVE = {mark: letter for order in _ORDERS for mark, letter in zip(order, ascii_uppercase, strict=False)}
_NATIVE |= {"أ": "A", "إ": "A"}
_WIDE = str.maketrans(
    {chr(start + i): letter for start in (0xFF21, 0xFF41, 0x24B6) for i, letter in enumerate(ascii_uppercase)}
)
_LATIN = (
    "answer",
    "ans",
    "ans.",
    "correct option",
    "correct choice",
    "final choice",
    "right option",
    "best response",
    "correct response",
    "accurate response",
    "best option",
    "best choice",
    "closest option",
    "closest choice",
    "selected option",
    "chosen option",
    "my choice",
    "right letter",
    "correct letter",
    "antwort",
    "respuesta",
    "risposta",
    "resposta",
    "jawaban",
    "jibu",
    "cevap",
    "svar",
    "antwoord",
    "idahun",
)
_OTHERS = (
    *(
        "réponse",
        "odpowiedź",
        "odpověď",
        "răspuns",
        "đáp án",
        "trả lời",
        "ответ",
        "відповідь",
        "απάντηση",
        "תשובה",
    ),
    *(
        "答案",
        "故选",
        "应选",
        "答え",
        "回答",
        "解答",
        "正解",
        "答复",
        "答曰",
        "答:",
        "答：",
        "정답",
        "답변",
        "답:",
        "답 :",
    ),
    *("إجابة", "الجواب", "پاسخ", "جواب", "উত্তর", "उत्तर", "సమాధానం", "பதில்", "คำตอบ"),
    *("ìdáhùn", "idáhùn", "àdáhùn", "àmọ̀nà", "ànúgọ", "àṣàyàn"),
)
_IS = (
    "is|are|was|must be|should be|would be|might be|may be|could be|seems to be|appears to be|has to be"
    "|ist|lautet|est|es|è|é|jest|adalah|là|är|este|είναι|היא|هي|هو"
    "|है|হল"
)
_FILL = (
    "the|la|el|correcta?|correcte|corrett?[ao]|right|finale?|best|to|this|question|therefore|thus|definitely|clearly"
    "|indeed|most|likely|probably|richtige?|benar|đúng|النهائية?|الصحيحة?"
)
_NOUN = "option|choice|letter"
_WORD_ENDS = r"(?![^\W\d_])"
_TOKEN = re.compile(
    rf"(?P<firm>[:：=→ঃ]|-+>|[-–—]+(?=\s)|(?:{_IS}){_WORD_ENDS}|[是为為选選はが은는이])"
    r"|(?P<dress>[\s*_\"'“”„‘’«»`(（\[【{$<>|#~]|\\[(\[]|\\[a-zA-Z]{2,14}|\\boldsymbol)"
    rf"|(?P<noun>(?:{_NOUN}){_WORD_ENDS})|(?P<fill>(?:{_FILL}){_WORD_ENDS})",
    re.IGNORECASE,
)
_MARK = re.compile(rf"(?:([A-Za-z])(?![A-Za-z0-9+#]|[-'’][A-Za-z])|([{''.join(_NATIVE)}])(?![^\W\d_]))")
_REASONS = "because|since|as|is|for|due|which|with|and|or|while|but|given|that|weil|da|car|porque|perché|parce|ya"
_GOES_ON = re.compile(rf"[ \t]+(?!(?:{_REASONS}){_WORD_ENDS})[^\W\d_]")
_DENIED = re.compile(
    r"[)\]*\"]*\s+(?:is|was|would be|seems)\s+(?:not|wrong|incorrect|false|also)\b|[)\]*\"]*\s+(?:isn't|cannot|can't)"
)
_ALSO = re.compile(
    r"[)\]*\"}\s$]*(?:[,/&+、]|(?:or|and|und|oder|ou|et|o|y|e)\b|和|或|と)[\s(\[*\"{$]*([A-Z])(?![A-Za-z0-9'’-])"
    r"[)\]*\"}$]*\s*(?=\Z|[.,;:!?\n]|(?:or|and|are|both)\b)"
)
_DELIMITED = re.compile(r"[\s*_)\]}\"']*[).:,;\-–—(=\]\n]")
_ALONE = re.compile(r"(?<![A-Za-z0-9])[A-Z](?![A-Za-z0-9])")
_COMMAND = re.compile(r"\\[a-zA-Z]+")
_DOUBLE = re.compile(r"\[\[([A-Z])\]\]")
_LINE = re.compile(
    r"[\s*_>\"'`(\[$#:：→⇒✅✔☑👉\ufe0f-]{0,9}(?:(?:option|choice)\s)?[(\[*]{0,3}([A-Z])(?![A-Za-z0-9]|['’][A-Za-z]|_\{)([)\].:*\"'`$]{0,6})(.*)",
    re.IGNORECASE,
)
_DRESS = " .,;:!?()[]{}*_`'\"“”„«»「」。，；：！？$\\\n\t"
_QUALIFIED = re.compile(r"\s*\((?:[a-z]+[ -]?){1,5}\)(?=[*_\s]*[:：])")
"""Answer (letter only): …"""
_MARKS = ":："
_DASHES = " -–—"
_COLON = " \t\r\n*_:："
_SPAN = 120
TAIL = 2_000
"""Characters at the end of a reply in which its answer is looked for."""
_MANY = 200
_LEAD = 20


def labels(text: str) -> list[int]:
    """The places behind "answer" and its like in other languages, the last first."""
    lower = text.lower()
    if len(lower) != len(text):  # İ has two characters in lower case
        lower = "".join(character.lower()[0] for character in text)
    indices: set[int] = set()
    for label in _LATIN if text.isascii() else (*_LATIN, *_OTHERS):
        at = lower.find(label)
        while at >= 0:
            end = at + len(label)
            if not label.isascii() or not (lower[at - 1 : at].isalpha() or lower[end : end + 1].isalpha()):
                indices.add(end)
            at = lower.find(label, end)
    return sorted(indices, reverse=True)


def letter_after(text: str, at: int, count: int) -> str | None:
    """The letter that stands behind a label which ends at `at`; SEVERAL, or None where none does."""
    window = _QUALIFIED.sub("", text[at : at + _SPAN].translate(_WIDE), count=1)
    at, firm = _led(window)
    return None if at < 0 else _letter_at(window, at, count, sure=firm)


def what_follows(text: str, at: int) -> list[str]:
    """The rest of the line behind a label: behind its colon, also without mark-up, also without "is".

    An "is" that is led by neither a colon nor another "is" begins no answer.
    """
    window = text[at : at + 3 * _SPAN]
    first = place = len(window) - len(window.lstrip(_COLON))
    led = any(mark in window[:first] for mark in _MARKS)
    starts, verbs, behind = [], 0, first
    while (token := _TOKEN.match(window, place)) is not None and token.lastgroup in ("firm", "dress"):
        if token[0].startswith("\\"):
            break
        if token[0].isalpha():
            starts += [place] if led or verbs else []
            verbs, behind = verbs + 1, token.end()
        place = token.end()
    starts = [behind, *([first] if led else []), *starts[:2], place]
    return [window[start:].partition("\n")[0] for start in dict.fromkeys(starts)]


def letter_in(candidate: str, count: int) -> str | None:
    """The letter that a box, or the match of an expression, means; SEVERAL, or None where it means none.

    One character; else the letter that it begins with (`B) Vitamin C`); else the last capital that stands alone.
    """
    text = _COMMAND.sub(" ", candidate.translate(_WIDE))
    plain = text.strip(_DRESS)
    allowed = ascii_uppercase[:count]
    if len(plain) == 1:
        letter = _NATIVE.get(plain, plain.upper())
        return letter if letter in allowed else None
    at, _ = _led(plain, nouns=True)
    first = _letter_at(plain, at, count, sure=True)
    if first == SEVERAL:
        return SEVERAL
    if first is not None and (_DELIMITED.match(plain, at + 1) or not plain[at + 1 :].strip(_DRESS)):
        return first
    alone = [m for m in _ALONE.finditer(plain) if m[0] in allowed and not _is_word(m[0], plain, m.end())]
    return alone[-1][0] if alone else None


def letter_in_double_brackets(text: str, count: int) -> str | None:
    """The last `[[B]]`, in which judges write which of several replies is best."""
    letters = [letter for letter in _DOUBLE.findall(text) if letter in ascii_uppercase[:count]]
    return letters[-1] if letters else None


def letter_announced(text: str, count: int, meant: Mapping[str, str]) -> str | None:
    """The letter on the last line, alone or before its option (`meant`: text of it → letter), behind one with a colon.

    So a reply may go through the options before.
    """
    lines = [line for line in text[-TAIL:].splitlines() if line.strip(_DRESS)]
    if len(lines) < 2 or not lines[-2].rstrip(" *_").endswith((":", "：")):
        return None
    letter, names_it = _begins_with(lines[-1], count, meant)
    return letter if names_it else None


def letter_of_a_line(text: str, count: int, meant: Mapping[str, str]) -> str | None:
    """The letter that is all of a line, or stands before its option (`meant`: text of it → letter), if no other does.

    A reply that goes through several options names none of them; one line may go on behind a capital letter, since
    small ones number the parts of a solution.
    """
    lines = text.strip().splitlines()
    seen: set[str] = set()
    chosen: str | None = None
    for line in lines[-_MANY:]:
        letter, names_it = _begins_with(line, count, meant)
        if letter is None:
            continue
        seen.add(letter)
        if names_it or (len(lines) == 1 and letter in ascii_uppercase[:count] and letter in line[:_LEAD]):
            chosen = letter
    return chosen if len(seen) == 1 else None


def _begins_with(line: str, count: int, meant: Mapping[str, str]) -> tuple[str | None, bool]:
    """(letter that a line begins with, whether nothing but the option's text follows)."""
    match = _LINE.match(line)
    if match is None:
        return None, False
    rest = bare_option(match[3].lstrip(_DASHES))
    if not (match[2] or not match[3].strip(_DRESS) or meant.get(rest) == match[1]):
        return None, False
    letter = match[1].upper()
    return letter, letter in ascii_uppercase[:count] and (not rest or meant.get(rest) == letter)


def bare_option(text: str) -> str:
    """The text of an option as the keys of `meant` have it: small letters, single spaces, no marks around it."""
    return " ".join(stripped(text.casefold(), _DRESS).split())


def _led(window: str, *, nouns: bool = False) -> tuple[int, bool]:
    """(place behind what may stand before a letter, whether "is" or a colon was there).

    The place is -1 for "answer choice …" without them, unless `nouns` may stand there.
    """
    at, firm = 0, nouns
    while (token := _TOKEN.match(window, at)) is not None:
        if token.lastgroup == "noun" and not firm:
            return -1, False
        firm = firm or token.lastgroup == "firm"
        at = token.end()
    return at, firm


def _letter_at(text: str, at: int, count: int, *, sure: bool) -> str | None:
    mark = _MARK.match(text, at)
    if mark is None:
        return None
    letter = mark[1].upper() if mark[1] else _NATIVE[mark[2]]
    if letter not in ascii_uppercase[:count]:
        return None
    if (mark[1] and _is_word(mark[1], text, mark.end())) or (not sure and _DENIED.match(text, mark.end())):
        return None
    also = _ALSO.match(text, mark.end(), mark.end() + _SPAN)
    return SEVERAL if also and also[1] != letter and also[1] in ascii_uppercase[:count] else letter


def _is_word(mark: str, text: str, end: int) -> bool:
    """An article or a pronoun: "a dog", "A dog", "I think"."""
    return (mark.islower() or mark in "AI") and _GOES_ON.match(text, end) is not None
