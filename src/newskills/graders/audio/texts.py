# SPDX-License-Identifier: Apache-2.0
"""Transcripts in the form in which they are compared; the English one is that of Whisper (arXiv:2212.04356, app. C).

Everything here takes time linear in the text, so what the published normaliser does in quadratic time (brackets that
never close, long blanks) is done before it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache
from itertools import groupby
from typing import Literal

from newskills.base.errors import ConfigError

Mode = Literal["standard", "audiobench", "hf_leaderboard", "none", "no_tn_itn", "multilingual"]
LONGEST = 50_000
"""Characters of a transcript that are looked at: an hour of speech."""

_INSTALL = "pip install 'newskills[media]'"
_UNSPACED = frozenset({"zh", "cmn", "yue", "ja", "th", "lo", "km", "my"})
_OPENING = re.compile(r"[<\[]")
_CLOSING = re.compile(r"[>\]]")
_STAMP = re.compile(
    r"\d{1,2}:\d{2}(?::\d{2})?(?:[.,]\d{1,3})?(?: ?--> ?\d{1,2}:\d{2}(?::\d{2})?(?:[.,]\d{1,3})?)?"
)
_WRAPPER = re.compile(
    r"\A(?:sure[,.!:]? )?(?:here(?: is|'s) the (?:transcript|transcription)(?: of the (?:audio|speech|recording))?"
    r"|the (?:audio|speech|recording|speaker|transcription|transcript) (?:says|said|is|reads|states))"
    r"(?: that)?(?: ?: ?| )",
    re.IGNORECASE,
)
_REFUSAL = re.compile(
    r"\A(?:i'm sorry|i am sorry|sorry)?[, ]*(?:but )?(?:i (?:can't|cannot|can not|am unable to)|i'm unable to)"
    r" (?:hear|listen to|transcribe|process|understand|access) (?:[\w']+ ){0,3}"
    r"(?:audio|recording|sound|speech|files?)\b",
    re.IGNORECASE,
)
_FILLERS = "hmm mm mhm mmm uh um ah aha ahh ahm eh ehehe em hm huh hum mhum uhm umm uhuh"
_S, _IS = r"'s\b", r"\b(it|he|she|what|that|who|here|there|how|when|where|why|this)'s\b"
_LEFT_AS_THEY_ARE = frozenset(rf"\b{word}\b" for word in ("kinda", "sorta", "dunno", "cause"))
_COMPOUND = re.compile(
    r"\b(?:et cetera|all? right|how ever|(?:wi|hi|lo|sci) fi|e (?:mail|book|commerce)|x ray|t shirt|[ap] m|o k)\b"
)
_QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’", "«": "»"}


def normalise_transcript(text: str, mode: Mode, language: str = "en") -> str:
    """Return `text` as it is compared: words with single blanks between them.

    standard                   the English normaliser of Whisper
    hf_leaderboard             that, as the Open ASR Leaderboard of 2026 has changed it: "house's" keeps its s, more
                               fillers go, letters that are spelt are one word
    audiobench                 that, without numbers joined to their units and without fillers of any kind
    no_tn_itn                  that, but numbers stay as they are written
    multilingual               lower case, compatibility forms, no brackets, symbols and punctuation as blanks;
                               languages without blanks by characters
    none                       as it is

    Raises ConfigError where the normaliser is not installed.
    """
    text = " ".join(text[:LONGEST].split())
    if mode == "none":
        return text
    text = _without_brackets(text.lower())
    if mode == "multilingual":
        return _plain_words(text, language)
    leaderboard = mode == "hf_leaderboard"
    english = _english_normaliser(mode != "no_tn_itn", leaderboard)
    try:
        text_in_english = english(text)
    except (ValueError, OverflowError, AssertionError):
        text_in_english = _english_normaliser(False, leaderboard)(text)
    if leaderboard:
        return " ".join(_without_spelling(_COMPOUND.sub(_as_one, " ".join(text_in_english.split())).split()))
    if mode == "audiobench":
        text_in_english = "".join(char if char.isalnum() or char in " '" else " " for char in text_in_english)
    return " ".join(text_in_english.split())


def spoken_text(text: str, *, strip: bool) -> str:
    """Return the transcript in a reply; `strip`: without what assistants put around it, and empty for a refusal."""
    text = " ".join(text[:LONGEST].split())
    if not strip:
        return text
    text = " ".join(_STAMP.sub(" ", text).split())
    if _REFUSAL.match(text):
        return ""
    text = _WRAPPER.sub("", text, count=1).strip()
    if len(text) > 1 and _QUOTES.get(text[0]) == text[-1]:
        text = text[1:-1].strip()
    return text


def is_punctuation(char: str) -> bool:
    """Return whether `char` is punctuation, of any script.

    Nobody asks about apostrophes and hyphens inside words.
    """
    return unicodedata.category(char).startswith("P")


def cased_words(text: str) -> list[str]:
    """Return the words as written, without punctuation around them."""
    words = (word.strip("".join(char for char in word if is_punctuation(char))) for word in text.split())
    return [word for word in words if word]


def words_and_marks(text: str) -> list[str]:
    """Return the words as written, and the marks before and after them as tokens of their own."""
    tokens: list[str] = []
    for word in text.split():
        start, end = 0, len(word)
        while start < end and is_punctuation(word[start]):
            start += 1
        while end > start and is_punctuation(word[end - 1]):
            end -= 1
        tokens += word[:start]
        if start < end:
            tokens.append(word[start:end])
        tokens += word[end:]
    return tokens


def _without_brackets(text: str) -> str:
    text = _cut_brackets(text, _OPENING, _CLOSING, 0)
    return _cut_brackets(text, re.compile(r"\("), re.compile(r"\)"), 1)


def _cut_brackets(text: str, opening: re.Pattern[str], closing: re.Pattern[str], least: int) -> str:
    """Remove what stands from an opening to the next closing bracket with at least `least` characters between.

    Brackets that nothing closes become another symbol, which the normaliser drops as it drops them.
    """
    kept: list[str] = []
    at = 0
    while (start := opening.search(text, at)) is not None:
        end = closing.search(text, start.end())
        if end is None:
            return "".join([*kept, opening.sub("*", text[at:])])
        inside = end.start() - start.end() >= least
        cut_at = start.start() if inside else end.end()
        kept.append(text[at:cut_at])
        at = end.end()
    return "".join([*kept, text[at:]])


def _plain_words(text: str, language: str) -> str:
    text = unicodedata.normalize("NFKC", text)
    text = "".join(" " if unicodedata.category(char)[0] in "SP" else char for char in text)
    if language.lower().replace("_", "-").partition("-")[0] in _UNSPACED:
        return " ".join("".join(text.split()))
    return " ".join(text.split())


def _as_one(compound: re.Match[str]) -> str:
    """Write a compound as one word: `wi fi` as `wifi`."""
    word = compound[0].replace(" ", "")
    return {"allright": "alright", "ok": "okay", "etcetera": "etc"}.get(word, word)


def _without_spelling(words: list[str]) -> list[str]:
    """Join letters that are spelt: `b b c` is `bbc`, `5 g` is `5g`; with the words "a" and "i", only runs of three."""
    joined: list[str] = []
    for alone, group in groupby(words, key=lambda word: len(word) == 1 and word.isalnum()):
        run = list(group)
        shortest = 3 if {"a", "i"} & set(run) else 2
        if alone and len(run) >= shortest:
            joined.append("".join(run))
        else:
            joined += run
    return joined


@lru_cache(maxsize=4)
def _english_normaliser(numbers: bool, leaderboard: bool = False) -> Callable[[str], str]:
    try:
        from whisper_normalizer.english import EnglishTextNormalizer
    except ImportError as error:
        raise ConfigError(
            "Transcripts are compared with whisper-normalizer, which is not installed.", hint=_INSTALL
        ) from error
    normalizer = EnglishTextNormalizer()
    if not numbers:
        normalizer.standardize_numbers = str
    if leaderboard:
        normalizer.ignore_patterns = rf"\b(?:{_FILLERS.replace(' ', '|')})\b"
        kept = {word: long for word, long in normalizer.replacers.items() if word not in _LEFT_AS_THEY_ARE}
        normalizer.replacers = {(_IS if word == _S else word): long for word, long in kept.items()}
        normalizer.replacers[_IS] = r"\1 is"
    made: Callable[[str], str] = normalizer
    return made


def require_libraries() -> None:
    """Check that the libraries which transcripts are compared with are installed. Raises ConfigError where one is
    missing."""
    _english_normaliser(True)
    try:
        import jiwer  # noqa: F401
    except ImportError as error:
        raise ConfigError("Words are aligned with jiwer, which is not installed.", hint=_INSTALL) from error
