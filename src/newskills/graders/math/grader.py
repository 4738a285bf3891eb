# SPDX-License-Identifier: Apache-2.0
"""The math grader: record → verdict."""

from __future__ import annotations

from typing import Any

from newskills.base.records import Cause, Row, Score
from newskills.graders.math.config import MathConfig
from newskills.graders.math.extraction import ExtractedAnswer, ExtractionPolicy, extract_by_policy
from newskills.graders.math.restated import restates_problem
from newskills.graders.voting.values import same_answer
from newskills_math.normalise import tidy_answer
from newskills_math.spellings import answer_spellings
from newskills_math.values import symbolic
from newskills_math.values.equal import Options
from newskills_math.values.exact import plain_number
from newskills_math.values.tolerance import is_near
from newskills_math.verdict import Verdict, equal, in_time

VERSION = "14"


def policy_of(config: MathConfig) -> ExtractionPolicy:
    """Return which forms of an answer count by these settings."""
    return ExtractionPolicy(
        config.extract_from_boxed, config.extract_regex, config.relaxed_extraction, config.strict_extraction
    )


class MathGrader:
    """Compares the final answer of `generation` with `expected_answer`, and with each of `accepted_answers`, if any.

    Fields written: `predicted_answer` (text or null), `symbolic_correct` (true, false, or null where undecided).
    Runs in a worker with a deadline, since the symbolic step and a user's regular expression may not end.
    """

    name = "math"
    version = VERSION
    answer_keys = ("generation", "predicted_answer")
    gold_is_text = True
    Config = MathConfig
    same_answer = staticmethod(same_answer)

    def __init__(self, config: MathConfig = MathConfig()) -> None:  # noqa: B008 - frozen
        self.config = config
        self._policy = policy_of(config)
        self._options = Options(config.numeric_precision)
        self._stamp = f"{self.name}@{self.version}"

    def preload(self) -> None:
        """Import what undecided answers need; called once before workers are forked."""
        symbolic.preload()

    def gold_reply(self, record: Row) -> str | None:
        return self._reply_with(as_text(record.get("expected_answer")))

    def same_replies(self, record: Row) -> list[str]:
        """Return replies with the gold answer spelt otherwise."""
        gold = as_text(record.get("expected_answer"))
        replies = [self._reply_with(spelling) for spelling in answer_spellings(gold)] if gold else []
        return [text for text in replies if text]

    def _reply_with(self, answer: str | None) -> str | None:
        """Return a reply that states the answer; None where a pattern of the user's own says what an answer is like."""
        if answer is None:
            return None
        if self._policy.extract_from_boxed:
            return f"\\boxed{{{answer}}}"
        if self.config.extract_regex != MathConfig().extract_regex:
            return None
        return f"The final answer is {answer}"

    def grade(self, record: Row) -> Score:
        extracted = self._extract_answer(record)
        gold = as_text(record.get("expected_answer"))
        if gold is None or not gold.strip():
            return self._make_score("unscored", extracted, None, "the record has no expected_answer", "data")
        if extracted.answer is None or not extracted.answer.strip():
            return self._no_answer(extracted, record)
        golds = [gold, *map(str, record.get("accepted_answers") or ())]
        correct, step = self._judge_answer(extracted.answer, golds)
        if correct and restates_problem(extracted.answer, golds, record):
            correct, step = False, "the answer only repeats the problem"
        if correct is None:
            return self._make_score("unscored", extracted, None, step, "grader")
        return self._make_score(
            "correct" if correct else "wrong", extracted, correct, step, None if correct else "model"
        )

    def _judge_answer(self, answer: str, golds: list[str]) -> Verdict:
        """Compare the answer with the right ones in turn, up to the first that it is; undecided if it may be one."""
        if len(golds) == 1 and not (self.config.relative_tolerance or self.config.absolute_tolerance):
            return self._compare_answers(answer, golds[0])
        return in_time(lambda: self._compared_with_all(answer, golds), golds)

    def _compared_with_all(self, answer: str, golds: list[str]) -> Verdict:
        verdict = self._compare_answers(answer, golds[0])
        for gold in golds[1:]:
            if verdict[0]:
                break
            other = self._compare_answers(answer, gold)
            if other[0] or (other[0] is None and verdict[0] is not None):
                verdict = other
        return verdict

    def _compare_answers(self, answer: str, gold: str) -> Verdict:
        if self.config.take_modulo is not None:
            return self._same_remainder(answer, gold, self.config.take_modulo), "modulo"
        correct, step = equal(answer, gold, self._options)
        if not correct and self._is_near(answer, gold):
            return True, "within the tolerance"
        return correct, step

    def _extract_answer(self, record: Row) -> ExtractedAnswer:
        if self.config.use_predicted_answer_key or "generation" not in record:
            return ExtractedAnswer(as_text(record.get("predicted_answer")), "field")
        return extract_by_policy(as_text(record["generation"]) or "", self._policy)

    def _no_answer(self, extracted: ExtractedAnswer, record: Row) -> Score:
        cut_short = extracted.how in ("thinking", "unclosed") or record.get("finish_reason") == "length"
        return self._make_score(
            "no_answer",
            ExtractedAnswer(None, extracted.how),
            False,
            "no answer",
            "truncation" if cut_short else "model",
        )

    def _make_score(
        self, outcome: Any, extracted: ExtractedAnswer, correct: bool | None, why: str, cause: Cause | None
    ) -> Score:
        return Score(
            outcome=outcome,
            fields={"predicted_answer": extracted.answer, "symbolic_correct": correct},
            grader=self._stamp,
            why=f"{why} ({extracted.how})",
            cause=cause,
        )

    def _is_near(self, pred: str, gold: str) -> bool:
        share, off = self.config.relative_tolerance, self.config.absolute_tolerance
        return bool(share or off) and is_near(pred, gold, share, off)

    @staticmethod
    def _same_remainder(pred: str, gold: str, modulo: int) -> bool:
        a, b = plain_number(tidy_answer(pred)), plain_number(tidy_answer(gold))
        if a is None or b is None or a.value.denominator != 1 or b.value.denominator != 1:
            return False
        return int(a.value) % modulo == int(b.value) % modulo


def as_text(value: object) -> str | None:
    """Return a field of a record as text; a list as its elements with commas between."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, list):
        return ", ".join(str(v) for v in value)
    return str(value)
