# SPDX-License-Identifier: Apache-2.0
"""Replies that look right one by one, and together tell that a server is set up wrongly: said once, never silent."""

from __future__ import annotations

from collections.abc import Callable

from newskills.base.records import Reply, Request

TELLING_REPLIES = 20
"""Replies of one kind after which the user is told; at the end of a run, half of all."""
_REASONING = (
    "{name}: {count:,} of {all:,} replies hold reasoning and no answer, though the model stopped by itself: the"
    " server's reasoning parser takes the answer for reasoning. Check the server's --reasoning-parser,"
    " or the chat template's thinking switch (++chat_template_kwargs)."
)
_CALLS = (
    "{name}: {count:,} of {all:,} replies hold tool calls, though no tools were offered, and no answer: the server's"
    " tool parser takes the answer for a call. Start the server without --tool-call-parser."
)
_MODEL = "{name}: the replies say that they come from the model '{answered}'."


class ReplyWatch:
    """What is odd about the replies of one endpoint, counted."""

    def __init__(self, name: str, say: Callable[[str], None]) -> None:
        self._name, self._say = name, say
        self._replies = 0
        self._counts = {_REASONING: 0, _CALLS: 0}
        self._told: set[str] = set()

    def note(self, request: Request, reply: Reply) -> None:
        self._replies += 1
        if reply.model is not None and _MODEL not in self._told and not _is_same_model(self._name, reply.model):
            self._told.add(_MODEL)
            self._say(_MODEL.format(name=self._name, answered=reply.model))
        if reply.text or reply.finish_reason == "length":
            return
        if reply.tool_calls and not request.tools:
            self._count(_CALLS)
        elif reply.reasoning and not reply.tool_calls:
            self._count(_REASONING)

    def close(self) -> None:
        """Tell of what has been odd in a run too short for `TELLING_REPLIES`."""
        for sentence, count in self._counts.items():
            if 2 * count >= self._replies > 0:
                self._tell(sentence)

    def _count(self, sentence: str) -> None:
        self._counts[sentence] += 1
        if self._counts[sentence] == TELLING_REPLIES:
            self._tell(sentence)

    def _tell(self, sentence: str) -> None:
        if sentence not in self._told:
            self._told.add(sentence)
            self._say(sentence.format(name=self._name, count=self._counts[sentence], all=self._replies))


def _is_same_model(requested: str, answered: str) -> bool:
    """Return whether one name is a part of the other, as of a dated version, a path or an alias."""
    first, second = (name.casefold().rstrip("/").rpartition("/")[2] for name in (requested, answered))
    return not first or not second or first in second or second in first
