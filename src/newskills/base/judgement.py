# SPDX-License-Identifier: Apache-2.0
"""The verdict in a judge's text; None where there is none to be found. Linear in the length of the text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from newskills.base.reading.offered_verdicts import after_choices, own_words, without_choices
from newskills.base.reading.reply_text import without_thinking

_WRAPS = r"(?:\\(?:boxed|text|textbf|mathrm|mathbf)\s?\{\s?){0,3}"
_VERDICT = re.compile(
    rf"judge?ment(?:\W{{0,8}}[:：=]|\s+is\b|\s*[-–—]|\W{{0,4}}\n)[^\w\\]{{0,8}}{_WRAPS}(yes|no)\b"
    r"(?!\W{0,4}\bor\b|\s?/)",
    re.IGNORECASE,
)
_BIT = re.compile(r"judge?ment\s?[:：][\s*_`]{0,8}([01])[\s*_`.]{0,8}\Z", re.IGNORECASE)
_DECISION = re.compile(r"decision\W{0,8}[:：][\s*_`\"']{0,8}(true|false)\b(?!\W{0,4}\bor\b|\s?/)", re.IGNORECASE)
_BOXED = re.compile(rf"\\boxed\s?\{{\s?{_WRAPS}(correct|incorrect)\b", re.IGNORECASE)
_POINTS = re.compile(r"<points>\s?(\d{1,3})(?:\.\d)?\s?(?:out of|/)\s?7\s?</points>", re.IGNORECASE)
_BRACKETED = re.compile(r"\[(correct|incorrect)\]", re.IGNORECASE)
_SECTION = re.compile(r"equivalence judge?ment\W{1,12}(true|false)\b(?!\W{0,4}\bor\b|\s?/)", re.IGNORECASE)
_OBJECT = re.compile(r"\A(?:```(?:json)?\s*)?(\{.*\})(?:\s*```)?\Z", re.DOTALL)
_FIELD = re.compile(
    rf"^[\s*_#>-]{{0,8}}correct[\s*_\"]{{0,4}}[:：=][\s*_\"'`$]{{0,8}}{_WRAPS}(yes|no)\b(?!\W{{0,4}}\bor\b|\s?/)",
    re.I | re.M,
)
_CONFIDENCE = re.compile(
    r"^[\s*_#>-]{0,8}confidence[\s*_\"]{0,4}[:：=][\s*_\"'`$]{0,8}(\d{1,3})(?!\d)", re.I | re.M
)
PASSING_POINTS = 6
PANEL_FIELD = "judge_panel"
"""Field of a record that several judges have read: judge → its verdicts, texts and errors."""
SPLIT_FIELD = "judge_split"
"""Field of such a record: whether the judges differ."""
_YES_OR_NO = {"yes": True, "no": False}
_DECORATION_CHARS = " \t\r\n*_`'\".,:;()[]{}#$"
_TICK_CHARS = "✅✔☑❌✗✘\ufe0f→-"


def parse_judgement(text: object) -> bool | None:
    """Return the last verdict of the first form that is there; None where there is none.

    The forms: a JSON object (`structured_verdict`), `Judgement: yes|no`, a last line `Judgement: 1|0`,
    `Decision: TRUE|FALSE`, `\\boxed{Correct|Incorrect}`, points out of 7, `[Correct]|[Incorrect]`, a section
    `Equivalence Judgement` with TRUE or FALSE, a line `correct: yes|no`, a text that is only yes or no. The judge's
    thinking does not count.

    >>> parse_judgement("The answers agree. **Judgement:** Yes")
    True
    """
    if not isinstance(text, str):
        return None
    text = after_choices(without_thinking(text))
    if (verdict := structured_verdict(text)) is not None:
        return verdict
    text = own_words(text)
    if matches := _VERDICT.findall(text):
        return bool(matches[-1].lower() == "yes")
    if match := _BIT.search(text):
        return match[1] == "1"
    if matches := _DECISION.findall(text):
        return bool(matches[-1].lower() == "true")
    if matches := _BOXED.findall(text):
        return bool(matches[-1].lower() == "correct")
    if matches := _POINTS.findall(text):
        return int(matches[-1]) >= PASSING_POINTS
    if matches := _BRACKETED.findall(text):
        return bool(matches[-1].lower() == "correct")
    if matches := _SECTION.findall(text):
        return bool(matches[-1].lower() == "true")
    if matches := _FIELD.findall(text):
        return bool(matches[-1].lower() == "yes")
    return _YES_OR_NO.get(text.strip(_DECORATION_CHARS).lower())


def structured_verdict(text: object) -> bool | None:
    """Read `correct` or `criteria_met` of a verdict as a JSON object, alone or in a fence: "yes" or "no", true or
    false.

    None for any other text.

    >>> structured_verdict('{"reasoning": "same number", "correct": "yes", "confidence": 90}')
    True
    """
    if not isinstance(text, str):
        return None
    fields = _json_object(text)
    verdict = fields.get("correct", fields.get("criteria_met"))
    if isinstance(verdict, str):
        return _YES_OR_NO.get(verdict.strip().lower())
    if isinstance(verdict, bool):
        return verdict
    return None


def parse_confidence(text: object) -> int | None:
    """Return the confidence in percent that a judge found in a reply: of a JSON object, or of the last line of that
    name.

    >>> parse_confidence("correct: yes\\nconfidence: 85%"), parse_confidence('{"correct": "no", "confidence": 90}')
    (85, 90)
    """
    if not isinstance(text, str):
        return None
    stated = _json_object(text).get("confidence")
    if stated is None and (matches := _CONFIDENCE.findall(without_thinking(text))):
        stated = matches[-1]
    try:
        percent = int(str(stated).strip())
    except ValueError:
        return None
    if not 0 <= percent <= 100:
        return None
    return percent


def _json_object(text: str) -> Mapping[str, object]:
    """Return the JSON object that a text is, alone or in a fence; an empty one for any other text."""
    match = _OBJECT.match(without_thinking(text).strip())
    if match is None:
        return {}
    try:
        value = json.loads(match[1])
    except (ValueError, RecursionError):
        return {}
    if not isinstance(value, dict):
        return {}
    return value


_WRAP = re.compile(r"\\(?:boxed|text|textbf|mathrm|mathbf)(?![a-zA-Z])")
_TAG = re.compile(r"</?[a-z_]{1,20}>")
_NOUN = re.compile(r"\A(?:option|choice|grade|letter|verdict)\s+(?=[A-Z]\Z)", re.IGNORECASE)
_NAMED_LETTER = re.compile(
    r"(?i:\b(?:grade|verdict|answer|judge?ment|rating|label|letter)\b[\s*_\"']{0,4}(?:is\b|:)"
    r"|\b(?:graded|judged|marked|rated)\sas\b|\bI\s(?:would\s)?(?:choose|select|pick)\b)"
    r"[\s*_:\"'(\[$\\]{0,8}(?:boxed\{)?([A-Z])(?![A-Za-z0-9'])(?!\s+[a-z])"
)
_LETTER_AND_WORD = re.compile(r"\A([A-Z])[\s.:)\]*_,=\-–—]{1,6}(.{2,40})\Z", re.DOTALL)

_LETTER_THEN_WHY = re.compile(r"\A[*_(\[]{0,3}([A-Z])[*_)\]]{0,3}[.:)–—-][*_]{0,2}\s+[A-Z]?[a-z]")
_LETTER_ALONE = re.compile(r"(?<![A-Za-z])([A-Z])(?![A-Za-z'])")
_LAST_WORD = re.compile(r"\b(YES|NO)\W*\Z")


def parse_verdict(text: object, verdicts: Mapping[str, str]) -> str | None:
    """Return which of `verdicts` (letter → name) a judge gives: a letter, its name, or both; None for none or
    several.

    Taken from `verdict` of a JSON object, from the whole text, from its last or first line, after "Grade:" and the
    like, from a text that begins with a letter and says why, naming no other, or from the only name in capitals: YES
    and NO, which reasons have, too ("NO nuts"), only at the end. An article ("A correct answer would …") is no letter.
    A list of several ("A: CORRECT / B: INCORRECT") is what the prompt offers, and no verdict.

    >>> parse_verdict("**NOT_ATTEMPTED**", {"A": "correct", "B": "incorrect", "C": "not_attempted"})
    'not_attempted'
    """
    if not isinstance(text, str):
        return None
    reply = without_thinking(text).strip()
    text = own_words(without_choices(reply, verdicts)).strip()
    names = {name.replace("_", " "): name for name in verdicts.values()}
    if (stated := _json_object(reply).get("verdict")) is not None:
        return _bare_verdict(str(stated), verdicts, names)
    lines = text.splitlines() or [""]
    for part in (text, lines[-1], lines[0]):
        if (verdict_of_part := _bare_verdict(part, verdicts, names)) is not None:
            return verdict_of_part
    if letters := [letter for letter in _NAMED_LETTER.findall(text) if letter in verdicts]:
        return verdicts[letters[-1]]
    if (first := _LETTER_THEN_WHY.match(text)) and first[1] in verdicts:
        verdict = verdicts[first[1]]
        if _gives_reasons(reply, first[1], verdict, names):
            return verdict
        return None
    if names.keys() <= _YES_OR_NO.keys():
        last = _LAST_WORD.search(text)
        if last is None:
            return None
        return names.get(last[1].lower())
    in_capitals = {name for word, name in names.items() if _stands_in_capitals(text, word)}
    if len(in_capitals) == 1:
        return in_capitals.pop()
    return None


def _gives_reasons(text: str, letter: str, verdict: str, names: Mapping[str, str]) -> bool:
    """Return whether a text that begins with a letter speaks of no other verdict, and does not deny its own."""
    spoken = _plain_words(text)
    named = {name for word, name in names.items() if re.search(rf"\b{word}\b", spoken)}
    denied = re.search(rf"\b(?:not|isn't|never)\s{verdict.replace('_', ' ')}\b", spoken)
    return set(_LETTER_ALONE.findall(text)) - {"A"} <= {letter} and named <= {verdict} and denied is None


def _bare_verdict(part: str, verdicts: Mapping[str, str], names: Mapping[str, str]) -> str | None:
    """Return the verdict that a line consists of, with or without a label before it; None for any other line."""
    label, colon, rest = part.partition(":")
    pieces = [part]
    if colon and 1 < len(label.strip(_DECORATION_CHARS)) < 40:
        pieces.append(rest)
    for piece in pieces:
        bare = _NOUN.sub("", _TAG.sub("", _WRAP.sub("", piece)).strip(_DECORATION_CHARS + _TICK_CHARS))
        if bare.upper() in verdicts:
            return verdicts[bare.upper()]
        both = _LETTER_AND_WORD.match(bare)
        word_text = both[2] if both else bare
        word = names.get(_plain_words(word_text))
        if word is not None and (both is None or verdicts.get(both[1]) == word):
            return word
    return None


def _plain_words(text: str) -> str:
    return " ".join(text.strip(_DECORATION_CHARS).replace("_", " ").replace("-", " ").casefold().split())


def _stands_in_capitals(text: str, word: str) -> bool:
    pattern = word.upper().replace(" ", "[ _-]")
    return re.search(rf"(?<![A-Za-z])(?<!NOT )(?<!not ){pattern}(?![A-Za-z])", text) is not None
