# SPDX-License-Identifier: Apache-2.0
"""Settings of budget forcing, which help pages read without what carries it out (`thinking.py`)."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct


class BudgetForcing(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How thinking is begun, continued and ended (`++budget_forcing.*`), beside `++inference.thinking_budget`."""

    minimum: Annotated[
        int, Meta(ge=0, description="tokens of thinking below which an end of thinking is replaced by `wait`")
    ] = 0
    begin: Annotated[
        str, Meta(description="text added to the prompt where the chat template does not begin the thinking")
    ] = ""
    end: Annotated[
        str | None,
        Meta(
            description="text inserted when the budget is spent; default: end_reasoning_string between line breaks. "
            "What follows end_reasoning_string in it, or all of it without one, begins the answer"
        ),
    ] = None
    wait: Annotated[str, Meta(min_length=1, description="text that continues thinking below the minimum")] = (
        "\nWait"
    )
    max_continuations: Annotated[int, Meta(ge=0, description="largest number of continuations of one sample")] = 8
