# SPDX-License-Identifier: Apache-2.0
"""Named JSON shapes that an answer can be made to follow (`++structured_output`)."""

from __future__ import annotations

from newskills.base.records import Row

_HLE_JUDGE: Row = {
    "type": "object",
    "properties": {
        "extracted_final_answer": {"type": "string"},
        "reasoning": {"type": "string"},
        "correct": {"type": "string", "enum": ["yes", "no"]},
        "confidence": {"type": "integer", "minimum": 0, "maximum": 100},
    },
    "required": ["extracted_final_answer", "reasoning", "correct", "confidence"],
    "additionalProperties": False,
}

RESPONSE_FORMATS: dict[str, Row] = {
    "HLE_JUDGE_AA": {
        "type": "json_schema",
        "json_schema": {"name": "verdict", "strict": True, "schema": _HLE_JUDGE},
    }
}
"""Name → `response_format` of the OpenAI API (structured outputs)."""
