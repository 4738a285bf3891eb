# SPDX-License-Identifier: Apache-2.0
"""Whether two answers of a vote have the same value: what the grader says of a reply and a gold, both ways."""

from __future__ import annotations

from functools import lru_cache

from newskills_math.normalise import tidy_answer
from newskills_math.values.equal import Options
from newskills_math.values.exact import PlainNumber, are_close, plain_number
from newskills_math.verdict import equal

_OPTIONS = Options(symbolic=False)
_LONGEST = 1_000
"""Characters of an answer that is compared by more than its text."""


def same_answer(left: str, right: str) -> bool:
    """Return whether each of the two would be right where the other is the right answer.

    The grader forgives what one side leaves out, so that alone 5 is 5 cm and 50 is 50%; between votes a percentage
    is the number that it stands for. Computer algebra, which needs a process with a deadline, is left out.
    """
    if left == right:
        return True
    if max(len(left), len(right)) > _LONGEST:
        return False
    a, b = _read_number(left), _read_number(right)
    if a is not None and b is not None:
        return a.value == b.value or are_close(a.value, b.value, a.places, b.places, _OPTIONS.digits)
    return equal(left, right, _OPTIONS)[0] is True and equal(right, left, _OPTIONS)[0] is True


@lru_cache(maxsize=1 << 14)
def _read_number(text: str) -> PlainNumber | None:
    number = plain_number(tidy_answer(text))
    if number is None or not number.percent:
        return number
    places = number.places + 2 if number.places >= 0 else -1
    return PlainNumber(number.value / 100, places)
