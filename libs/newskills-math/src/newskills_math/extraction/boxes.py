# SPDX-License-Identifier: Apache-2.0
"""Boxes: what the last of them holds, or those side by side, which are one answer."""

from __future__ import annotations

import re
from typing import NamedTuple

_GLM_BEGIN, _GLM_END = "<|begin_of_box|>", "<|end_of_box|>"
_BOX = re.compile(rf"\\(?:boxed|fbox|framebox)(?![a-zA-Z])\s*|{re.escape(_GLM_BEGIN)}")
_NAME = (
    r"(?:[A-Za-z](?:_\{?\w{1,8}\}?)?'?|[a-zA-Z]\([\w,]{1,8}\)"
    r"|\\(?:alpha|beta|gamma|delta|theta|phi|varphi|lambda|mu|sigma|omega)|\\text\s?\{[^{}]{1,30}\})"
)
_NAMED = re.compile(rf"(?<![\w\\^+*/}})-])(?P<name>{_NAME})\s?&?\s?=\s?&?\s?(?:\$|\\\(|\\displaystyle)?\s?\Z")
_NAME_REACH, _SIGN_REACH = 60, 24
_LONGEST_BEFORE_BOX = _GLM_BEGIN.index("box")
_LONE_NUMBER = re.compile(r"\\boxed\{(-?[0-9][0-9.,]*)\}")
_DIGIT = re.compile(r"[0-9]")
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
_UNNESTED = r"(?:[^{}\\]++|\\.)*+"
_BRACED = rf"\{{{_UNNESTED}\}}"
_BRACED_TWICE = rf"\{{(?:[^{{}}\\]++|\\.|{_BRACED})*+\}}"
_SHALLOW = re.compile(rf"\{{((?:[^{{}}\\]++|\\.|{_BRACED_TWICE})*+)\}}", re.DOTALL)
"""Braces with at most two pairs in each other inside: most boxes."""
_LONGEST_PLACEHOLDER = 80
_SMALL_BOX = re.compile(r"\\(?:boxed|fbox|framebox)\s?\{((?:[^{}]|\{[^{}]{0,80}\}){0,80})\}")
_BETWEEN = re.compile(
    r"(?:[\s$,;:.*()\[\]&、，；。]|\\[,;:!\[\]() ]|\\q?quad|\\text\s*\{\s*(?:and|or)\s*\}|(?<=\n)[ \t]*[-•+][ \t]"
    r"|\b(?:and|or|und|oder|et|ou|maybe|perhaps|possibly|alternatively|either|also|else|another|other|possible|possibility"
    r"|it|the|a|is|could|might|may|can|be|answer)\b|和|或|及"
    r")*",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"\b(?:the|it|this)\b[^.]*\b(?:is|be)\b", re.IGNORECASE)
_HEDGE = re.compile(
    r"\b(?:or|maybe|perhaps|possibly|alternatively|either|also|else|another|other|could|might|may)\b", re.I
)
_WRAPPED = re.compile(r"\\(?:text|textbf|mathrm|mathbf|textit)\s?\{([^{}]*)\}")
_PLACEHOLDER = re.compile(
    r"[.\s]*\.[.\s]*\.[.\s]*|[…\s]*…[…\s]*|_{2,}|\?{2,}|\\[lcd]?dots[bco]?|(?:(?:your|the|a|an|my|final|correct|numerical|numeric|integer|short|single|option|answer"
    r"|choice)\s){0,5}(?:answer|result|solution|letter|value|response|choice|option|number|expression)s?(?:\shere)?",
    re.IGNORECASE,
)


class Boxes(NamedTuple):
    """`answer` is None where the last box never closes (`unclosed`); `different` is how many boxes are in it."""

    answer: str | None
    different: int


