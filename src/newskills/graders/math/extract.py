# SPDX-License-Identifier: Apache-2.0
"""The final answer out of a generation, in time linear in its length.

A user's regular expression is the exception; it runs in a worker with a deadline.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from msgspec import Struct

from newskills.base.errors import ConfigError
from newskills.graders.replies import after_thinking


class Policy(Struct, frozen=True):
    """Which forms of a final answer count; see MathConfig."""

    extract_from_boxed: bool = True
    extract_regex: str = ""
    relaxed_extraction: bool = False


class Extracted(NamedTuple):
    """`how`: box, boxes, regex, hashes, tag, phrase, number, or why there is none: thinking, unclosed, none."""

    answer: str | None
    how: str


_BOX = re.compile(r"\\(?:boxed|fbox|framebox)(?![a-zA-Z])\s*")
_BETWEEN = re.compile(
    r"(?:[\s$,;.:*()\[\]&、，；。]|\\[,;:!\[\]() ]|\\q?quad|\\text\s*\{\s*(?:and|or)\s*\}"
    r"|\b(?:and|or|und|oder|et|ou|maybe|perhaps|possibly|alternatively|either|also)\b|和|或)*",
    re.IGNORECASE,
)
_PHRASE = re.compile(
    r"(?:answer\s*(?:is|are|=|:|would be)|antwort\s*(?:ist|lautet|:)|réponse\s*(?:finale\s*)?(?:est|:)"
    r"|respuesta\s*(?:final\s*)?(?:es|:)"
    r"|risposta\s*(?:finale\s*)?(?:è|:)|resposta\s*(?:final\s*)?(?:é|:)|ответ\s*[:—-]?|答案\s*(?:是|为|：|:)|答え\s*(?:は|：|:)|정답은|답은)"
    r"[ \t*_:：]*\n?[ \t*_]*",
    re.IGNORECASE,
)
_TAG = re.compile(r"<answer>", re.IGNORECASE)
_NUMBER = re.compile(r"[-−+]?\$?(?:\d[\d,]*(?:\.\d+)?|\.\d+)(?:/\d+)?(?:\s?\\?%)?")
_SENTENCE_END = re.compile(r"(?<=[^\s.])[.。](?=\s|$)|[;；](?=\s)|(?<=[.。])\s|\n")
_DISPLAY = re.compile(r"^\s*(?:\$\$(.+?)\$\$|\$(.+?)\$|\\\((.+?)\\\)|\\\[(.+?)\\\])", re.DOTALL)
_TAIL = 4_000


def extract(text: str, policy: Policy) -> Extracted:
    """The last final answer of `text` in a form that `policy` lets count, and which form it was.

    Raises ConfigError for a regular expression that does not compile.
    """
    visible = after_thinking(text)
    if visible is None:
        return Extracted(None, "thinking")
    steps: list[Callable[[str], Extracted | None]]
    if policy.relaxed_extraction:
        steps = [_regex(policy.extract_regex), _boxed, _hashes, _tagged, _phrase, _last_number]
    elif policy.extract_from_boxed:
        steps = [_boxed, _hashes, _tagged, _phrase]
    else:
        steps = [_regex(policy.extract_regex)]
    for step in steps:
        if (found := step(visible)) is not None:
            return found
    return Extracted(None, "none")


def _last(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    match = None
    for found in pattern.finditer(text):
        match = found
    return match


def _regex(pattern: str) -> Callable[[str], Extracted | None]:
    try:
        compiled = re.compile(pattern, re.MULTILINE)
    except re.error as error:
        raise ConfigError(f"extract_regex '{pattern}' is no regular expression: {error}.") from error

    def step(text: str) -> Extracted | None:
        last = _last(compiled, text)
        if last is None:
            return None
        groups = [g for g in last.groups() if g is not None]
        answer = (groups[0] if groups else last.group()).strip().rstrip(".").strip()
        inner = _boxed(answer)
        return Extracted(inner.answer if inner is not None and inner.answer else answer or None, "regex")

    return step


def _boxed(text: str) -> Extracted | None:
    """The last box; boxes side by side are one list. A last box that never closes is no answer."""
    if "\\boxed" not in text and "\\fbox" not in text and "\\framebox" not in text:
        return None
    run: list[str] = []
    end = -1
    unclosed = False
    position = 0
    while (match := _BOX.search(text, position)) is not None:
        content, stop = _content(text, match.end())
        if content is None:
            unclosed = True
            break
        side_by_side = bool(run) and _BETWEEN.fullmatch(text, end, match.start()) is not None
        if not side_by_side:
            run.clear()
        run.append(content)
        end = position = stop
    if unclosed:
        return Extracted(None, "unclosed")
    distinct = list(dict.fromkeys(" ".join(c.split()) for c in run if c.strip()))
    if not distinct:
        return Extracted(None, "none")
    return Extracted(", ".join(distinct), "box" if len(distinct) == 1 else "boxes")


def _content(text: str, start: int) -> tuple[str | None, int]:
    """(what the box holds, the place behind it); `\\boxed 5` holds one word."""
    if start >= len(text):
        return None, start
    if text[start] != "{":
        stop = start
        while stop < len(text) and not text[stop].isspace() and text[stop] not in "$,;":
            stop += 1
        return (text[start:stop].rstrip(".") or None), stop
    depth, at = 0, start
    while at < len(text):
        char = text[at]
        if char == "\\":
            at += 2
            continue
        if char == "{":
            depth += 1
        elif char == "}":
            depth -= 1
            if depth == 0:
                return text[start + 1 : at], at + 1
        at += 1
    return None, at


def _hashes(text: str) -> Extracted | None:
    at = text.rfind("####")
    if at < 0:
        return None
    line = text[at + 4 :].lstrip("# \t").split("\n", 1)[0].strip()
    return Extracted(line, "hashes") if line else None


def _tagged(text: str) -> Extracted | None:
    last = _last(_TAG, text)
    if last is None:
        return None
    body = text[last.end() :]
    end = body.lower().find("</answer>")
    if end < 0:
        return Extracted(None, "unclosed")
    inner = body[:end].strip()
    found = _boxed(inner)
    return found if found is not None else Extracted(inner or None, "tag")


def _phrase(text: str) -> Extracted | None:
    tail = text[-_TAIL:]
    last = _last(_PHRASE, tail)
    if last is None:
        return None
    rest = tail[last.end() :]
    if (display := _DISPLAY.match(rest)) is not None:
        following = rest[display.end() :].split("\n", 1)[0]
        inside = next(g for g in display.groups() if g is not None)
        if re.match(r"\s*(?:\\?%|°|,|and\b|or\b)", following) is None:
            return Extracted(inside.strip(), "phrase")
    line = _SENTENCE_END.split(rest, maxsplit=1)[0].strip(" \t*_`")
    return Extracted(line, "phrase") if line else None


def _last_number(text: str) -> Extracted | None:
    last = _last(_NUMBER, text[-_TAIL:])
    return Extracted(last.group().rstrip(","), "number") if last is not None else None
