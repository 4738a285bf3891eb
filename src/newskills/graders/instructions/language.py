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
_NOT_LATIN = frozenset(
    (
        *(code for code, _, _ in _OWN_SCRIPTS),
        "hi",
        "mr",
        "ne",
        "ar",
        "fa",
        "ur",
        "ru",
        "uk",
        "bg",
        "mk",
        "el",
        "he",
        "ja",
        "zh",
    )
)
_LATIN = re.compile(r"[a-z]")
_GAP = re.compile(r"[\W\d_]+")
_MARK = re.compile(r"https?://\S+|\S+@\S+")
_ENGLISH = frozenset(word for word in STOP_WORDS if len(word) > 2) - {"per", "has", "most", "all", "was", "will"}
_ENOUGH_WORDS, _ENGLISH_SHARE = 20, 0.15
_WINDOW = 500


def is_language(text: str, code: str) -> bool:
    """Return whether the whole `text` is in the language; a text without features counts as right."""
    if code in _NOT_LATIN:
        latin = len(_LATIN.findall(text))
        if latin > 20 * (len(_BEYOND_LATIN.findall(text)) + 1):
            return False
    detected = detect_language(text)
    return detected is None or detected == code or detected.partition("-")[0] == code


def detect_language(text: str) -> str | None:
    """Return the ISO 639-1 code of the text's language (`zh-cn`, `zh-tw` for Chinese).

    It is None for a text without features (numbers, only capitals).

    A long text is looked at in its beginning, middle and end. Raises ConfigError where langdetect is not installed.
    """
    if text.isascii():
        text = _GAP.sub(" ", _MARK.sub(" ", text))
    else:
        text = _MARK.sub(" ", text).replace("*", " ")
    text = " ".join(text.split())
    if len(text) > 4 * _WINDOW:
        middle = len(text) // 2
        text = " ".join((text[:_WINDOW], text[middle : middle + _WINDOW], text[-_WINDOW:]))
    return _detect_language(text)


@lru_cache(maxsize=4096)
def _detect_language(text: str) -> str | None:
    return _by_script(text) or (_is_english(text) and "en") or _classify_language(text)


def language_support() -> None:
    """Load what `detect_language` needs. Raises ConfigError where langdetect is not installed."""
    _detector_factory()


def _by_script(text: str) -> str:
    beyond, latin = len(_BEYOND_LATIN.findall(text)), len(_LATIN.findall(text.lower()))
    if beyond < 20 or 2 * latin > beyond:
        return ""
    return next((code for code, letters in _SCRIPTS if len(letters.findall(text)) > 0.95 * beyond), "")


def _is_english(text: str) -> bool:
    words = _GAP.sub(" ", text.lower()).split()
    few = len(words) < _ENOUGH_WORDS or text.isupper()
    return not few and sum(map(_ENGLISH.__contains__, words)) >= _ENGLISH_SHARE * len(words)


def _classify_language(text: str) -> str | None:
    factory, failed = _detector_factory()
    detector = factory.create()
    detector.seed = 0
    detector.append(text)
    try:
        detected: str = detector.detect()
    except failed:
        return None
    return detected


@lru_cache(maxsize=1)
def _detector_factory() -> tuple[Any, type[Exception]]:
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
