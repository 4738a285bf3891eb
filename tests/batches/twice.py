# SPDX-License-Identifier: Apache-2.0
"""A solver that asks two times: `solver="tests.batches.twice::Twice"`."""

from __future__ import annotations

import msgspec

from newskills.base.protocols import Kit
from newskills.base.records import Attempt, Message, Request, Sample
from newskills.solve.chat import MAIN, ask
from newskills.solve.parts import SolverParts


class Twice:
    """Adds one to the first answer, by a second question."""

    def __init__(self, parts: SolverParts) -> None:
        self.chat = parts.chat

    def request(self, sample: Sample) -> Request:
        return self.chat.request(sample)

    async def solve(self, sample: Sample, request: Request, kit: Kit) -> Attempt:
        first = self.chat.text(await ask(kit.models[MAIN], request))
        turns = [Message(role="assistant", content=first), Message(role="user", content=f"What is {first} + 1?")]
        again = msgspec.structs.replace(request, messages=[*(request.messages or []), *turns])
        second = await ask(kit.models[MAIN], again)
        return await self.chat.attempt(sample, request, second, self.chat.text(second))
