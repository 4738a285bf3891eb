# SPDX-License-Identifier: Apache-2.0
"""The program in a model's answer."""

from __future__ import annotations

import ast
import re
import textwrap
import warnings

from msgspec import Struct

from newskills.base.reading.reply_text import after_first_thinking

FENCE = "```"
_TILDES = re.compile(r"^([ \t]*(?:(?:[-*+]|\d{1,3}[.)])[ \t]+)?)~~~+[ \t]*([\w+#.-]*)[^\n`]*$", re.MULTILINE)
_LIST_MARK = re.compile(r"[ \t]*(?:[-*+]|\d{1,3}[.)])[ \t]+")
_SHORT_MARKS = ("", "py")
_LONGEST_OPEN_BLOCK = 100_000
_MOST_CUTS = 20
_WHOLE = re.compile(r"(?:async def|def|class|import|from)\s|[@#]")
_MOST_BLOCKS = 100
_DEFINITION = re.compile(r"^(?:async def|def|class)\s", re.MULTILINE)
_TOP_LEVEL = re.compile(r"^[^\s)\]}#]", re.MULTILINE)
_ENDING = re.compile(r"^[ \t]*```", re.MULTILINE)


class ExtractedCode(Struct, frozen=True, kw_only=True):
    """`code` is empty where there is none. `how`: language, generic, whole, unclosed, thinking, empty."""

    code: str
    how: str


def extract_code(text: str, language: str = "python", wanted: str = "") -> ExtractedCode:
    """Return the code of what follows the first reasoning: its last block marked `language`, else its last unmarked
    one.

    `wanted`: name of a Python function; a block that defines it goes before later ones that do not, such as tests of
    it or examples. A text without any block is the program itself. A block that never ends holds none, unless it is a
    whole Python program, or one with a whole function of the wanted name; nor does reasoning that never ends.
    """
    answer = text_with_code(text)
    if answer is None:
        return ExtractedCode(code="", how="thinking")
    if FENCE not in answer:
        how = "whole" if answer.strip() else "empty"
        return ExtractedCode(code=answer.strip("\n").rstrip(), how=how)
    start = answer.rfind(FENCE + language)
    if start < 0:
        last = _last_generic_block(answer, wanted)
    else:
        last = _block_at(answer, start, "language", wanted)
    if not wanted or last.code[:1].isspace() or _defines_name(last.code, wanted):
        return last
    marked = _wanted_block(answer, FENCE + language, "language", wanted)
    return marked or _wanted_block(answer, FENCE, "generic", wanted) or last


def text_with_code(text: str) -> str | None:
    """Return what follows the first reasoning of a reply, each fence written with backticks; None for no end of it."""
    answer = after_first_thinking(text, FENCE)
    if answer is None:
        return None
    answer = answer.replace("\r", "")
    if "~~~" in answer and FENCE not in answer:
        return _TILDES.sub(rf"\1{FENCE}\2", answer)
    return answer


def _wanted_block(answer: str, fence: str, how: str, wanted: str) -> ExtractedCode | None:
    """Return the last block behind `fence` that defines the wanted function; None where there is none."""
    start = len(answer)
    for _ in range(_MOST_BLOCKS):
        if (start := answer.rfind(fence, 0, start)) < 0:
            return None
        if _defines_name((block := _block_at(answer, start, how, wanted)).code, wanted):
            return block
    return None


def _defines_name(code: str, name: str) -> bool:
    return (
        re.search(rf"^(?:(?:async\s+)?def\s+{re.escape(name)}\b|{re.escape(name)}\s*=)", code, re.MULTILINE)
        is not None
    )


def _block_at(answer: str, start: int, how: str, wanted: str) -> ExtractedCode:
    """Return the block whose opening fence stands at `start`; the rest of that line is its mark.

    A fence within a line closes, too, where none stands at the beginning of one. A whole program moves to the left as
    far as the fence is indented.
    """
    _, _, body = answer[start + len(FENCE) :].partition("\n")
    end = _ENDING.search(body)
    cut = end.start() if end else body.find(FENCE)
    before = answer[answer.rfind("\n", 0, start) + 1 : start]
    if cut < 0:
        code = _whole_program(_dedented_program(body.strip("\n").rstrip(), before), wanted)
        how_read = how if code else "unclosed"
        return ExtractedCode(code=code, how=how_read)
    code = _dedented_program(body[:cut].strip("\n").rstrip(), before)
    return ExtractedCode(code=code, how=how if code else "empty")


def _dedented_program(code: str, before: str) -> str:
    """Move a whole program as far to the left as what stands before its fence is wide: blanks, or the mark of a
    list."""
    if not before or not (before.isspace() or _LIST_MARK.fullmatch(before)):
        return code
    moved = re.sub(rf"^[ \t]{{1,{len(before)}}}", "", code, flags=re.MULTILINE)
    if moved[:1].isspace():
        moved = textwrap.dedent(code)
    if _WHOLE.match(moved):
        return moved
    return code


def _whole_program(code: str, wanted: str) -> str:
    """Return the code of a block without an end, if it is whole Python that defines something; else ''.

    Where it has the wanted function, what follows that and is no Python (prose, a line that was cut off) is left out.
    """
    if len(code) > _LONGEST_OPEN_BLOCK or not (
        _defines_name(code, wanted) if wanted else _DEFINITION.search(code)
    ):
        return ""
    if _is_python(code):
        return code
    if wanted:
        starts = [match.start() for match in _TOP_LEVEL.finditer(code)]
    else:
        starts = []
    for start in reversed(starts[-_MOST_CUTS:]):
        shorter = code[:start].rstrip()
        if not _defines_name(shorter, wanted):
            return ""
        if _is_python(shorter):
            return shorter
    return ""


def _is_python(code: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _last_generic_block(answer: str, wanted: str) -> ExtractedCode:
    """Return the last block without a mark, or with a short one; else the last of all. Fences open and close in
    turn."""
    fences = [match.start() for match in re.finditer(FENCE, answer)]
    if len(fences) % 2:
        return _block_at(answer, fences[-1], "generic", wanted)
    blocks = list(zip(fences[::2], fences[1::2], strict=True))
    plain = [(start, end) for start, end in blocks if _fence_mark(answer, start) in _SHORT_MARKS]
    start, end = (plain or blocks)[-1]
    return _block_at(answer[: end + len(FENCE)], start, "generic", wanted)


def _fence_mark(answer: str, start: int) -> str:
    return answer[start + len(FENCE) :].partition("\n")[0].strip().lower()
