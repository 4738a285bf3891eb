# SPDX-License-Identifier: Apache-2.0
"""Function calling: one turn against accepted calls, conversations against the state they lead to."""

from __future__ import annotations

import re
from typing import Annotated

from msgspec import Meta, Struct

from newskills.base.records import Cause, Outcome, Row, Score
from newskills.graders.reading.replies import visible_reply
from newskills.graders.tool_calls.calls import answered_calls
from newskills.graders.tool_calls.conversation import conversation_problem
from newskills.graders.tool_calls.match import calls_difference
from newskills.graders.tool_calls.wanted import wanted_calls, wanted_turns

_SHOWN = 300
_LOOSE = re.compile(r"[,./\-_*^()]")
_MISFITS = (KeyError, ValueError, TypeError, AttributeError, StopIteration)


class ToolCallConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`++eval_config.*` of `eval_type=bfcl`."""

    timeout: Annotated[float, Meta(gt=0, description="CPU seconds for one record")] = 10.0
    model: Annotated[str, Meta(description="kept for older scripts: calls are read in the same way for all")] = ""
    partial_eval: Annotated[bool, Meta(description="kept for older scripts: any part of the rows is graded")] = (
        False
    )


class ToolCallGrader:
    """The record's `check` says what counts. Field written: `is_correct`.

    calls         the calls of the answer are those of `ground_truth`, in any order, in the record's `language`
    irrelevance   no call that can be read
    relevance     at least one
    conversation  `tool_call_turns`: services in the wanted state after each turn, all wanted answers seen
    answer        one of `ground_truth` stands in the last message, which must not be a call
    """

    name = "bfcl"
    version = "5"
    Config = ToolCallConfig

    def __init__(self, config: ToolCallConfig = ToolCallConfig()) -> None:  # noqa: B008 - frozen
        self.config = config

    def gold_reply(self, record: Row) -> str | Row | None:
        """Return the wanted calls, as an API reports them; an empty text where no function helps."""
        check = record["check"]
        if check == "calls":
            return {"tool_calls": wanted_calls(record)}
        if check == "conversation":
            return {"tool_call_turns": wanted_turns(record)}
        if check == "relevance":
            return {"tool_calls": [{"name": record["function"][0]["name"], "arguments": {}}]}
        if check == "answer":
            return str(record["ground_truth"][0])
        return ""

    def grade(self, record: Row) -> Score:
        try:
            return self._grade_check(record)
        except _MISFITS as error:
            why = f"the record does not fit: {type(error).__name__}: {str(error)[:_SHOWN]}"
            return self._make_score("unscored", why, "data")

    def _grade_check(self, record: Row) -> Score:
        check = record["check"]
        if check == "conversation":
            return self._score_problem(record, conversation_problem(record.get("tool_call_turns") or (), record))
        if check == "answer":
            return self._score_problem(record, _missing_answer(record), nothing=True)
        calls, readable = answered_calls(record)
        if check == "calls" and readable:
            return self._score_problem(
                record,
                calls_difference(calls, record["ground_truth"], record["function"], record["language"]),
                nothing=not calls,
            )
        if check == "calls":
            return self._score_problem(record, "a call cannot be read")
        called = bool(calls) and readable
        if check == "relevance":
            problem = "" if called else "no call"
            return self._score_problem(record, problem, nothing=not calls)
        if check != "irrelevance":
            raise ValueError(f"check is '{check}'")
        if not calls and not str(record.get("generation") or "").strip() and _is_cut_short(record):
            return self._make_score("no_answer", "cut off before the answer", "truncation")
        return self._score_problem(record, "a call where none helps" if called else "")

    def _score_problem(self, record: Row, problem: str, *, nothing: bool = False) -> Score:
        """Return the score of a record with that problem; it is correct where there is none.

        `nothing`: no call was made; then an empty text is no answer, nor is one that was cut off.
        """
        if not problem:
            return self._make_score("correct", "as wanted", None)
        cause: Cause = "truncation" if _is_cut_short(record) else "model"
        if nothing and (_is_cut_short(record) or not str(record.get("generation") or "").strip()):
            return self._make_score("no_answer", problem, cause)
        return self._make_score("wrong", problem[:_SHOWN], cause)

    def _make_score(self, outcome: Outcome, why: str, cause: Cause | None) -> Score:
        is_correct = None if outcome == "unscored" else outcome == "correct"
        fields: Row = {"is_correct": is_correct}
        return Score(outcome=outcome, fields=fields, grader=f"{self.name}@{self.version}", why=why, cause=cause)


def _is_cut_short(record: Row) -> bool:
    return record.get("finish_reason") == "length"


def _missing_answer(record: Row) -> str:
    text = _plain_text(visible_reply(_last_message(record)) or "")
    stands = any(re.search(rf"\b{re.escape(_plain_text(answer))}\b", text) for answer in record["ground_truth"])
    if stands:
        return ""
    return "none of the answers stands in the text"


def _last_message(record: Row) -> str:
    """Return the last message of the `conversation`, where there is one, else the `generation`.

    The `generation` of a conversation may hold what was said between searches, too.
    """
    turns = [turn for turn in record.get("conversation") or () if turn.get("role") == "assistant"]
    if not turns:
        return str(record.get("generation") or "")
    if turns[-1].get("tool_calls"):
        return ""
    return str(turns[-1].get("content") or "")


def _plain_text(text: str) -> str:
    return _LOOSE.sub("", text).lower().replace("'", '"')
