# SPDX-License-Identifier: Apache-2.0
"""Final answers in texts, and whether two are the same: the math grader as a handful of functions.

Nothing of a text is ever evaluated.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from newskills.graders.math.extraction import ExtractionPolicy, extract_by_policy
from newskills.graders.voting.values import same_answer
from newskills.run.rewarding.graders import BatchGrader
from newskills_math.normalise import comparison_key, tidy_answer

_LONGEST_ANSWER = 500
"""Characters of an answer that stands alone."""
_HASHES = re.compile(r"####[ \t]*([^\n]+)")


def extract_boxed_answer(text: str) -> str | None:
    """Return the content of the last \\boxed{…}, including braces inside it; None where there is no whole box.

    >>> extract_boxed_answer(r"So \\boxed{\\frac{1}{2}}.")
    '\\\\frac{1}{2}'
    """
    extracted = extract_by_policy(text, ExtractionPolicy())
    if extracted.how in ("box", "boxes"):
        return extracted.answer
    return None


def extract_gsm8k_answer(text: str) -> str | None:
    """Return the text after the last ####, without thousands commas; None where there is none.

    >>> extract_gsm8k_answer("4 + 4 = 8\\n#### 1,008")
    '1008'
    """
    matches = _HASHES.findall(text)
    if not matches:
        return None
    return str(matches[-1]).strip().replace(",", "")


def extract_answer_from_solution(text: str) -> str | None:
    """Return the final answer in any form that the grader knows: a box, ####, <answer>, `the answer is`.

    >>> extract_answer_from_solution("The answer is 12.")
    '12'
    """
    return extract_by_policy(text, ExtractionPolicy()).answer


def normalize_answer(answer: str) -> str:
    """Return the normal form in which answers are compared as texts.

    >>> normalize_answer(r" $\\dfrac{1}{2}$. ") == normalize_answer(r"\\frac12")
    True
    """
    return comparison_key(tidy_answer(answer))


def is_equivalent_answer(left: str, other: str) -> bool | None:
    """Return whether the math grader takes `left` for `other`; None where it cannot tell.

    Quick steps first; what they leave open is decided in a process with a deadline.
    """
    if same_answer(left, other):
        return True
    return _grade_pairs([(left, other)])[0]


def verify_answer(response: str | None, ground_truth: str) -> bool | None:
    """Return whether a whole response, or an answer alone, gives the answer of `ground_truth`, a solution or an answer
    alone.

    No answer is wrong. None where the grader cannot tell: never counted as wrong.

    >>> verify_answer(r"3 + 4 is 7, so \\boxed{7}.", "3 + 4 = 7\\n#### 7")
    True
    """
    return verify_answers([(response, ground_truth)])[0]


def verify_answers(pairs: Sequence[tuple[str | None, str]]) -> list[bool | None]:
    """Return `verify_answer` of many (response, ground truth), on all cores."""
    answers = [(_answer_in(response), _answer_in(truth) or truth) for response, truth in pairs]
    open_pairs = [
        (answer, truth) for answer, truth in answers if answer is not None and not same_answer(answer, truth)
    ]
    verdicts: Iterator[bool | None] = iter(())
    if open_pairs:
        verdicts = iter(_grade_pairs(open_pairs))
    checked: list[bool | None] = []
    for answer, truth in answers:
        if answer is None:
            checked.append(False)
        elif same_answer(answer, truth):
            checked.append(True)
        else:
            checked.append(next(verdicts))
    return checked


def _answer_in(text: str | None) -> str | None:
    """Return the final answer of a text; a single short line in which none is marked is itself the answer."""
    if text is None or not text.strip():
        return None
    extracted = extract_by_policy(text, ExtractionPolicy())
    if extracted.answer is not None or extracted.how != "none":
        return extracted.answer
    line = text.strip()
    if "\n" not in line and len(line) <= _LONGEST_ANSWER:
        return line
    return None


def _grade_pairs(pairs: Sequence[tuple[str, str]]) -> list[bool | None]:
    """Return the grader's verdicts on answers, None for unscored ones; the grader runs in processes with a deadline."""
    records = [{"predicted_answer": answer, "expected_answer": truth} for answer, truth in pairs]
    with BatchGrader("math", {"use_predicted_answer_key": True}) as verdict:
        scores = verdict(records)
    return [None if score.outcome == "unscored" else score.outcome == "correct" for score in scores]
