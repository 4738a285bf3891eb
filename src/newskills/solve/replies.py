# SPDX-License-Identifier: Apache-2.0
"""The replies of one sample that took several requests, taken together."""

from __future__ import annotations

from collections.abc import Sequence

from newskills.base.records import Logprobs, Reply, Usage

REPETITION = "repetition"


def join_replies(replies: Sequence[Reply]) -> Reply:
    """Join replies to one: texts joined, tokens summed (as they are billed), the last finish reason.

    A count that one of them lacks is unknown for all. Log-probabilities are those of the generated tokens, in order;
    what was put between the replies has none.
    """
    first, last = replies[0], replies[-1]
    thoughts = [reply.reasoning for reply in replies if reply.reasoning]
    return Reply(
        text="".join(reply.text for reply in replies),
        reasoning="\n\n".join(thoughts) if thoughts else last.reasoning,
        finish_reason=last.finish_reason,
        usage=sum_usages([reply.usage for reply in replies]),
        logprobs=_join_logprobs([reply.logprobs for reply in replies]),
        model=last.model,
        raw_message=last.raw_message,
        started=first.started,
        ended=last.ended,
    )


def sum_usages(usages: Sequence[Usage]) -> Usage:
    """Return the sum of the counts; one that a reply lacks is unknown."""
    return Usage(
        **{name: sum_counts([getattr(used, name) for used in usages]) for name in Usage.__struct_fields__}
    )


def stopped_on_repetition(reply: Reply) -> bool:
    """Return whether the server ended the text because it repeated itself (vLLM's `repetition_detection`)."""
    flagged = (reply.raw_message or {}).get("stopped_on_repetition")
    return reply.finish_reason == REPETITION or flagged is True


def sum_counts(counts: Sequence[int | None]) -> int | None:
    """Return the sum of the counts; None where one of them is unknown."""
    present = [count for count in counts if count is not None]
    if len(present) == len(counts):
        return sum(present)
    return None


def _join_logprobs(parts: Sequence[Logprobs | None]) -> Logprobs | None:
    present = [part for part in parts if part is not None]
    if len(present) < len(parts) or not present:
        return None
    tops = [part.top_logprobs for part in present if part.top_logprobs is not None]
    return Logprobs(
        tokens=[token for part in present for token in part.tokens],
        logprobs=[value for part in present for value in part.logprobs],
        top_logprobs=[row for rows in tops for row in rows] if len(tops) == len(present) else None,
    )
