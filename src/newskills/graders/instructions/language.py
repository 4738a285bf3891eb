# SPDX-License-Identifier: Apache-2.0
"""The language of a text, as langdetect sees it (Nakatani's classifier of letter groups), the same on every call.

A script that only one of its languages is written in, and prose with the share of little words that only English has,
are recognised here: they are frequent, and the classifier takes milliseconds.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from newskills.base.errors import ConfigError
from newskills.graders.instructions.texts import STOP_WORDS

LONGEST = 10_000
"""Characters that are looked at; the classifier itself reads no further."""
_OWN_SCRIPTS = (
    ("bn", "\u0980", "\u09ff"),
    ("pa", "\u0a00", "\u0a7f"),
    ("gu", "\u0a80", "\u0aff"),
    ("ta", "\u0b80", "\u0bff"),
    ("te", "\u0c00", "\u0c7f"),
    ("kn", "\u0c80", "\u0cff"),
    ("ml", "\u0d00", "\u0d7f"),
    ("th", "\u0e00", "\u0e7f"),
    ("ko", "\uac00", "\ud7a3"),
)
_SCRIPTS = tuple((code, re.compile(f"[{first}-{last}]")) for code, first, last in _OWN_SCRIPTS)
_BEYOND_LATIN = re.compile(r"[\u0300-\u1dff\u2c00-\ud7ff\uf900-\uffdc]")
_ASCII_WORD = re.compile(r"[a-z]+")
_LATIN_WORD = re.compile(r"[^\W\d_]+")
_ENGLISH = frozenset(word for word in STOP_WORDS if len(word) > 2) - {"per", "has", "most", "all", "was", "will"}
_ENOUGH_WORDS, _ENGLISH_SHARE = 20, 0.2


@lru_cache(maxsize=1024)
def detect_language(text: str) -> str | None:
    """ISO 639-1 code (`zh-cn`, `zh-tw` for Chinese); None for a text without features (numbers, only capitals).

    Raises ConfigError where langdetect is not installed.
    """
    text = text[:LONGEST]
    return _by_script(text) or (_english(text) and "en") or _classified(text)


def language_support() -> None:
    """Loads what `detect_language` needs. Raises ConfigError where langdetect is not installed."""
    _factory()


def _by_script(text: str) -> str:
    beyond = _BEYOND_LATIN.findall(text)
    if len(beyond) < 20 or 2 * len(beyond) < len(_ASCII_WORD.sub("", text.lower())) // 2:
        return ""
    for code, letters in _SCRIPTS:
        if len(letters.findall(text)) > 0.95 * len(beyond):
            return code if len("".join(_ASCII_WORD.findall(text.lower()))) * 2 < len(beyond) else ""
    return ""


def _english(text: str) -> bool:
    if text.isupper():
        return False
    words = _LATIN_WORD.findall(text.lower())
    return len(words) >= _ENOUGH_WORDS and sum(map(_ENGLISH.__contains__, words)) >= _ENGLISH_SHARE * len(words)


def _classified(text: str) -> str | None:
    factory, failed = _factory()
    detector = factory.create()
    detector.seed = 0
    detector.append(text)
    try:
        found: str = detector.detect()
    except failed:
        return None
    return found


@lru_cache(maxsize=1)
def _factory() -> tuple[Any, type[Exception]]:
    try:
        from langdetect.detector_factory import PROFILES_DIRECTORY, DetectorFactory
        from langdetect.lang_detect_exception import LangDetectException
    except ImportError as error:
        raise ConfigError(
            "Instructions about languages are checked with langdetect, which is not installed.",
            hint="pip install 'newskills[instructions]'",
        ) from error
    factory = DetectorFactory()
    factory.load_profile(PROFILES_DIRECTORY)
    return factory, LangDetectException
