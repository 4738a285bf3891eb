# SPDX-License-Identifier: Apache-2.0
"""Rollouts of a run that was killed go on where they were: replies are kept, commands are run again.

A reply is kept with a hash of the conversation that it answers. In a fresh environment the kept replies are given
again; as long as every conversation is the same to the letter, so was the output of every command, and the environment
is where it was. At the first difference the rollout begins anew.
"""

from __future__ import annotations

import hashlib
import time
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import msgspec
from msgspec import Struct

from newskills.base.errors import BadRequestError, NewskillsError
from newskills.base.protocols import Kit, Model
from newskills.base.records import Attempt, Reply, Request, Sample
from newskills.base.store import AppendLog, encode_line
from newskills.solve.chat import MAIN

FOLDER = "unfinished-rollouts"
"""Beside the output; a rollout's file is removed when it is done."""


class KeptReply(Struct, frozen=True, kw_only=True):
    """`conversation`: hash of the messages that it answers; `tools`: whether the endpoint was offered any."""

    conversation: str
    tools: bool
    reply: Reply


class ReplayDiffersError(NewskillsError):
    """The conversation is another one than before: a command has another output now."""


class RolloutSolver(Protocol):
    """A solver whose only model is `main`, and that repeats commands where it is given the same replies."""

    def check(self) -> None: ...

    def prepare_ahead(self, sample: Sample, kit: Kit) -> None: ...

    def request(self, sample: Sample) -> Request: ...

    async def solve(self, sample: Sample, request: Request, kit: Kit) -> Attempt: ...


class ResumedSolver:
    """Written besides: `resumed_steps` (replies that were kept), or `began_anew` (why they could not be used)."""

    def __init__(self, solver: RolloutSolver, folder: Path) -> None:
        self._solver, self._folder = solver, folder / FOLDER

    def check(self) -> None:
        self._solver.check()

    def prepare_ahead(self, sample: Sample, kit: Kit) -> None:
        self._solver.prepare_ahead(sample, kit)

    def request(self, sample: Sample) -> Request:
        """Return the solver's request. Raises as the solver's."""
        return self._solver.request(sample)

    async def solve(self, sample: Sample, request: Request, kit: Kit) -> Attempt:
        """Solve the sample with the replies that were kept, then with the model's. Raises as the solver's; what was
        done until then is kept."""
        name = hashlib.blake2b(
            f"{sample.id}\n{request.key()}".encode("utf-8", "replace"), digest_size=12
        ).hexdigest()
        path = self._folder / f"{name}.jsonl"
        kept = _read_replies(path)
        model = RememberingModel(kit.models[MAIN], kept, path)
        note: dict[str, object] = {"resumed_steps": len(kept)} if kept else {}
        try:
            attempt = await self._solver.solve(sample, request, _with_model(kit, model))
        except ReplayDiffersError as error:
            model.close_log()
            path.unlink(missing_ok=True)
            note = {"began_anew": error.message}
            model = RememberingModel(kit.models[MAIN], [], path)
            attempt = await self._solver.solve(sample, request, _with_model(kit, model))
        finally:
            model.close_log()
        path.unlink(missing_ok=True)
        with suppress(OSError):
            self._folder.rmdir()
        attempt.fields |= note
        return attempt


class RememberingModel:
    """Gives the kept replies, then asks, and keeps what it hears in `path`."""

    def __init__(self, model: Model, kept: list[KeptReply], path: Path) -> None:
        self.name = model.name
        self._model, self._kept, self._path = model, kept, path
        self._given = 0
        self._log: AppendLog | None = None

    async def complete(self, request: Request) -> Reply:
        """Return the next of the kept replies, or the model's, which is kept. Raises what the model raises,
        ReplayDiffersError, StorageError."""
        conversation = _messages_digest(request)
        if self._given < len(self._kept):
            return self._again(request, conversation)
        began = time.time()
        reply = await self._model.complete(request)
        reply.started, reply.ended = reply.started or began, reply.ended or time.time()
        if self._log is None:
            self._log = AppendLog(self._path)
        self._log.append(KeptReply(conversation=conversation, tools=request.tools is not None, reply=reply))
        self._log.write()
        return reply

    def _again(self, request: Request, conversation: str) -> Reply:
        kept = self._kept[self._given]
        if request.tools is not None and not kept.tools:
            raise BadRequestError("This endpoint refused tools before.")
        if kept.conversation != conversation or (request.tools is None and kept.tools):
            raise ReplayDiffersError(f"step {self._given}: a command has another output than before")
        self._given += 1
        return kept.reply

    async def close(self) -> None:
        """Leave the model open, since it is the run's."""

    def close_log(self) -> None:
        if self._log is not None:
            self._log.close()


def _read_replies(path: Path) -> list[KeptReply]:
    """Read replies up to the first line that is torn or of another form."""
    kept: list[KeptReply] = []
    with suppress(OSError, msgspec.DecodeError, msgspec.ValidationError):
        for line in path.read_bytes().splitlines():
            kept.append(msgspec.json.decode(line, type=KeptReply))
    return kept


def _messages_digest(request: Request) -> str:
    return hashlib.blake2b(encode_line(request.messages or []), digest_size=16).hexdigest()


def _with_model(kit: Kit, model: Model) -> Kit:
    return msgspec.structs.replace(kit, models={**kit.models, MAIN: model})
