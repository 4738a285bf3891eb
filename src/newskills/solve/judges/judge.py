# SPDX-License-Identifier: Apache-2.0
"""One question to a judge about an answer that is in the row already."""

from __future__ import annotations

from newskills.base.protocols import Kit
from newskills.base.reading.reply_text import without_thinking
from newskills.base.records import Attempt, Request, Row, Sample
from newskills.solve.chat import MAIN, ask
from newskills.solve.parts import SolverParts

PREFIX = "judge_"
"""Of the fields about the judge's own generation: those about the answer's stay as they are."""
ASKED = f"{PREFIX}request"
"""Field with the hash of what the judge was asked."""
ANSWERS = ("generation", "predicted_answer")
YES = "The predicted answer is the expected text.\nJudgement: Yes"
NO = "There is no predicted answer.\nJudgement: No"

RULED = "A rule decides on this answer."

NOTHING = "(the answer was lost: there is nothing to judge)"
"""In the place of a request that is never sent."""


class JudgeSolver:
    """The judge's text under the generation key, and who judged: `judge_model`, `judge_prompt`, `judge_temperature`.

    A row whose answer is unscored is not judged: it stays unscored, with the cause it has.
    """

    def __init__(self, parts: SolverParts) -> None:
        self._chat = parts.chat
        self._key = parts.chat.generation_key
        self._stamp = {f"{PREFIX}{name}": value for name, value in parts.stamp.items()}

    def request(self, sample: Sample) -> Request:
        """Return the question to the judge. Raises DataError for a row that the prompt does not fit."""
        if is_lost(sample.row):
            return Request(prompt=NOTHING)
        return self._chat.request(Sample(id=sample.id, row=shown_to_judges(sample.row)))

    async def solve(self, sample: Sample, request: Request, kit: Kit) -> Attempt:
        if (settled := self._fields_without_question(sample.row)) is not None:
            judge_key = {} if is_lost(sample.row) else {ASKED: request.key()}
            return Attempt(sample_id=sample.id, key=request.key(), fields={**settled, **judge_key})
        reply = await ask(kit.models[MAIN], request)
        attempt = await self._chat.attempt(sample, request, reply, self._chat.text(reply))
        fields = {self._key: attempt.fields[self._key], **self._stamp}
        fields |= {f"{PREFIX}{k.lstrip('_')}": v for k, v in attempt.fields.items() if k != self._key}
        attempt.fields = {**fields, ASKED: request.key()}
        return attempt

    def _fields_without_question(self, row: Row) -> Row | None:
        """Return the fields of a row that needs no question; None for a row that needs one."""
        if not is_lost(row):
            return None
        return {self._key: None, "outcome": "unscored", "outcome_cause": row.get("outcome_cause") or "provider"}


class MathJudgeSolver(JudgeSolver):
    """Asks no model where `predicted_answer` is missing (No) or is the text of `expected_answer` (Yes)."""

    def _fields_without_question(self, row: Row) -> Row | None:
        if (lost := super()._fields_without_question(row)) is not None or "predicted_answer" not in row:
            return lost
        answer, expected = row["predicted_answer"], row.get("expected_answer")
        if answer is None or not str(answer).strip():
            return {self._key: NO, f"{PREFIX}prefilled": True}
        if expected is not None and str(answer).strip() == str(expected).strip():
            return {self._key: YES, f"{PREFIX}prefilled": True}
        return None


class RuledJudgeSolver(JudgeSolver):
    """Asks no model about a row with a `rule`, on which the grader decides."""

    def _fields_without_question(self, row: Row) -> Row | None:
        if (lost := super()._fields_without_question(row)) is not None or not row.get("rule"):
            return lost
        return {self._key: RULED, f"{PREFIX}prefilled": True}


def shown_to_judges(row: Row) -> Row:
    """Return the row, with what prompts of judges ask for under either name that benchmarks give it.

    `question` is `problem`, too, and the whole answer is the predicted one where no rule has looked for that. An answer
    that is null is shown as an empty text.
    """
    row = {**row, **{name: "" for name in ANSWERS if row.get(name, "") is None}}
    question = row.get("problem", row.get("question"))
    question_fields = {} if question is None else {"problem": question, "question": question}
    answer = row.get("generation")
    answer_fields = {"predicted_answer": without_thinking(answer)} if isinstance(answer, str) else {}
    return {**question_fields, **answer_fields, **row}


def is_lost(row: Row) -> bool:
    """Return whether the answer is unscored."""
    return row.get("outcome") == "unscored" and bool(row.get("error"))
