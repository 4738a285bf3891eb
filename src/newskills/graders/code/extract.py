# SPDX-License-Identifier: Apache-2.0
"""The program in a model's answer."""

from __future__ import annotations

import re

from msgspec import Struct

_FENCE = "```"
_END_OF_THOUGHT = "</think>"
_THOUGHT = "<think>"
_SHORT_MARKS = ("", "py")
_ENDING = re.compile(r"^[ \t]*```", re.MULTILINE)


class ExtractedCode(Struct, frozen=True, kw_only=True):
    """`code` is empty where there is none. `how`: language, generic, whole, unclosed, thinking, empty."""

    code: str
    how: str


def extract_code(text: str, language: str = "python") -> ExtractedCode:
    """What follows the first `</think>`, and of it the last block marked `language`, else the last unmarked one.

    A text without any block is the program itself. A block, or a thought, that never ends holds no program.
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
    if start >= 0:
        return _closed(answer[start + len(_FENCE) :], "language")
    return _generic(answer)


def _closed(text: str, how: str) -> ExtractedCode:
    """`text` begins behind an opening fence; the rest of that line is the mark. A fence within a line closes, too,
    where none stands at the beginning of one."""
    _, _, body = text.partition("\n")
    end = _ENDING.search(body)
    cut = end.start() if end else body.find(_FENCE)
    if cut < 0:
        return ExtractedCode(code="", how="unclosed")
    code = body[:cut].strip("\n").rstrip()
    return ExtractedCode(code=code, how=how if code else "empty")


def _generic(answer: str) -> ExtractedCode:
    """The last block without a mark, or with a short one; else the last of all. Fences open and close in turn."""
    pieces = answer.split(_FENCE)
    if len(pieces) % 2 == 0:
        return ExtractedCode(code="", how="unclosed")
    blocks = pieces[1::2]
    plain = [block for block in blocks if block.partition("\n")[0].strip().lower() in _SHORT_MARKS]
    return _closed((plain or blocks)[-1] + _FENCE, "generic")
