# SPDX-License-Identifier: Apache-2.0
"""Type errors of msgspec in plain words: what was expected, and what was given."""

from __future__ import annotations

import re

import msgspec

TYPE_WORDS = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "object": "an object",
    "array": "a list",
    "null": "nothing",
}
"""Types as msgspec names them → words."""
PLACE_PATTERN = re.compile(r" - at `\$\.?(?P<path>[^`]*)`\Z")
MAX_VALUE_CHARS = 60
"""Characters of a value that is shown; of a longer one the type is."""
_EXPECTED = re.compile(r"Expected `(?P<wanted>[^`]+)`(?P<bound>[^,`]*)(?:, got `(?P<got>[^`]+)`)?")
_STEP = re.compile(r"\.?([^.\[\]]+)|\[(\d+)\]")


def type_fault(error: msgspec.ValidationError, value: object = msgspec.UNSET) -> str:
    """Describe an error as `temperature: expected a number, got 'hot'`, without a full stop. `value` is what was
    converted, as a whole."""
    text = str(error)
    place = PLACE_PATTERN.search(text)
    path = place["path"] if place else ""
    text = PLACE_PATTERN.sub("", text)
    if match := _EXPECTED.fullmatch(text):
        kinds = [TYPE_WORDS.get(kind, kind) for kind in match["wanted"].split(" | ") if kind != "null"]
        text = f"expected {' or '.join(kinds)}{match['bound']}"
        if value_shown := _short_value(value, path) or TYPE_WORDS.get(match["got"] or "", match["got"] or ""):
            text += f", got {value_shown}"
    else:
        text = f"{text[:1].lower()}{text[1:]}".replace("`", "'")
    if not path:
        return text
    return f"{path}: {text}"


def _short_value(value: object, path: str) -> str:
    """Return the part of `value` at `path`, where it is short and plain; else an empty text."""
    at = 0
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            return ""
        name, index = step.groups()
        if name is not None and isinstance(value, dict) and name in value:
            value = value[name]
        elif index is not None and isinstance(value, list | tuple) and int(index) < len(value):
            value = value[int(index)]
        else:
            return ""
        at = step.end()
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float) and len(repr(value)) <= MAX_VALUE_CHARS:
        return repr(value)
    return ""
