# SPDX-License-Identifier: Apache-2.0
"""The code in a reply that goes on with a program: in a fence, between `<code>` and `</code>`, or up to END SOLUTION.

Prompts of DS-1000 (arXiv:2211.11501) end with `BEGIN SOLUTION` and `<code>`: models close these, with a fence and
without, and go on to explain. Its authors' program takes what stands before the first of these marks.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from newskills.graders.code.extract import ExtractedCode, text_with_code

_FENCE = re.compile(r"^[ \t]*```([^`\n]*)$", re.MULTILINE)
_ENDS = re.compile(r"</code>")
_LAST = re.compile(r"^[ \t]*END SOLUTION", re.MULTILINE)
_OPENS = "<code>"
_MARKS = frozenset({"", "py", "python", "python3"})
_LONGEST = 100_000


def extract_snippet(text: str) -> ExtractedCode:
    """Return what stands before the first mark, if that is a program; else the last block, or what a `<code>` begins.

    A thought that never ends holds no code, nor a block that neither a fence nor another mark ends.
    """
    answer_text = text_with_code(text)
    if answer_text is None:
        return ExtractedCode(code="", how="thinking")
    answer = _before_end_mark(answer_text)
    fences = list(_FENCE.finditer(answer))
    first = _cut_marks(answer)
    if _is_program(first):
        return ExtractedCode(code=first, how="whole")
    if blocks := list(_python_blocks(answer, fences)):
        programs = list(filter(_is_program, blocks))
        return ExtractedCode(code=(programs or blocks)[-1], how="language")
    tagged = list(filter(_is_program, map(_cut_marks, answer.split(_OPENS)[1:])))
    if tagged or (first and not fences):
        return ExtractedCode(code=(tagged or [first])[-1], how="whole")
    how = "unclosed" if fences else "empty"
    return ExtractedCode(code="", how=how)


def _before_end_mark(answer: str) -> str:
    """Return what stands before END SOLUTION, with the fence that the line may have left open."""
    mark = _LAST.search(answer)
    if mark is None or not answer[: mark.start()].strip():
        return answer
    head = answer[: mark.start()]
    if len(_FENCE.findall(head)) % 2:
        return f"{head}```"
    return head


def _python_blocks(answer: str, fences: Sequence[re.Match[str]]) -> Iterator[str]:
    """Yield the code of each block that is marked as Python, or not marked."""
    for fence, closing in zip_longest(fences[::2], fences[1::2]):
        inside_end = closing.start() if closing else len(answer)
        inside = answer[fence.end() : inside_end]
        if (
            fence[1].strip().lower() in _MARKS
            and (closing or _ENDS.search(inside))
            and (code := _cut_marks(inside))
        ):
            yield code


def _cut_marks(text: str) -> str:
    """Cut the text at the first mark that ends code, and remove the marks that begin it."""
    ends = [match.start() for match in (_ENDS.search(text), _FENCE.search(text)) if match]
    code = text[: min(ends, default=len(text))].replace(_OPENS, "")
    return code.strip("\n").rstrip()


def _is_program(code: str) -> bool:
    """Return whether `code` is Python that does something, indented or not: no words that make an expression."""
    if not code or len(code) > _LONGEST:
        return False
    indented = code[:1].isspace()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            source = f"if True:\n{code}" if indented else code
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    if indented and isinstance(tree.body[0], ast.If):
        body = tree.body[0].body
    else:
        body = tree.body
    return any(
        not isinstance(statement, ast.Expr) or isinstance(statement.value, ast.Call | ast.Await)
        for statement in body
    )
