# SPDX-License-Identifier: Apache-2.0
"""A conversation whose user turns are all known before it begins."""

from __future__ import annotations

from newskills.base.errors import DataError
from newskills.base.protocols import Kit
from newskills.base.reading.reply_text import without_thinking
from newskills.base.records import Attempt, Message, Request, Row, Sample
from newskills.solve.chat import MAIN, ask
from newskills.solve.parts import SolverParts

_COUNTS = (
    *("num_generated_tokens", "num_reasoning_tokens", "num_answer_tokens"),
    *("spec_num_drafts", "spec_draft_tokens", "spec_accepted_tokens"),
)


class TurnsSolver:
    """Asks the row's `turns` one after the other, each after all that was said before.

    Written: `turn_answers`, a list, and the last answer under the generation key. Needs the chat endpoint; a model's
    reasoning is not repeated to it.
    """

    def __init__(self, parts: SolverParts) -> None:
        self._chat = parts.chat
        self._key = parts.chat.generation_key

    def request(self, sample: Sample) -> Request:
        """Return the request of the first turn. Raises DataError: no list of turns, or no chat endpoint."""
        turns = sample.row.get("turns")
        if not isinstance(turns, list) or not turns:
            raise DataError(f"Record {sample.id} has no list of turns.")
        request = self._chat.request(Sample(id=sample.id, row={**sample.row, "question": turns[0]}))
        if request.messages is None:
            raise DataError(f"Record {sample.id}: turns need ++inference.endpoint_type=chat.")
        request.solver = {"turns": turns}
        return request

    async def solve(self, sample: Sample, request: Request, kit: Kit) -> Attempt:
        messages = list(request.messages or [])
        answers: list[str] = []
        fields: Row = {}
        for number, turn in enumerate(sample.row["turns"]):
            if number:
                messages.append(Message(role="user", content=turn))
            turn_request = Request(
                messages=list(messages),
                inference=request.inference,
                stop=request.stop,
                response_format=request.response_format,
                extra_body=request.extra_body,
            )
            reply = await ask(kit.models[MAIN], turn_request)
            attempt = await self._chat.attempt(sample, turn_request, reply, self._chat.text(reply))
            for count in _COUNTS:
                if count in fields and count in attempt.fields:
                    attempt.fields[count] += fields[count]
            if "generation_start_time" in fields:
                attempt.fields["generation_start_time"] = fields["generation_start_time"]
            fields = attempt.fields
            answers.append(fields[self._key])
            messages.append(Message(role="assistant", content=without_thinking(answers[-1])))
        return Attempt(sample_id=sample.id, key=request.key(), fields={**fields, "turn_answers": answers})
