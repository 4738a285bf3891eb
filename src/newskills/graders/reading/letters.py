# SPDX-License-Identifier: Apache-2.0
"""Which option a text names by its letter: "Answer: **(B)**", "\\text{B) Vitamin C}", "答案是 B". Linear in the text.

Letters of other alphabets that number options stand for A, B, …; "A or B" names none.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from string import ascii_uppercase
from typing import NamedTuple

from newskills.graders.reading.grammar import CLOSE, STOP, Grammar, make_grammar
from newskills.graders.reading.hedges import only_letters
from newskills.graders.reading.languages import (
    ENGLISH,
    TOUCHING,
    label_index,
    labels_by_language,
    present_words,
)
from newskills_math.normalise import strip_around

SEVERAL = ""
"""In place of a letter: the text offers a choice between letters, which is no answer."""


class Label(NamedTuple):
    """A word for "answer": where it ends in the text, and the languages that have it."""

    end: int
    codes: tuple[str, ...]


class NamedLetter(NamedTuple):
    """A letter, or SEVERAL, and the place behind it in the text."""

    letter: str
    end: int


def _wide_letters() -> dict[int, str]:
    """Return the letters A, B, … by the code points of full-width, circled, bracketed, squared and mathematical
    ones."""
    letters_found: dict[int, str] = {}
    for start in (0x249C, 0x24B6, 0x24D0, 0xFF21, 0xFF41, 0x1F110, 0x1F130, 0x1F150, 0x1F170, 0x1F1E6):
        letters_found |= {start + place: letter for place, letter in enumerate(ascii_uppercase)}
    for point in range(0x1D400, 0x1D6A4):
        letter = unicodedata.normalize("NFKC", chr(point)).upper()
        if len(letter) == 1 and letter in ascii_uppercase:
            letters_found[point] = letter
    return letters_found


_WIDE = _wide_letters()
_ORDER_OF_CYRILLIC = re.compile(r"(?<!\w)[БГ](?!\w)")
"""What shows that a Cyrillic В is the third letter, and no Latin B."""
_DENIED = re.compile(
    r"[)\]*\"]*\s+(?:is|was|would be|seems)\s+(?:not|wrong|incorrect|false|also)\b|[)\]*\"]*\s+(?:isn't|cannot|can't)"
)
_REFUTED = re.compile(
    r"[)\]*\"]*\s+(?:is|was|would be|seems)\s+(?:wrong|incorrect|false|not\s+(?:correct|right|true|the|possible))\b"
    r"|[)\]*\"]*\s+(?:isn['’]t\s+(?:correct|right|true|the|possible)|(?:cannot|can['’]t)\s+be\s+(?:correct|right|true|it|the))\b",
    re.IGNORECASE,
)
_REASON = re.compile(r"[\s)\]*\"]*\b(?:because|since|as|due|given)\b", re.IGNORECASE)
_GOES_ON = re.compile(r"[ \t]+[^\W\d_]")
_STOPS = re.compile(rf"{CLOSE}(?:{STOP}|(?:or|and|are|both)\b)", re.IGNORECASE)
_DELIMITED = re.compile(r"[\s*_)\]}\"']*[).:,;\-–—(=\]\n]")
_ALONE = re.compile(rf"(?<![{TOUCHING}])[A-Z](?![{TOUCHING}])")
_COMMAND = re.compile(r"\\[a-zA-Z]+")
_DOUBLE = re.compile(r"\[\[([A-Z])\]\]")
_LINE = re.compile(
    r"(?:[\s*_>\"'`(\[$#:：→⇒✅✔☑👉\ufe0f<{【〔《「『（［-]|\\[(\[]){0,9}(?:(?:option|choice)\s)?[(\[*]{0,3}([A-Z])"
    rf"(?![{TOUCHING}]|['’][A-Za-z]|_\{{)((?:[)\].:*\"'`$>}}】〕》」』）］]|\\[)\]]){{0,6}})(.*)",
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


def folded_case(text: str) -> str:
    """Return the text in small letters, as long as before: İ has two characters in lower case."""
    lower = text.lower()
    if len(lower) != len(text):
        lower = "".join(character.lower()[0] for character in text)
    return lower


def find_labels(text: str) -> list[Label]:
    """Return the places behind "answer" and its like in other languages, the last first."""
    lower = folded_case(text)
    codes_of = labels_by_language()
    letters_found: dict[int, tuple[str, ...]] = {}
    for label in present_words(lower, label_index()):
        bounded = label.isascii() or (label[0].isalpha() and label[0] < "\u0590")
        at = lower.find(label)
        while at >= 0:
            end = at + len(label)
            if not bounded or not (lower[at - 1 : at].isalpha() or lower[end : end + 1].isalpha()):
                letters_found[end] = (*letters_found.get(end, ()), *codes_of[label])
            at = lower.find(label, end)
    return [Label(end, tuple(sorted(set(letters_found[end])))) for end in sorted(letters_found, reverse=True)]


def letter_after(text: str, label: Label, count: int) -> NamedLetter | None:
    """Return the letter that stands behind a label, or SEVERAL; None where none does, or what does is denied."""
    window = text[label.end : label.end + _SPAN].translate(_WIDE)
    qualified = _QUALIFIED.match(window)
    words = make_grammar(label.codes)
    start = qualified.end() if qualified else 0
    at, firm = _read_lead(window, words, start=start)
    if at < 0:
        return None
    letters_found = _letter_at(window, at, count, words, sure=firm)
    if letters_found is None or letters_found.letter == SEVERAL:
        return letters_found
    if not firm and words.ends is not None and not words.ends.match(window, letters_found.end):
        return None
    return NamedLetter(letters_found.letter, label.end + letters_found.end)


def announces_answer(text: str, label: Label) -> bool:
    """Return whether a colon and more stand behind a label on its line: "Answer: …", "The answer is: …"."""
    window = text[label.end : label.end + _SPAN].partition("\n")[0]
    at, _ = _read_lead(window, make_grammar(label.codes))
    return any(mark in window[: max(at, 0)] for mark in _MARKS) and window[at:].strip(_DRESS) != ""


def what_follows(text: str, label: Label) -> list[str]:
    """Return the rest of the line behind a label: behind its colon, also without mark-up, also without "is".

    An "is" that is led by neither a colon nor another "is" begins no answer.
    """
    window = text[label.end : label.end + 3 * _SPAN]
    pattern = make_grammar(label.codes).token
    first = place = len(window) - len(window.lstrip(_COLON))
    led = any(mark in window[:first] for mark in _MARKS)
    starts, verbs, behind = [], 0, first
    while (token := pattern.match(window, place)) is not None and token.lastgroup in ("firm", "dress"):
        if token[0].startswith("\\"):
            break
        if token[0].isalpha():
            if led or verbs:
                starts += [place]
            verbs, behind = verbs + 1, token.end()
        place = token.end()
    starts = [behind, *([first] if led else []), *starts[:2], place]
    return [window[start:].partition("\n")[0] for start in dict.fromkeys(starts)]


def letter_in(candidate: str, count: int) -> str | None:
    """Return the letter that a box, or the match of an expression, means; SEVERAL, or None where it means none.

    One character; else the letter that it begins with (`B) Vitamin C`); else the last capital that stands alone.
    """
    text = _COMMAND.sub(" ", candidate.translate(_WIDE))
    plain = text.strip(_DRESS)
    allowed = ascii_uppercase[:count]
    words = make_grammar((ENGLISH,))
    if len(plain) == 1:
        letter = words.letters.get(plain, plain.upper())
        return letter if letter in allowed else None
    at, _ = _read_lead(plain, words, nouns=True)
    first = _letter_at(plain, at, count, words, sure=True)
    if first is not None:
        if first.letter == SEVERAL:
            return SEVERAL
        if (
            _DELIMITED.match(plain, first.end)
            or _REASON.match(plain, first.end)
            or not _rest_of_text(plain, first.end)
        ):
            return first.letter
    alone = [m for m in _ALONE.finditer(plain) if m[0] in allowed and not _is_word(m[0], plain, m.end(), words)]
    alone = [m for m in alone if not _REFUTED.match(plain, m.end())]
    if any(letters_joined(plain, m.end(), count, words) - {m[0]} for m in alone):
        return SEVERAL
    return alone[-1][0] if alone else None


def _rest_of_text(text: str, at: int) -> str:
    return text[at:].strip(_DRESS)


def letter_in_double_brackets(text: str, count: int) -> str | None:
    """Return the letter of the last `[[B]]`, in which judges write which of several replies is best."""
    letters = [letter for letter in _DOUBLE.findall(text) if letter in ascii_uppercase[:count]]
    return letters[-1] if letters else None


def letter_announced(text: str, count: int, meant: Mapping[str, str]) -> str | None:
    """Return the letter on the last line, alone or before its option (`meant`: text of it → letter), behind one with a
    colon.

    So a reply may go through the options before.
    """
    lines = [line for line in text[-TAIL:].splitlines() if line.strip(_DRESS)]
    if len(lines) < 2 or not lines[-2].rstrip(" *_").endswith((":", "：")):
        return None
    letter, names_it = begins_with(lines[-1], count, meant)
    return letter if names_it else None


def letter_of_a_line(text: str, count: int, meant: Mapping[str, str]) -> str | None:
    """Return the letter that is all of a line, or stands before its option (`meant`: text of it → letter), if no other
    does.

    A reply that goes through several options names none of them, unless its last line is a letter alone; one line may
    go on behind a capital letter, since small ones number the parts of a solution.
    """
    lines = [line for line in text.strip().splitlines()[-_MANY:] if line.strip(_DRESS)]
    seen: set[str] = set()
    chosen: str | None = None
    for line in lines:
        letter, names_it = begins_with(line, count, meant)
        if letter is None:
            continue
        seen.add(letter)
        if names_it or (
            len(lines) == 1 and letter in ascii_uppercase[:count] and _goes_on_with_text(line, letter)
        ):
            chosen = letter
    if len(seen) == 1:
        return chosen
    if len(lines) > 1 and not _letter_alone(lines[-2], count):
        return _letter_alone(lines[-1], count)
    return None


def _letter_alone(line: str, count: int) -> str | None:
    """Return the capital letter that is all of a line; None where there is none."""
    letter, alone = begins_with(line, count, {})
    return letter if alone and letter is not None and letter in line else None


def _goes_on_with_text(line: str, letter: str) -> bool:
    """Return whether the line begins with the capital letter, and goes on with more than letters."""
    at = line.find(letter, 0, _LEAD)
    return at >= 0 and not only_letters(line[at + 1 :])


def begins_with(line: str, count: int, meant: Mapping[str, str]) -> tuple[str | None, bool]:
    """Return (letter that a line begins with, whether nothing but the option's text follows)."""
    match = _LINE.match(line)
    if match is None:
        return None, False
    rest = bare_option(match[3].lstrip(_DASHES))
    if not (match[2] or not match[3].strip(_DRESS) or meant.get(rest) == match[1]):
        return None, False
    letter = match[1].upper()
    return letter, letter in ascii_uppercase[:count] and (not rest or meant.get(rest) == letter)


def bare_option(text: str) -> str:
    """Return the text of an option as the keys of `meant` have it: small letters, single spaces, no marks around it."""
    return " ".join(strip_around(text.casefold(), _DRESS).split())


def _read_lead(window: str, words: Grammar, *, start: int = 0, nouns: bool = False) -> tuple[int, bool]:
    """Return (place behind what may stand before a letter, whether "is" or a colon was there).

    The place is -1 for "answer choice …" without them, unless `nouns` may stand there.
    """
    at, firm = start, nouns
    while (token := words.token.match(window, at)) is not None:
        if token.lastgroup == "noun" and not firm:
            return -1, False
        firm = firm or token.lastgroup == "firm"
        at = token.end()
    return at, firm


def _letter_at(text: str, at: int, count: int, words: Grammar, *, sure: bool) -> NamedLetter | None:
    mark = words.mark.match(text, at)
    if mark is None:
        return None
    end = mark.end()
    if mark["latin"]:
        letter = mark["latin"].upper()
        denied = _is_word(mark["latin"], text, end, words)
    else:
        letter = letter_of_native(mark["native"], text, words)
        word = mark["native"].lower() in words.single and _GOES_ON.match(text, end) is not None
        denied = word or at == 0 or is_touched(text, end)
    if denied or not letter or letter not in ascii_uppercase[:count]:
        return None
    denial = _REFUTED if sure else _DENIED
    if denial.match(text, end) or (words.refuted and words.refuted.match(text, end)):
        return None
    several = letters_joined(text, end, count, words) - {letter} or only_letters(text[end:].partition("\n")[0])
    named_letter = SEVERAL if several else letter
    return NamedLetter(named_letter, end)


def letters_joined(text: str, end: int, count: int, words: Grammar) -> set[str]:
    """Return the letters that commas, "or", "and" or blanks alone join to the one that ends at `end`."""
    letters_found: set[str] = set()
    at, worded = end, False
    while (other := words.other.match(text, at, end + _SPAN)) is not None:
        letters_found.add(other["letter"])
        worded = worded or (other["or"] is not None and not other["or"].isascii())
        at = other.end()
    if not letters_found or not (
        _STOPS.match(text, at) or (worded and text[at : at + 1].isalpha() and not text[at].isascii())
    ):
        return set()
    return letters_found & set(ascii_uppercase[:count])


def is_touched(text: str, end: int) -> bool:
    """Return whether a letter of the same script, or a combining mark, stands right behind the letter before `end`."""
    behind = text[end : end + 1]
    if not behind:
        return False
    if unicodedata.category(behind).startswith("M"):
        return True
    return behind.isalpha() and _script_name(behind) == _script_name(text[end - 1])


def _script_name(character: str) -> str:
    return unicodedata.name(character, "").partition(" ")[0]


def letter_of_native(mark: str, text: str, words: Grammar) -> str:
    """Return A, B, … for a letter of another alphabet; "" for a Cyrillic В, unless the text shows it as the third."""
    if mark.upper() == "\u0412" and _ORDER_OF_CYRILLIC.search(text) is None:
        return ""
    return words.letters[mark]


def _is_word(mark: str, text: str, end: int, words: Grammar) -> bool:
    """Return whether the letter is an article or a pronoun: "a dog", "A dog", "I think"."""
    return (mark.islower() or mark.lower() in words.single) and words.goes_on.match(text, end) is not None
