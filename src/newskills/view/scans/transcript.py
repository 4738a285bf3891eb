# SPDX-License-Identifier: Apache-2.0
"""What a scanner looks at: the messages of one sample, what its tools returned, and how it was graded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

from newskills.base.reading.json_values import list_or_empty, object_or_empty
from newskills.base.reading.reply_text import split_thinking
from newskills.base.records import Row
from newskills.view.records import as_text, gold_of, question_of, turns_of

SHORTEST_QUOTE = 2
"""Characters: a single one stands in every transcript, and counts only where it is a whole text."""
_REASONING = ("reasoning_content", "_reasoning", "thinking")
_OUTPUT_ROLES = ("tool", "function")
_FENCE = "```output"


class ToolExchange(NamedTuple):
    """`call`: what was called, as text; `output`: what came back; `after`: what the model wrote next, None where it
    wrote nothing more; `calls_again`: whether that calls a tool."""

    call: str
    output: str
    after: str | None
    calls_again: bool


class Transcript:
    """One sample. `outcome` and `score` are those of `ns samples`; `score` None: unscored or ungraded. `template`: the
    prompt of its benchmark, where the run tells it."""

    def __init__(
        self,
        row: Row,
        *,
        outcome: str = "",
        cause: str | None = None,
        score: float | None = None,
        template: str = "",
    ) -> None:
        self.row, self.template = row, template
        self.outcome, self.cause, self.score = outcome, cause, score
        self.turns = turns_of(row)[0]

    @cached_property
    def question(self) -> str:
        return question_of(self.row)

    @cached_property
    def prompt(self) -> str:
        """What stood before the first reply, system messages included."""
        texts = []
        for turn in self.turns:
            if turn.get("role") == "assistant":
                break
            texts.append(content_text(turn.get("content")))
        return "\n".join(texts)

    @cached_property
    def reasoning(self) -> str:
        """Reasoning, whether the server sent it apart or the reply begins with it."""
        apart = next((as_text(self.row[name]) for name in _REASONING if self.row.get(name)), "")
        return apart or split_thinking(as_text(self.row.get("generation")))[0]

    @cached_property
    def reply(self) -> str:
        """The last reply, without reasoning."""
        text = as_text(self.row.get("generation"))
        if not text:
            replies = [turn for turn in self.turns if turn.get("role") == "assistant"]
            if replies:
                text = content_text(replies[-1].get("content"))
        return split_thinking(text)[1]

    @cached_property
    def gold(self) -> str:
        """The expected answer; empty where the record has none."""
        gold = gold_of(self.row)
        if gold:
            return gold[1].strip()
        return ""

    @cached_property
    def answer(self) -> str:
        """The extracted answer; empty where there is none."""
        return as_text(self.row.get("predicted_answer")).strip()

    def written(self) -> Iterator[str]:
        """Yield all that the model wrote: replies and the arguments of its calls."""
        for turn in self.turns:
            if turn.get("role") == "assistant":
                yield content_text(turn.get("content"))
                yield from _call_texts(turn)

    def exchanges(self) -> Iterator[ToolExchange]:
        """Yield each output of a tool, a command or executed code with what led to it and what followed."""
        roles = [*_OUTPUT_ROLES]
        if isinstance(self.row.get("steps"), list):
            roles.append("user")
        call = ""
        for place, turn in enumerate(self.turns):
            if turn.get("role") == "assistant":
                texts = [content_text(turn.get("content")), *_call_texts(turn)]
                call = next((text for text in reversed(texts) if text.strip()), "")
            elif turn.get("role") in roles and call:
                yield ToolExchange(call, content_text(turn.get("content")), *_next_reply(self.turns[place + 1 :]))
        yield from _executed_outputs(as_text(self.row.get("generation")))

    def parts(self) -> Iterator[str]:
        """Yield all texts that a quote may come from."""
        yield from (content_text(turn.get("content")) for turn in self.turns)
        for turn in self.turns:
            yield from _call_texts(turn)
            yield as_text(turn.get("reasoning_content"))
        yield as_text(self.row.get("generation"))
        yield self.reasoning
        yield self.reply
        yield self.question
        if isinstance(patch := self.row.get("model_patch"), str):
            yield patch
        for step in _agent_steps(self.row):
            yield as_text(step.get("command"))

    def holds(self, quote: str) -> bool:
        """Return whether the quote stands in one text of the transcript; blanks and line ends count as one blank."""
        wanted = " ".join(quote.split())
        if len(wanted) < SHORTEST_QUOTE:
            return bool(wanted) and any(wanted == part.strip() for part in self.parts())
        return any(quote in part or wanted in " ".join(part.split()) for part in self.parts())


def content_text(content: Any) -> str:
    """Return the text of a message: of a list of parts their texts, and what the others are in brackets."""
    if not isinstance(content, list):
        return as_text(content)
    return "\n".join(map(_part_text, content))


def _part_text(part: Any) -> str:
    if not isinstance(part, dict):
        return as_text(part)
    if isinstance(part.get("text"), str):
        return str(part["text"])
    return f"[{as_text(part.get('type') or 'part')}]"


def commands_of(transcript: Transcript) -> Iterator[str]:
    """Yield what the model ran or called, as text."""
    for turn in transcript.turns:
        yield from _call_texts(turn)
    for step in _agent_steps(transcript.row):
        yield as_text(step.get("command"))


def _agent_steps(row: Row) -> list[Row]:
    steps = row.get("steps")
    if isinstance(steps, list):
        return [step for step in steps if isinstance(step, dict)]
    return []


def _call_texts(turn: Row) -> Iterator[str]:
    for call in list_or_empty(turn.get("tool_calls")):
        function = object_or_empty(call).get("function")
        if isinstance(function, dict):
            yield as_text(function.get("arguments"))


def _next_reply(turns: Sequence[Row]) -> tuple[str | None, bool]:
    for turn in turns:
        if turn.get("role") == "assistant":
            text = f"{as_text(turn.get('reasoning_content'))}\n{content_text(turn.get('content'))}"
            return text, bool(turn.get("tool_calls"))
    return None, False


def _executed_outputs(reply: str) -> Iterator[ToolExchange]:
    """Yield the outputs that stand in a reply whose code was executed as it was written."""
    pieces = reply.split(_FENCE)
    for before, piece in pairwise(pieces):
        output, closing, after = piece.partition("```")
        if closing:
            yield ToolExchange(before, output, after, "```" in after)
