# SPDX-License-Identifier: Apache-2.0
"""The program in a model's answer."""

from __future__ import annotations

import re

from msgspec import Struct

_FENCE = "```"
_END_OF_THOUGHT = "</think>"
_THOUGHT = "<think>"
_SHORT_MARKS = ("", "py")
_WHOLE = re.compile(r"(?:async def|def|class|import|from)\s|[@#]")
_MOST_BLOCKS = 100
_ENDING = re.compile(r"^[ \t]*```", re.MULTILINE)


class ExtractedCode(Struct, frozen=True, kw_only=True):
    """`code` is empty where there is none. `how`: language, generic, whole, unclosed, thinking, empty."""

    code: str
    how: str


def extract_code(text: str, language: str = "python", wanted: str = "") -> ExtractedCode:
    """What follows the first `</think>`, and of it the last block marked `language`, else the last unmarked one.

    `wanted`: name of a Python function; a block that defines it goes before later ones that do not, such as tests of
    it or examples. A text without any block is the program itself. A block, or a thought, that never ends holds none.
    """
    _, ended, answer = text.partition(_END_OF_THOUGHT)
    if not ended:
        if _THOUGHT in text:
            return ExtractedCode(code="", how="thinking")
        answer = text
    answer = answer.replace("\r", "")
    if _FENCE not in answer:
        return ExtractedCode(code=answer.strip("\n").rstrip(), how="whole" if answer.strip() else "empty")
    start = answer.rfind(_FENCE + language)
    if start < 0:
        return _generic(answer)
    last = _closed(answer, start, "language")
    if not wanted or last.how == "unclosed" or last.code[:1].isspace() or _defines(last.code, wanted):
        return last
    for _ in range(_MOST_BLOCKS):
        if (start := answer.rfind(_FENCE + language, 0, start)) < 0:
            break
        if _defines((block := _closed(answer, start, "language")).code, wanted):
            return block
    return last


def _defines(code: str, name: str) -> bool:
    return (
        re.search(rf"^(?:(?:async\s+)?def\s+{re.escape(name)}\b|{re.escape(name)}\s*=)", code, re.MULTILINE)
        is not None
    )


def _closed(answer: str, start: int, how: str) -> ExtractedCode:
    """The block whose opening fence stands at `start`; the rest of that line is its mark.

    A fence within a line closes, too, where none stands at the beginning of one. A whole program moves to the left as
    far as the fence is indented.
    """
    _, _, body = answer[start + len(_FENCE) :].partition("\n")
    end = _ENDING.search(body)
    cut = end.start() if end else body.find(_FENCE)
    if cut < 0:
        return ExtractedCode(code="", how="unclosed")
    code = body[:cut].strip("\n").rstrip()
    before = answer[answer.rfind("\n", 0, start) + 1 : start]
    if before and before.isspace():
        moved = re.sub(rf"^[ \t]{{1,{len(before)}}}", "", code, flags=re.MULTILINE)
        code = moved if _WHOLE.match(moved) else code
    return ExtractedCode(code=code, how=how if code else "empty")


def _generic(answer: str) -> ExtractedCode:
    """The last block without a mark, or with a short one; else the last of all. Fences open and close in turn."""
    fences = [match.start() for match in re.finditer(_FENCE, answer)]
    if len(fences) % 2:
        return ExtractedCode(code="", how="unclosed")
    blocks = list(zip(fences[::2], fences[1::2], strict=True))
    plain = [(start, end) for start, end in blocks if _mark(answer, start) in _SHORT_MARKS]
    start, end = (plain or blocks)[-1]
    return _closed(answer[: end + len(_FENCE)], start, "generic")


def _mark(answer: str, start: int) -> str:
    return answer[start + len(_FENCE) :].partition("\n")[0].strip().lower()
