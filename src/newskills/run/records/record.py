# SPDX-License-Identifier: Apache-2.0
"""What a record holds: the fields of its row, and those of the answer."""

from __future__ import annotations

from typing import Any

from newskills.base.records import Row, Sample
from newskills.run.planning.config import GenerationConfig

VERDICT_FIELDS = ("outcome", "outcome_cause", "grader", "why")


def record_of(config: GenerationConfig, sample: Sample, fields: Row) -> Row:
    """Return the row with the output fields `fields`, and no verdict that others gave."""
    row = sample.row
    if config.prompt_format == "openai":
        row = _without_parts(row, frozenset(config.drop_content_types))
    record = {**row, **fields}
    for name in VERDICT_FIELDS:
        if name in row and name not in fields:
            del record[name]
    if str(row.get("id")) != sample.id:
        record["id"] = sample.id
    return record


def _without_parts(row: Row, kinds: frozenset[str]) -> Row:
    """Return `row` without message parts of `kinds` (audio, images as data), which do not belong into records."""
    messages = row.get("messages")
    if not kinds or not isinstance(messages, list):
        return row
    return {**row, "messages": [_message_without(message, kinds) for message in messages]}


def _message_without(message: Any, kinds: frozenset[str]) -> Any:
    if not isinstance(message, dict) or not isinstance(message.get("content"), list):
        return message
    kept = [part for part in message["content"] if not (isinstance(part, dict) and part.get("type") in kinds)]
    return {**message, "content": kept}