def last_boxes(text: str) -> Boxes | None:
    """Return what the last box holds, and its neighbours; None where no box holds an answer.

    Boxes side by side are one list; each with a name of its own, they are what these names are equal to. Boxes that
    only show where an answer goes, such as `\\boxed{...}`, count for nothing.
    """
    first = text.find("box")
    if first < 0:
        return None
    lone = _LONE_NUMBER.match(text, max(first - 1, 0))
    if lone is not None and text.find("box", lone.end()) < 0:
        return Boxes(lone[1], 1)
    run: list[tuple[str, str]] = []
    end, position = 0, max(first - _LONGEST_BEFORE_BOX, 0)
    while (match := _BOX.search(text, position)) is not None:
        if match[0] == _GLM_BEGIN:
            content, stop = _between_glm_marks(text, match.end())
        else:
            content, stop = _box_content(text, match.end())
        if content is None:
            return Boxes(None, 0)
        position = stop
        if is_placeholder(content):
            continue
        named = _box_name(text, end, match.start())
        if run and not _is_side_by_side(text, end, match.start() if named is None else named.start()):
            run.clear()
        run.append((named["name"] if named is not None else "", " ".join(content.split())))
        end = stop
    if len(run) == 1:
        return Boxes(run[0][1], 1)
    distinct = list(dict.fromkeys(run))
    names = [name for name, _ in distinct]
    if len(distinct) > 1 and all(names) and len(set(names)) == len(names):
        return Boxes(", ".join(f"{name}={content}" for name, content in distinct), len(distinct))
    contents = list(dict.fromkeys(content for _, content in distinct))
    if contents:
        return Boxes(", ".join(contents), len(contents))
    return None


def without_placeholders(text: str) -> str:
    """Return a text without boxes that only show where an answer goes."""
    return _SMALL_BOX.sub(lambda box: "" if is_placeholder(box[1]) else box[0], text)


def is_placeholder(content: str) -> bool:
    """Return whether a text only shows where an answer goes; none with a digit does."""
    if len(content) > _LONGEST_PLACEHOLDER or _DIGIT.search(content) is not None:
        return False
    plain = _WRAPPED.sub(r"\1", content).strip(" <>[]{}()$")
    return not content.strip() or _PLACEHOLDER.fullmatch(plain) is not None


def _box_name(text: str, start: int, stop: int) -> re.Match[str] | None:
    """Return the name to which the box at `stop` is set equal, behind `start`."""
    if text.find("=", max(stop - _SIGN_REACH, 0), stop) < 0:
        return None
    return _NAMED.search(text, max(stop - _NAME_REACH, start), stop)


def _is_side_by_side(text: str, start: int, stop: int) -> bool:
    """Return whether what stands between two boxes only lists them: no sentence that ends with another answer."""
    if _BETWEEN.fullmatch(text, start, stop) is None:
        return False
    return _SENTENCE.search(text, start, stop) is None or _HEDGE.search(text, start, stop) is not None


def _between_glm_marks(text: str, start: int) -> tuple[str | None, int]:
    """Return (what GLM's models put between their marks of an answer, the place behind it)."""
    stop = text.find(_GLM_END, start)
    if stop < 0:
        return (None, len(text))
    return (text[start:stop], stop + len(_GLM_END))


def _box_content(text: str, start: int) -> tuple[str | None, int]:
    """Return (what the box holds, the place behind it); `\\boxed 5` holds one word."""
    if start >= len(text):
        return None, start
    if text[start] != "{":
        stop = start
        while stop < len(text) and not text[stop].isspace() and text[stop] not in "$,;":
            stop += 1
        return (text[start:stop].rstrip(".") or None), stop
    shallow = _SHALLOW.match(text, start)
    if shallow is not None:
        return shallow[1], shallow.end()
    depth = 0
    for brace in _BRACE.finditer(text, start):
        if brace.group() == "{":
            depth += 1
        elif brace.group() == "}":
            depth -= 1
            if depth == 0:
                return text[start + 1 : brace.start()], brace.end()
    return None, len(text)
