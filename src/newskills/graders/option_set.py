# SPDX-License-Identifier: Apache-2.0
"""Choice questions of which several options may be right: the letters have to be exactly those."""

from __future__ import annotations

import re
from string import ascii_uppercase
from typing import Annotated

from msgspec import Meta, Struct

from newskills.base.protocols import Grader
from newskills.base.records import Row, Score
from newskills.graders.math.extraction import ExtractionPolicy, extract_by_policy
from newskills.graders.math.grader import MathGrader
from newskills.graders.multichoice import count_choices
from newskills.graders.reading.replies import no_answer_score, ungradable_score, verdict_score, visible_reply
from newskills_math.values.tolerance import is_near

_ANSWER_LINE = re.compile(
    r"(?i:answers?|答案)\W{0,8}(?i:is|are|是|为)?\W{0,8}"
    r"((?:[A-Z]{1,10}(?![A-Za-z0-9'])|and\b|[\s,;&.、，和与()\[\]{}$*+/\"]){1,40})"
)
_NEXT_SENTENCE = re.compile(r"[.;]\s+\(?[A-Z]\)?\s+\Z")
_COMMAND = re.compile(r"\\(?:[a-zA-Z]{1,12}|[,;:! ])")
_BETWEEN = re.compile(r"\b(?:and|options?|choices?)\b|[\s,;&.、，和与()\[\]{}$*+/\"']", re.IGNORECASE)


class OptionSetConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`++eval_config.*` of `eval_type=option_set`."""

    partial: Annotated[
        float,
        Meta(ge=0, le=1, description="credit for each right option where some are missing and none is wrong"),
    ] = 0.0


class OptionSetGrader:
    """Reads the last box, else the last line `Answer: A, C`. Fields: `predicted_answer` (`AC`), `symbolic_correct`."""

    name = "option_set"
    version = "3"
    answer_keys = ("generation",)
    gold_is_text = True
    Config = OptionSetConfig

    def __init__(self, config: OptionSetConfig = OptionSetConfig()) -> None:  # noqa: B008 - frozen
        self.config = config
        self._stamp = f"{self.name}@{self.version}"

    def gold_reply(self, record: Row) -> str:
        return f"\\boxed{{{record.get('expected_answer')}}}"

    def same_replies(self, record: Row) -> list[str]:
        """Return replies with the letters in another order, and with words between them."""
        chosen = sorted_letters(str(record.get("expected_answer") or ""), 26)
        forms = (f"\\boxed{{{', '.join(reversed(chosen))}}}", f"\\boxed{{\\text{{{chosen}}}}}")
        return [*forms, f"Answer: {' and '.join(chosen)}", f"**Answer: ({'), ('.join(chosen)})**"]

    def grade(self, record: Row) -> Score:
        expected = sorted_letters(str(record.get("expected_answer") or ""), 26)
        if not expected:
            return ungradable_score(
                self._stamp, "the record has no letters as expected_answer", _score_fields(None, None)
            )
        chosen = self._chosen_letters(record)
        if not chosen:
            return no_answer_score(self._stamp, record, _score_fields(None, False))
        if chosen == expected:
            return verdict_score(self._stamp, True, _score_fields(chosen, True), "all options")
        credit, why = 0.0, "other options"
        if set(chosen) < set(expected):
            credit, why = self.config.partial * len(chosen), "some of the options"
        return verdict_score(self._stamp, False, _score_fields(chosen, credit or False), why, credit)

    def _chosen_letters(self, record: Row) -> str:
        text = visible_reply(str(record.get("generation") or "")) or ""
        extracted = extract_by_policy(text, ExtractionPolicy(extract_from_boxed=True))
        if extracted.answer is not None and extracted.how in ("box", "boxes"):
            return sorted_letters(extracted.answer, count_choices(record))
        lines = [
            sorted_letters(_letters_of_line(match, text), count_choices(record))
            for match in _ANSWER_LINE.finditer(text)
        ]
        if lines:
            return lines[-1]
        return ""


class JEEBenchGrader:
    """By `answer_type`: letters, several letters (a quarter for each that is right if none is wrong), numbers.

    Numbers may be off by 0.01, as the examination allows it (Arora et al. 2023, arXiv:2305.15074).
    """

    name = "jeebench"
    version = "4"
    answer_keys = ("generation",)
    gold_is_text = True

    def __init__(self) -> None:
        number = MathGrader()
        self._graders: dict[str, Grader] = {
            "MCQ": OptionSetGrader(),
            "MCQ(multiple)": OptionSetGrader(OptionSetConfig(partial=0.25)),
            "Integer": number,
            "Numeric": number,
        }

    def gold_reply(self, record: Row) -> str:
        return f"\\boxed{{{record.get('expected_answer')}}}"

    def grade(self, record: Row) -> Score:
        grader = self._graders.get(str(record.get("answer_type")))
        if grader is None:
            answer_types = ", ".join(self._graders)
            return ungradable_score(
                f"{self.name}@{self.version}", f"answer_type is none of {answer_types}", _score_fields(None, None)
            )
        score = grader.grade(record)
        score.grader = f"{self.name}@{self.version}"
        answer, gold = score.fields["predicted_answer"], str(record.get("expected_answer"))
        if (
            score.outcome == "wrong"
            and isinstance(grader, MathGrader)
            and is_near(answer, gold, 0, 0.01, strict=False)
        ):
            return verdict_score(score.grader, True, _score_fields(answer, True), "within 0.01")
        return score


def _letters_of_line(match: re.Match[str], text: str) -> str:
    """Return the letters of an answer line, without the one that begins the next sentence: "A. B is wrong"."""
    if text[match.end(1) : match.end(1) + 1].isalpha():
        goes_on = _NEXT_SENTENCE.search(match[1])
    else:
        goes_on = None
    if goes_on:
        return match[1][: goes_on.start()]
    return match[1]


def sorted_letters(text: str, count: int) -> str:
    """Return the letters that the text is a list of, sorted (`C, A` → `AC`); '' where it is anything else.

    Only the first `count` letters of the alphabet are options.
    """
    bare = _BETWEEN.sub("", _COMMAND.sub("", text))
    allowed = ascii_uppercase[:count]
    if not bare or len(bare) > count or any(letter not in allowed for letter in bare):
        return ""
    if len(set(bare)) == len(bare):
        return "".join(sorted(set(bare)))
    return ""


def _score_fields(answer: str | None, correct: bool | float | None) -> Row:
    return {"predicted_answer": answer, "symbolic_correct": correct}
