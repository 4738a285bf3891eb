# SPDX-License-Identifier: Apache-2.0
"""The final answer out of a generation, in time linear in its length.

A user's regular expression is the exception; it runs in a worker with a deadline.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import islice
from typing import NamedTuple

from msgspec import Struct

from newskills.base.errors import ConfigError
from newskills.graders.math.extraction.closing import closing_answer, stated_answer
from newskills.graders.math.extraction.masks import mask
from newskills.graders.math.extraction.statements import value_of
from newskills.graders.reading.replies import after_thinking


class ExtractionPolicy(Struct, frozen=True):
    """Which forms of a final answer count; see MathConfig."""

    extract_from_boxed: bool = True
    extract_regex: str = ""
    relaxed_extraction: bool = False
    strict_extraction: bool = False


class ExtractedAnswer(NamedTuple):
    """`how`: box, boxes, regex, hashes, tag, phrase, closing, number; without an answer thinking, unclosed, none."""

    answer: str | None
    how: str


_BOX = re.compile(r"\\(?:boxed|fbox|framebox)(?![a-zA-Z])\s*")
_BETWEEN = re.compile(
    r"(?:[\s$,;.:*()\[\]&、，；。]|\\[,;:!\[\]() ]|\\q?quad|\\text\s*\{\s*(?:and|or)\s*\}"
    r"|\b(?:and|or|und|oder|et|ou|maybe|perhaps|possibly|alternatively|either|also)\b|和|或)*",
    re.IGNORECASE,
)
_PHRASE = re.compile(
    r"(?:answer(?:\s+to\s[^.:\n]{1,60}?)?\s*(?:is|are|=|:|'s(?=\s)|would be)|antwort\s*(?:ist|lautet|:)"
    r"|réponse\s*(?:finale\s*)?(?:est|:)|respuesta\s*(?:final\s*)?(?:es|:)"
    r"|risposta\s*(?:finale\s*)?(?:è|:)|resposta\s*(?:final\s*)?(?:é|:)|ответ\s*[:—-]?"
    r"|答案\s*(?:是|为|：|:)|答え\s*(?:は|：|:)|정답은|답은"
    r"|jibu\s*(?:ni\b|:)|উত্তর\s*(?:হল|হলো|:)|సమాధానం\s*:?|คำตอบ\s*(?:คือ|:))"
    r"[ \t*_:：}]*\n?[ \t*_]*",
    re.IGNORECASE,
)
_TAG = re.compile(r"<answer>", re.IGNORECASE)
_NUMBER = re.compile(r"[-−+]?\$?(?:\d[\d,]*(?:\.\d+)?|\.\d+)(?:/\d+)?(?:\s?\\?%)?")
_EXCLAMATION = re.compile(r"[!?]\**\s+(?=[A-Z])")
_SENTENCE_END = re.compile(r"(?<=[^\s.])[.。](?=\s|$)|[;；](?=\s)|(?<=[.。])\s|\n")
_DISPLAY = re.compile(r"^\s*(?:\$\$(.+?)\$\$|\$(.+?)\$|\\\((.+?)\\\)|\\\[(.+?)\\\])", re.DOTALL)
_GOES_ON = re.compile(r"\s*(?:\\?%|°|,|and\b|or\b)")
_REASON = re.compile(
    r"[,;:]?\s+(?:because|since|so that|as (?:we|it|the)|and not|but not|not(?=\s+[\d$\\])|rather than|instead of)\b"
    r"|[,;]\s+(?:which|where|the other)\b|\s+\((?=[^()]*(?:[a-zA-Z]{3,}|=))[^()]*\)\W*$",
    re.IGNORECASE,
)
_REMARK = re.compile(
    r"[,;]\s+(?:(?!and\b|or\b)[a-z]{2,}\b|or (?:about|approximately|roughly|equivalently|simply)\b|i\.\s?e\b|e\.\s?g\b)"
)
_FORMULA = re.compile(r"\d|\\[a-zA-Z]")
_FACE = re.compile(r"\s[:;]-?[)(DP]\W*$")
_ENVIRONMENT = re.compile(r"\s*\\begin\{")
_PROSE_FIRST = re.compile(r"(?!(?:yes|no|not|option|choice|all|none|any)\b)[A-Za-z]{2,}\s(?=.*\d)", re.IGNORECASE)
_NEXT_PROBLEM = re.compile(
    r"\n\s*(?:#+\s*|\*\*)?(?:Q|Question|Problem|Exercise|Human|User|Instruction)\s*\d*\s*(?:\*\*)?[:.]"
)
_MOST_PROBLEMS = 8
_MOST_WORDS = 4
_TAIL = 4_000


def extract(text: str, policy: ExtractionPolicy) -> ExtractedAnswer:
    """The last final answer of `text` in a form that `policy` lets count, and which form it was.

    Raises ConfigError for a regular expression that does not compile.
    """
    visible = after_thinking(text)
    if visible is None:
        return ExtractedAnswer(None, "thinking")
    steps: list[Callable[[str], ExtractedAnswer | None]]
    if policy.relaxed_extraction:
        visible = _first_reply(visible)
        steps = [
            _regex(policy.extract_regex),
            _boxed,
            _hashes,
            _tagged,
            _stated_phrase,
            _closing,
            _phrase,
            _last_number,
        ]
    elif policy.extract_from_boxed and policy.strict_extraction:
        steps = [_boxed]
    elif policy.extract_from_boxed:
        steps = [_boxed, _hashes, _tagged, _phrase]
    else:
        steps = [_regex(policy.extract_regex)]
    for step in steps:
        if (extracted := step(visible)) is not None:
            return extracted
    return ExtractedAnswer(None, "none")


def _last(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    match = None
    for last_match in pattern.finditer(text):
        match = last_match
    return match


def _regex(pattern: str) -> Callable[[str], ExtractedAnswer | None]:
    try:
        compiled = re.compile(pattern, re.MULTILINE)
    except re.error as error:
        raise ConfigError(f"extract_regex '{pattern}' is not a regular expression: {error}.") from error

    def step(text: str) -> ExtractedAnswer | None:
        last = _last(compiled, text)
        if last is None:
            return None
        groups = [g for g in last.groups() if g is not None]
        answer = (groups[0] if groups else last.group()).strip()
        inner = _boxed(answer)
        answer = answer if "\n" in answer else stated(answer)
        return ExtractedAnswer(inner.answer if inner is not None and inner.answer else answer or None, "regex")

    return step


def _boxed(text: str) -> ExtractedAnswer | None:
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
        return ExtractedAnswer(None, "unclosed")
    distinct = list(dict.fromkeys(" ".join(c.split()) for c in run if c.strip()))
    if not distinct:
        return ExtractedAnswer(None, "none")
    return ExtractedAnswer(", ".join(distinct), "box" if len(distinct) == 1 else "boxes")


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


def _hashes(text: str) -> ExtractedAnswer | None:
    at = text.rfind("####")
    if at < 0:
        return None
    line = text[at + 4 :].lstrip("# \t").split("\n", 1)[0].strip()
    return ExtractedAnswer(line, "hashes") if line else None


def _tagged(text: str) -> ExtractedAnswer | None:
    last = _last(_TAG, text)
    if last is None:
        return None
    body = text[last.end() :]
    end = body.lower().find("</answer>")
    if end < 0:
        return ExtractedAnswer(None, "unclosed")
    inner = body[:end].strip()
    box = _boxed(inner)
    return box if box is not None else ExtractedAnswer(inner or None, "tag")


def _phrase(text: str) -> ExtractedAnswer | None:
    rest = _behind_phrase(text)
    if rest is None:
        return None
    if (inside := _display(rest)) is not None:
        return ExtractedAnswer(inside.strip(), "phrase")
    line = _SENTENCE_END.split(rest, maxsplit=1)[0].strip(" \t*_`")
    return ExtractedAnswer(line, "phrase") if line else None


def _stated_phrase(text: str) -> ExtractedAnswer | None:
    """As `_phrase`, reduced to its statement; none of prose without a number, as in "the answer is easy to check"."""
    rest = _behind_phrase(text)
    answer = stated(rest) if rest is not None else ""
    if not answer or (_FORMULA.search(answer) is None and len(answer.split()) > _MOST_WORDS):
        return None
    return ExtractedAnswer(answer, "phrase")


def _behind_phrase(text: str) -> str | None:
    tail = text[-_TAIL:]
    last = _last(_PHRASE, tail)
    return None if last is None else tail[last.end() :]


def _display(rest: str) -> str | None:
    """What stands between dollars where the answer is just that."""
    display = _DISPLAY.match(rest)
    if display is None or _GOES_ON.match(rest[display.end() :].split("\n", 1)[0]):
        return None
    return next(g for g in display.groups() if g is not None)


def stated(rest: str) -> str:
    """The answer that text begins with: up to the end of its statement, without reasons and remarks."""
    if (inside := _display(rest)) is not None:
        return value_of(inside) or inside.strip()
    if _ENVIRONMENT.match(rest) and (formulas := mask(rest).formulas):
        return value_of(formulas[0]) or ""
    line = _EXCLAMATION.split(_SENTENCE_END.split(rest, maxsplit=1)[0], maxsplit=1)[0].strip(" \t*_`")
    line = _REASON.split(_FACE.sub("", line), maxsplit=1)[0].strip(" \t*_`")
    if (remark := _REMARK.search(line)) is not None and _FORMULA.search(line, 0, remark.start()):
        line = line[: remark.start()]
    if _PROSE_FIRST.match(line):
        masked = mask(line)
        return stated_answer(masked.text, masked) or line
    return line


def _closing(text: str) -> ExtractedAnswer | None:
    answer = closing_answer(text[-_TAIL:])
    return ExtractedAnswer(answer, "closing") if answer else None


def _first_reply(text: str) -> str:
    """Without the next problem that a base model goes on with after it has answered."""
    for match in islice(_NEXT_PROBLEM.finditer(text), _MOST_PROBLEMS):
        before = text[: match.start()]
        if any(step(before) is not None for step in (_boxed, _hashes, _tagged, _phrase)):
            return before
    return text


def _last_number(text: str) -> ExtractedAnswer | None:
    last = _last(_NUMBER, text[-_TAIL:])
    return ExtractedAnswer(last.group().rstrip(","), "number") if last is not None else None
