# SPDX-License-Identifier: Apache-2.0
"""Messages that a program has kept, in OpenAI's shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from newskills.base.records import Row

KEPT = ("tool_calls", "tool_call_id", "reasoning_content")


def kept_message(raw: Mapping[str, Any]) -> Row:
    """Return the kept fields of a message, with its text as one string.

    >>> kept_message({"role": "user", "content": [{"type": "text", "text": "a"}], "x": 1})
    {'role': 'user', 'content': 'a'}
    """
    return {
        "role": raw.get("role"),
        "content": _content_text(raw.get("content")),
        **{name: raw[name] for name in KEPT if raw.get(name)},
    }


def _content_text(content: object) -> str:
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    if content is None:
        return ""
    return str(content)
