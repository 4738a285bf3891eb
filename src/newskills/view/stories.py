# SPDX-License-Identifier: Apache-2.0
"""Why a sample is not right, in the same six words for the terminal, reports and pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from newskills.base.reading.json_values import object_or_empty
from newskills.base.records import INSTRUMENT, Row
from newskills.view.records import GOLD_FIELDS, as_text, gold_of
from newskills.view.verdicts import answer_span

Story = Literal["truncation", "tool", "instrument", "format", "no_answer", "content"]
STORIES: Mapping[Story, str] = {
    "truncation": "the reply was truncated at the token limit",
    "tool": "a tool or a program failed",
    "instrument": "the instrument failed, so that there is no verdict",
    "format": "the reply has the correct answer, but it was not extracted",
    "no_answer": "the reply has no answer",
    "content": "the model gave another answer",
}
STORY_NAMES: Mapping[Story, str] = {
    "truncation": "truncated",
    "tool": "tool failed",
    "instrument": "instrument failed",
    "format": "format or extraction",
    "no_answer": "no answer",
    "content": "another answer",
}
"""As they are shown."""
STORY_FIELDS: Mapping[str, Any] = {
    "generation": Any,
    "num_code_timeouts": Any,
    "tool_metrics": Any,
    "finish_reason": Any,
    **dict.fromkeys(GOLD_FIELDS, Any),
}
"""What of a record tells its story."""
LONGEST_GOLD = 2_000


def story_of(row: Row, outcome: str, cause: str | None) -> Story:
    """Return the failure reason of a sample that is not right, with the fields `STORY_FIELDS`."""
    return story_by_ending(outcome, cause, row.get("finish_reason")) or story_by_record(row, outcome)


def story_by_ending(outcome: str, cause: str | None, finish: object) -> Story | None:
    """Return the failure reason that is known without the record; None: only the record tells."""
    if cause == "truncation" or finish == "length":
        return "truncation"
    if cause in ("tool", "sandbox"):
        return "tool"
    if outcome in ("unscored", "damaged") or cause in INSTRUMENT:
        return "instrument"
    return None


def story_by_record(row: Row, outcome: str) -> Story:
    """Return the failure reason of a reply that ended by itself, with a verdict."""
    errors = object_or_empty(row.get("tool_metrics")).get("num_tool_errors")
    if errors or row.get("num_code_timeouts"):
        return "tool"
    gold = gold_of(row)
    if gold and 0 < len(gold[1]) < LONGEST_GOLD and answer_span(as_text(row.get("generation")), gold[1]):
        return "format"
    if outcome == "no_answer":
        return "no_answer"
    return "content"
