# SPDX-License-Identifier: Apache-2.0
"""Answers below or behind a mark of their own: `####`, a heading "Final Answer", a field `answer` of JSON."""

from __future__ import annotations

import json
import re
from itertools import islice

from newskills_math.extraction.boxes import is_placeholder

_HASHES = re.compile(r"####[# \t]*([^\n]*)")
_DRESS = " \t*_`#"
_LABELLED = re.compile(
    r"[*_\s]*(?:(?:so|thus|hence|therefore)\W{1,3})?(?:the\s)?(?:final\s|correct\s)?(?:answer|result)[*_\s]*"
    r"(?:is\b|[:：=])[*_:\s]*(?P<answer>\S.*)",
    re.IGNORECASE,
)
_TITLE = re.compile(
    r"(?:the\s)?(?:final\s|correct\s)?(?:answer|solution|conclusion|result|results|step|part|case|summary|explanation"
    r"|verification|check|proof|analysis|calculation|approach|reasoning|note|given|method|question|problem|setup|example)s?"
    r"\b(?:\s*(?:\d+|[A-Za-z])?\s*(?:[:.)—–-].*)?|\s[^\d\\]*)"
    r"|\(?\d{1,2}[.)]\s+[A-Za-z]{2,}.*",
    re.IGNORECASE,
)
_FORMULA = re.compile(r"\d|\\[a-zA-Z]|[=<>]")
_HEADED = re.compile(
    r"^[ \t>]*(?:#{1,6}[ \t]*(?:\*\*)?|\*\*|__)(?:\d{1,2}[.)][ \t]*)?(?:the[ \t])?(?:final[ \t]|correct[ \t])?"
    r"(?:answer|result)s?[ \t]*[:：]?[ \t]*(?:\*\*|__)?[ \t]*[:：]?[ \t]*\n\s*(?P<answer>\S[^\n]*(?:\n[^\n]+){0,6})",
    re.IGNORECASE | re.MULTILINE,
)
_FIELD = re.compile(
    r"(?:[{,]\s{0,40}|^\s{0,8})[\"'](?P<name>(?:final|correct|predicted|short)?[ _-]?answers?(?:[ _-]?\d{1,3})?)"
    r"[\"']\s{0,8}:\s{0,8}",
    re.IGNORECASE | re.MULTILINE,
)
_QUOTED = re.compile(r"\"((?:[^\"\\]|\\.){0,2000})\"|'((?:[^'\\]|\\.){0,2000})'", re.DOTALL)
_BARE = re.compile(r"[^\s,{}\[\]\"']{1,200}")
_UNICODE = re.compile(r"\\u([0-9a-fA-F]{4})")
_OTHER_OBJECT = re.compile(r"\}(?P<prose>[^{}]*)\{(?=[^{}]*\Z)")
_PROSE = re.compile(r"(?<![A-Za-z])(?!(?:json|or|and)\b)[A-Za-z]{2,}")
_HEDGE = re.compile(
    r"\b(?:or|maybe|perhaps|possibly|alternatively|either|also|another|other|could|might|may)\b", re.IGNORECASE
)
_MOST_FIELDS = 50
_MOST_ELEMENTS = 100


def last_behind_hashes(text: str) -> str | None:
    """Return what stands behind the last `####` that is no heading of what follows."""
    end = len(text.rstrip())
    answer = None
    for match in _HASHES.finditer(text):
        line = match[1].strip()
        labelled = _LABELLED.fullmatch(line)
        if labelled is not None:
            answer = labelled["answer"].rstrip(f"{_DRESS}.").lstrip(_DRESS)
        elif line and not _is_title(line.strip(_DRESS), goes_on=match.end() < end):
            answer = line
    return answer


def _is_title(line: str, *, goes_on: bool) -> bool:
    if line.endswith((":", "：")) or _TITLE.fullmatch(line):
        return True
    return goes_on and _FORMULA.search(line) is None and len(line) > 1


def below_answer_heading(text: str) -> str | None:
    """Return the text below the last heading that says nothing but "Final Answer", or the like."""
    answer = None
    for match in _HEADED.finditer(text):
        answer = match["answer"]
    return answer


def json_answers(text: str) -> list[str]:
    """Return the different values of fields `answer` of JSON objects in a text, as they are written.

    Fields named for the final answer go before others; null and placeholders are no values. An object behind prose that
    does not hedge takes the place of those before it.
    """
    values: dict[str, list[str]] = {"final": [], "": []}
    last = 0
    for field in islice(_FIELD.finditer(text), _MOST_FIELDS):
        value = _json_value(text, field.end())
        if value is None or is_placeholder(value):
            continue
        if last and _begins_another(text[last : field.start() + 1]):
            values = {"final": [], "": []}
        group = "final" if field["name"].lower().startswith("final") else ""
        values[group].append(value)
        last = field.end()
    return list(dict.fromkeys(values["final"] or values[""]))


def _begins_another(between: str) -> bool:
    """Return whether what stands between two fields ends an object, says something, and begins another one."""
    other = _OTHER_OBJECT.search(between)
    return (
        other is not None and _PROSE.search(other["prose"]) is not None and _HEDGE.search(other["prose"]) is None
    )


def _json_value(text: str, start: int) -> str | None:
    """Return the value that begins at `start`: a text, a number, a list or an object of them."""
    if text[start : start + 1] == "[":
        return ", ".join(_json_elements(text, start, "]")) or None
    if text[start : start + 1] == "{":
        return ", ".join(_json_elements(text, start, "}")) or None
    return _json_scalar(text, start)


def _json_scalar(text: str, start: int) -> str | None:
    quoted = _QUOTED.match(text, start)
    if quoted is not None:
        quoted_text = quoted[1] if quoted[1] is not None else quoted[2]
        return _unescape_json(quoted_text).strip() or None
    bare = _BARE.match(text, start)
    if bare is not None and bare[0] not in ("null", "None"):
        return bare[0]
    return None


def _unescape_json(text: str) -> str:
    """Replace escapes of JSON, which doubles the backslashes of LaTeX; models often do not, and then mean `\\frac` by
    it, not a form feed."""
    if "\\\\" in text:
        try:
            return str(json.loads(f'"{text}"', strict=False))
        except ValueError:
            return text.replace("\\\\", "\\")
    text = text.replace('\\"', '"').replace("\\'", "'").replace("\\/", "/")
    return _UNICODE.sub(lambda match: chr(int(match[1], 16)), text)


_ELEMENT = re.compile(r"\s*(?:(?P<name>\"[^\"\\\n]{1,40}\"|'[^'\\\n]{1,40}')\s*:\s*)?(?=[^\s\]}\[{,:])", re.DOTALL)


def _json_elements(text: str, start: int, closing: str) -> list[str]:
    """Return the scalars between a bracket and the next `closing`, with the names that they have."""
    elements: list[str] = []
    position = start + 1
    while len(elements) < _MOST_ELEMENTS and (element := _ELEMENT.match(text, position)) is not None:
        spelt = _QUOTED.match(text, element.end()) or _BARE.match(text, element.end())
        if spelt is None:
            break
        value = _json_scalar(text, element.end()) or ""
        name = (element["name"] or "").strip("\"'")
        elements.append(f"{name}={value}" if name else value)
        position = spelt.end()
        while position < len(text) and (text[position].isspace() or text[position] == ","):
            position += 1
        if text[position : position + 1] == closing:
            break
    return elements
