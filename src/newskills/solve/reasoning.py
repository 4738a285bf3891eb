# SPDX-License-Identifier: Apache-2.0
"""What to keep of a generated text: the part before a stop phrase, the part behind the reasoning."""

from __future__ import annotations

from collections.abc import Sequence

from newskills.base.reading.reply_text import after_thinking, has_ended_thinking
from newskills.base.records import Row


def trim_at_stop(text: str, phrases: Sequence[str], *, keep_phrase: bool = False) -> str:
    """Cut `text` at the earliest occurrence of any phrase; the phrase stays if `keep_phrase`."""
    cuts = [(at, phrase) for phrase in phrases if phrase and (at := text.find(phrase)) >= 0]
    if not cuts:
        return text
    at, phrase = min(cuts, key=lambda cut: (cut[0], -len(cut[1])))
    if keep_phrase:
        return text[: at + len(phrase)]
    return text[:at]


def split_reasoning(text: str, key: str, end: str, *, separate: bool = False) -> Row:
    """Return record fields for a text that reasons before it answers.

    The answer is what follows the last `end`, stripped, or another mark that ends reasoning; without any the thinking
    was cut off and there is no answer. `separate`: the server has already taken the reasoning out, so a text without
    a mark is the answer.
    """
    _, end_tag, answer = text.rpartition(end)
    if not end_tag and has_ended_thinking(text):
        end_tag, answer = end, after_thinking(text) or ""
    finished = bool(end_tag) or (separate and bool(text.strip()))
    return {
        key: answer.strip() if finished else "",
        "_full_generation": text,
        "_generation_finished_thinking": finished,
    }
