# SPDX-License-Identifier: Apache-2.0
"""Teachers that score a student's tokens: a model folder computed here, or any endpoint that gives log-probabilities
of the prompt.

An endpoint is asked for completions of token ids with `echo` and `logprobs`, as `newskills.solve.tasks.loglikelihood`
asks for texts; where it refuses `echo`, for vLLM's own `prompt_logprobs`. Token ids only mean the same to a teacher
that has the student's tokenizer, which is checked before the first step.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import msgspec

from newskills.base.aio import backoff_seconds
from newskills.base.errors import BadRequestError, ConfigError, ContextLimitError, DataError, HttpError
from newskills.base.records import Inference, Logprobs, Reply, Request, Row
from newskills.models import make_model
from newskills.models.config import ServerConfig
from newskills.models.tokenizer import HFTokenizer
from newskills.run.grade import LoopThread
from newskills.train.settings import TrainerSettings
from newskills.train.verbs import Datum

ECHO: Row = {"echo": True}
PROMPT_LOGPROBS: Row = {"prompt_logprobs": 1}
AT_ONCE = 32
PROBE = (
    "Sort 12345 and 678: tokenizers differ in unusual words.\n\tdef area(r): return 3.14*r**2\n"
    "JACKDAWS LOVE MY BIG SPHINX OF QUARTZ; 'pack' my <box> with [five] {dozen} \"jugs\" "
    "+ 90 = x_1 % 7 & ~z^2 | $5 @ #!?"
)
"""Plain characters, so that every token shows its text; words and numbers that vocabularies cut differently."""
OTHERWISE = (
    "vLLM and SGLang return them; llama.cpp and most hosted services do not. Without them: --by=texts trains on the "
    "teacher's graded answers, or give the teacher's folder as --teacher, without an address."
)
SCORING = Inference(endpoint_type="text", temperature=0.0, tokens_to_generate=1, top_logprobs=1, timeout=600.0)


class FolderTeacher:
    """The model in a folder, computed in this process as the cpu trainer computes."""

    def __init__(self, folder: Path, settings: TrainerSettings) -> None:
        """Load the model in `folder`. Raises DataError, ConfigError for a model that the cpu trainer does not know."""
        from newskills.train.backends.cpu.trainer import CpuTrainer, CpuTrainerConfig

        self._model = CpuTrainer(folder, CpuTrainerConfig(dtype=settings.dtype, threads=settings.threads))

    def logprobs(self, data: Sequence[Datum]) -> list[list[float]]:
        return self._model.reference_logprobs(data)


class EndpointTeacher:
    """A model behind an API. A context manager: connections end with it."""

    def __init__(self, server: ServerConfig) -> None:
        """Create the client of the server, and send nothing. Raises ConfigError, UnknownNameError, AuthError (no
        key)."""
        self._tries = server.max_retries + 1
        self._model = make_model(server, concurrency=AT_ONCE, environ=os.environ)
        self._loop = LoopThread()
        self._wish = ECHO

    def __enter__(self) -> EndpointTeacher:
        self._loop.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.run(self._model.close())
        self._loop.__exit__(kind, error, trace)

    def check(self, student: HFTokenizer) -> None:
        """Check the teacher with a short text, as text and as the student's token ids.

        Raises BadRequestError where no log-probabilities come back, DataError where its tokens are not the student's.
        """
        ids = student.encode(PROBE)
        try:
            own = self._loop.run(self._score_prompt(PROBE))
        except ContextLimitError:
            raise
        except BadRequestError as refusal:
            own = self._without_echo(refusal)
        spelt = [student.decode([token]) for token in ids]
        mine = self._loop.run(self._score_prompt(ids))
        # The first token has no probability, unless the server puts a mark before it.
        if any(logprobs.tokens[:-1][-len(spelt) + 1 :] != spelt[1:] for logprobs in (own, mine)):
            raise DataError(
                f"The teacher {self._model.name} splits text into other tokens than the student, so it cannot score "
                "the student's tokens.",
                hint="Choose a teacher with the student's tokenizer (of the same family), or train on its answers: "
                "--by=texts.",
            )

    def logprobs(self, data: Sequence[Datum]) -> list[list[float]]:
        """Return the log-probabilities of the targets. Raises the HttpError family, after retries, and BadRequestError
        where log-probabilities are missing."""
        return self._loop.run(self._score_all(data))

    def _without_echo(self, refusal: BadRequestError) -> Logprobs:
        """Return the log-probabilities of `PROBE`, asked for by `PROMPT_LOGPROBS` from now on. Raises BadRequestError,
        with what to do, from the first refusal where this way is refused as well."""
        self._wish = PROMPT_LOGPROBS
        try:
            return self._loop.run(self._score_prompt(PROBE))
        except BadRequestError:
            raise self._missing_error() from refusal

    async def _score_all(self, data: Sequence[Datum]) -> list[list[float]]:
        gate = asyncio.Semaphore(AT_ONCE)

        async def scores(datum: Datum) -> list[float]:
            async with gate:
                logprobs = await self._score_prompt([*datum.tokens, datum.targets[-1]])
            return logprobs.logprobs[:-1][-len(datum.targets) :]

        return await asyncio.gather(*map(scores, data))

    async def _score_prompt(self, prompt: str | list[int]) -> Logprobs:
        """Return the log-probabilities of the tokens of the prompt, and of one generated token."""
        reply = await self._ask(Request(prompt=prompt, inference=SCORING, extra_body=self._wish))
        if reply.logprobs is None or len(reply.logprobs.tokens) < 2:
            raise self._missing_error()
        return reply.logprobs

    async def _ask(self, request: Request) -> Reply:
        for attempt in range(1, self._tries):
            try:
                return await self._model.complete(request)
            except HttpError as error:
                if not error.retryable:
                    raise
                await asyncio.sleep(backoff_seconds(attempt))
        return await self._model.complete(request)

    def _missing_error(self) -> BadRequestError:
        return BadRequestError(
            f"The server of the teacher {self._model.name} returns no log-probabilities of the prompt, which "
            "on-policy distillation needs.",
            hint=OTHERWISE,
        )


def check_same_tokenizer(teacher: Path, student: Path) -> None:
    """Raise DataError where two model folders do not share a vocabulary, ConfigError or DataError where one is
    unreadable."""
    vocabularies = [_read_vocabulary(folder) for folder in (teacher, student)]
    if vocabularies[0] != vocabularies[1]:
        raise DataError(
            f"The tokenizer of the teacher {teacher} is not that of the student, so it cannot score the "
            "student's tokens.",
            hint="Choose a teacher of the same family, or train on its answers: --by=texts.",
        )


def _read_vocabulary(folder: Path) -> Row:
    path = folder / "tokenizer.json"
    try:
        parts = msgspec.json.decode(path.read_bytes(), type=Row)
    except (OSError, msgspec.DecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}.") from error
    model = parts.get("model", {})
    added = {entry["content"]: entry["id"] for entry in parts.get("added_tokens", ())}
    return {"vocab": {**model.get("vocab", {}), **added}, "pre_tokenizer": parts.get("pre_tokenizer")}
