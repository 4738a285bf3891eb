# SPDX-License-Identifier: Apache-2.0
"""Budget forcing on text endpoints (s1, https://arxiv.org/abs/2501.19393): thinking ends at a number of tokens, and is
continued below another."""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import Struct

from newskills.base.protocols import Model, Tokenizer
from newskills.base.records import Reply, Request, Row
from newskills.solve.budget_forcing import BudgetForcing
from newskills.solve.dialogue import ask_next, continued, generated_tokens
from newskills.solve.replies import join_replies


class ThinkingLimits(Struct, frozen=True, kw_only=True):
    """What is forced on one sample: settings, the budget, and the mark with which the model ends its thinking.

    budget  largest number of tokens; "none": an empty thinking is inserted; None: no limit
    mark    text that ends thinking, as the model writes it
    """

    forcing: BudgetForcing
    budget: int | Literal["none"] | None
    mark: str

    @property
    def tokens(self) -> int | None:
        """Largest number of tokens; None where there is no limit, or no thinking."""
        if isinstance(self.budget, int):
            return self.budget
        return None

    @property
    def end(self) -> str:
        """Text that is inserted when the budget is spent."""
        if self.forcing.end is None:
            return f"\n{self.mark}\n\n"
        return self.forcing.end

    @property
    def lead(self) -> str:
        """The part of `end` that begins the answer."""
        before, mark, after = self.end.partition(self.mark)
        if mark:
            return after.lstrip()
        return before.lstrip()

    @property
    def opening_tag(self) -> str:
        """Tag that begins thinking, by that which ends it; empty where the mark is not a closing tag."""
        if self.mark.startswith("</") and self.mark.endswith(">"):
            return f"<{self.mark[2:]}"
        return ""

    def prompt(self, prompt: str) -> str:
        """Return the prompt with what begins the thinking; and ends it at once, where there is to be none."""
        begun = f"{prompt}{self.forcing.begin}"
        if self.budget != "none":
            return begun
        if not self.forcing.begin and not begun.rstrip().endswith(self.opening_tag):
            begun += f"{self.opening_tag}\n"
        return f"{begun}{self.end}"

    def is_thinking(self, prompt: str, text: str) -> bool:
        """Return whether `text`, which follows `prompt`, is thinking: a model that did not begin is not forced."""
        tag = self.opening_tag
        return (
            bool(self.forcing.begin) or not tag or prompt.rstrip().endswith(tag) or text.lstrip().startswith(tag)
        )

    def inserted_texts(self) -> Row:
        """Return what is inserted and when, for `--explain` and the key of a request."""
        row: Row = {"budget": self.budget, "ends_at": self.mark, "end": self.end}
        if self.forcing.begin:
            row["begin"] = self.forcing.begin
        if self.forcing.minimum:
            row |= {
                "minimum": self.forcing.minimum,
                "wait": self.forcing.wait,
                "max_continuations": self.forcing.max_continuations,
            }
        return row


class ForcedReply(Struct, kw_only=True):
    """A reply in the making: what was thought and what was answered, as generated and inserted.

    lead      the end of `end`, which belongs to the answer
    ended     whether the thinking has come to an end, or never began
    reached   whether the conversation still fits the context of the model
    spent     tokens of thinking
    """

    replies: list[Reply] = []
    thought: str = ""
    end: str = ""
    lead: str = ""
    answer: str = ""
    ended: bool = False
    reached: bool = True
    spent: int = 0
    forced_ends: int = 0
    continuations: int = 0

    @property
    def full_text(self) -> str:
        """All that follows the prompt."""
        return f"{self.thought}{self.end}{self.answer}"

    def reply(self) -> Reply:
        """Return all requests as one reply, its thinking apart from its text."""
        whole = join_replies(self.replies)
        whole.text, whole.reasoning = f"{self.lead}{self.answer}", self.thought
        whole.usage.reasoning_tokens = self.spent
        if not self.reached:
            whole.finish_reason = "length"
        return whole

    def fields(self) -> Row:
        """Return what a record says about what was forced."""
        return {"num_forced_ends": self.forced_ends, "num_forced_continuations": self.continuations}


async def reply_with_thinking(
    model: Model, request: Request, limits: ThinkingLimits, counter: Tokenizer | None = None
) -> ForcedReply:
    """Return the reply to a request for a text, whose prompt `limits.prompt` has made. Raises what the model raises.

    The model is stopped at its end of thinking, so that the server counts the tokens of both parts, and asked for the
    answer in a request of its own. Inserted texts are part of the prompt: they are not generated, and not counted.
    """
    total = request.inference.tokens_to_generate or 0
    forced = ForcedReply()
    if limits.budget == "none":
        forced.lead, forced.ended, forced.forced_ends = limits.lead, True, 1
    elif not await _force_thinking(forced, model, request, limits, counter):
        forced.thought, forced.answer, forced.spent, forced.ended = "", forced.thought, 0, True
        if forced.replies[-1].finish_reason != "length":
            return forced
        total -= limits.tokens or total
    elif not forced.ended and forced.reached and forced.spent < total:
        forced.thought = _without_partial(forced.thought, limits.mark)
        forced.end, forced.lead = limits.end, limits.lead
        forced.ended, forced.forced_ends = True, 1
    remaining = total - forced.spent
    if forced.ended and remaining > 0:
        turn = _part_request(continued(request, forced.full_text, ""), remaining, request.stop)
        reply = await ask_next(model, turn, forced.replies)
        forced.reached = reply is not None
        if reply is not None:
            forced.answer += reply.text
    return forced


async def _force_thinking(
    forced: ForcedReply, model: Model, request: Request, limits: ThinkingLimits, counter: Tokenizer | None
) -> bool:
    """Let the model think up to its budget, and to its minimum at least; return whether it thinks at all."""
    forcing = limits.forcing
    allowed = limits.tokens or request.inference.tokens_to_generate or 0
    while True:
        turn = _part_request(
            continued(request, forced.thought, ""), allowed - forced.spent, [*request.stop, limits.mark]
        )
        reply = await ask_next(model, turn, forced.replies)
        if reply is None:
            forced.reached = False
            return True
        forced.spent += await generated_tokens(reply, counter)
        text, mark, _ = reply.text.partition(limits.mark)
        forced.thought += text
        stopped = bool(mark) or (reply.raw_message or {}).get("stop_reason") == limits.mark
        # Most servers do not tell a mark from an end of the whole text; a model that we made think may know no mark.
        unmarked = bool(forcing.begin) and not stopped
        if not stopped and not limits.is_thinking(str(request.prompt), forced.thought):
            return False
        if reply.finish_reason == "length" or forced.spent >= allowed:
            return True
        if forced.spent >= forcing.minimum or forced.continuations >= forcing.max_continuations:
            forced.ended = True
            forced.end = limits.mark
            if unmarked:
                forced.end, forced.lead = limits.end, limits.lead
            return True
        forced.thought += forcing.wait
        forced.continuations += 1


def _part_request(request: Request, tokens: int, stop: list[str]) -> Request:
    """Return the request for a part of the reply, which says nothing about thinking to the server."""
    inference = msgspec.structs.replace(request.inference, tokens_to_generate=tokens, thinking_budget=None)
    return msgspec.structs.replace(request, inference=inference, stop=stop)


def _without_partial(text: str, mark: str) -> str:
    """Return the text without the beginning of a mark that the limit has cut."""
    for length in range(len(mark) - 1, 1, -1):
        if text.endswith(mark[:length]):
            return text[:-length]
    return text
