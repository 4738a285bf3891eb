# SPDX-License-Identifier: Apache-2.0
"""What a reply answers: without its reasoning, and without what a model goes on with after its own end.

The library that extracts answers has it; all rooms read replies by these functions.
"""

from __future__ import annotations

from newskills_math.extraction.thinking import (
    after_first_thinking,
    after_thinking,
    has_ended_thinking,
    join_turns,
    split_thinking,
    thinks_once,
    without_thinking,
)

__all__ = [
    "after_first_thinking",
    "after_thinking",
    "has_ended_thinking",
    "join_turns",
    "split_thinking",
    "thinks_once",
    "without_thinking",
]
