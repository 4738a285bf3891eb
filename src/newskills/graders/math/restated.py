# SPDX-License-Identifier: Apache-2.0
"""Answers that only repeat the problem: `17^9 \\div 17^7` where it asks for that, which equals the answer and is none.

What a policy copies from its prompt is worth nothing, however equal it is. Values that a problem names and that are
its answer as they stand (a number, a fraction, a root) are no repetition.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from newskills.base.records import Row
from newskills_math.normalise import comparison_key, tidy_answer

_DRESS = re.compile(r"\\(?:left|right|displaystyle|[,;:!]|q?quad)(?![a-zA-Z])|[\s${}()~.]+|\\\(|\\\)|\\\[|\\\]")
_SIZED = re.compile(r"\\[dt](?=frac|binom)")
_VALUE = re.compile(r"-?(?:\d*\\(?:pi|sqrt)?\d*|\\frac\d+|\d+[/%]?\d*|[a-zA-Z]|\d*\\sqrt\d+)")
_WORK = re.compile(
    r"[-+*/^=÷×·!]|\\(?:frac|cdot|times|div|sqrt|binom|log|ln|sum|prod|int|lim|(?:arc)?(?:sin|cos|tan))"
)
_WORD = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{4,}")
_SHORTEST, _LONGEST = 3, 4000


def restates_problem(answer: str, golds: Sequence[str], record: Row) -> bool:
    """Return whether `answer`, equal to one of `golds`, is work to do that the record's problem gives word for word."""
    problems = (record.get("problem"), record.get("question"))
    return any(_is_copied(answer, golds, problem) for problem in problems if isinstance(problem, str))


def _is_copied(answer: str, golds: Sequence[str], problem: str) -> bool:
    """Return whether `problem` holds `answer` as work to do."""
    if answer in golds or len(answer) > _LONGEST:
        return False
    piece, whole = _bare_formula(answer), _bare_formula(problem)
    if len(piece) < _SHORTEST or piece not in whole or _VALUE.fullmatch(piece):
        return False
    has_words = _WORD.search(answer) is not None  # an option in words is a small part of a problem, not half of it
    if has_words:
        is_work = len(piece) * 2 > len(whole)
    else:
        last_side = piece.rpartition("=")[2]
        is_work = _WORK.search(piece) is not None and _VALUE.fullmatch(last_side) is None
    return is_work and comparison_key(tidy_answer(answer)) not in {
        comparison_key(tidy_answer(gold)) for gold in golds
    }


def _bare_formula(text: str) -> str:
    return _DRESS.sub("", _SIZED.sub(r"\\", text))
