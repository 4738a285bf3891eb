# SPDX-License-Identifier: Apache-2.0
"""Self-consistency with tool-integrated reasoning, as it won the first AI Mathematical Olympiad prize.

https://huggingface.co/blog/winning-aimo-progress-prize: many candidates at once, a few rounds of text and code each,
candidates that went wrong are dropped, the others vote.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from newskills.base.errors import ContextLimitError
from newskills.base.protocols import Execution, ExecutionResult, Kit
from newskills.base.reading.reply_text import join_turns
from newskills.base.records import Attempt, Reply, Request, Row, Sample
from newskills.graders.math.extraction import ExtractionPolicy, extract_by_policy
from newskills.graders.voting.values import same_answer
from newskills.prompts.code_tags import DEFAULT_CODE_TAGS, CodeTags, code_tags
from newskills.solve.chat import MAIN, ask, with_stop
from newskills.solve.code.sessions import CodeSession
from newskills.solve.dialogue import continued
from newskills.solve.parts import SolverParts
from newskills.solve.replies import join_replies
from newskills.solve.selection.candidates import all_of, seeds_of, with_seed
from newskills.solve.selection.votes import Votes, elect_majority, same_text
from newskills_math.normalise import tidy_answer
from newskills_math.values.exact import plain_number

CUT = " … (output cut)"
RESTART = 1_000_003
"""Between the seeds of a candidate's beginnings, which would otherwise all be the same."""


class ScTirConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`++solver_config.*` of `solver=sc_tir`; the defaults are those of the winning submission.

    integers  answers count only as whole numbers: rounded, without negative ones, by their remainder. False:
              any answer counts, and those of the same value vote together
    """

    candidates: Annotated[int, Meta(ge=1, description="candidates to start for each problem")] = 48
    rounds: Annotated[int, Meta(ge=1, description="largest number of requests per candidate")] = 4
    temperature: Annotated[float, Meta(ge=0, description="sampling temperature")] = 0.8
    tokens_per_round: Annotated[int, Meta(ge=1, description="longest reply to a request in new tokens")] = 2048
    code_timeout: Annotated[float, Meta(gt=0, description="time limit of a code block in seconds")] = 5.0
    max_output_characters: Annotated[
        int, Meta(ge=0, description="longest code output shown to the model, in characters")
    ] = 200
    language: Annotated[str, Meta(min_length=1, description="language of the code blocks")] = "ipython"
    headers: Annotated[tuple[str, ...], Meta(description="lines to put before each code block")] = (
        "import math",
        "import numpy as np",
        "import sympy as sp",
    )
    restart_without_code: Annotated[
        bool, Meta(description="restart a candidate after a round without code, instead of dropping it")
    ] = False
    answer_characters: Annotated[
        int, Meta(ge=1, description="characters at the end of the text in which to look for an answer")
    ] = 100
    integers: Annotated[bool, Meta(description="accept only whole numbers from 0 on as answers")] = True
    modulus: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="compare integer answers modulo this number in the vote"),
    ] = 1000
    default_answer: Annotated[str, Meta(description="predicted_answer if no candidate has an answer")] = "0"

    def template(self) -> Execution:
        """Return an execution of no code yet."""
        return Execution(
            code="",
            language=self.language,
            timeout=self.code_timeout,
            max_output_characters=self.max_output_characters + 1,
            traceback_verbosity="Minimal",
        )


class PartialCandidate(Struct):
    """One answer under way. `why` says what ended it; `answer` is as it votes."""

    status: Literal["answered", "pruned", "unfinished"] = "unfinished"
    why: str = ""
    answer: str | None = None
    text: str = ""
    replies: list[Reply] = []
    shown: int = 0

    def end(self, status: Literal["answered", "pruned"], why: str = "", answer: str | None = None) -> bool:
        """Set the end and return False, so that no further round follows."""
        self.status, self.why, self.answer = status, why, answer
        return False


class ScTirSolver:
    """Begins `candidates` answers with seeds of their own, and lets those that come to an end vote.

    A round ends where the model begins an output block; the last block of code before it runs in a fresh process,
    and its output goes into the text. A candidate is dropped where it wrote no code, has an answer though nothing
    was run, or ended its turn without either. The original refused code with words that start processes; here the
    sandbox holds whatever code does, and no word is refused.

    Any failure of the model's endpoint or of the sandbox ends the sample unscored: a vote without some of the votes
    would be another method.

    Record fields beside those of ChatSolver: `generation` is the text of the first candidate with the winning
    answer, token counts and times are of all; `predicted_answer`, `votes` (answer → number), `candidates` (how each
    ended); `num_code_executions` counts all, `code_rounds_executed` those of the winner.
    """

    Config = ScTirConfig

    def __init__(self, parts: SolverParts, config: ScTirConfig) -> None:
        self._chat, self._config = parts.chat, config
        self._tags: CodeTags = parts.code.tags if parts.code is not None else code_tags(DEFAULT_CODE_TAGS)

    def request(self, sample: Sample) -> Request:
        """Return the first request of the first candidate. Raises DataError for a row that the prompt does not fit."""
        config = self._config
        request = self._chat.request(sample)
        request.inference = msgspec.structs.replace(
            request.inference, temperature=config.temperature, tokens_to_generate=config.tokens_per_round
        )
        request.stop = [*request.stop, self._tags.output_begin]
        request.solver = {"sc_tir": msgspec.to_builtins(config), "code_tags": msgspec.to_builtins(self._tags)}
        return request

    async def solve(self, sample: Sample, request: Request, kit: Kit) -> Attempt:
        """Draw candidates that run code, and elect an answer. Raises what the model raises, and SandboxError."""
        seeds = seeds_of(request.inference.random_seed, self._config.candidates)
        sessions = [CodeSession(kit, self._config.template(), keeps_state=False) for _ in seeds]
        candidates = await all_of(
            [
                asyncio.ensure_future(self._candidate(with_seed(request, seed), kit, session))
                for seed, session in zip(seeds, sessions, strict=True)
            ]
        )
        same = same_text if self._config.integers else same_answer
        votes = elect_majority([candidate.answer for candidate in candidates], same)
        winner = candidates[votes.winner] if votes.winner is not None else PartialCandidate()
        replies = [reply for candidate in candidates for reply in candidate.replies]
        reply = msgspec.structs.replace(
            join_replies(winner.replies) if winner.replies else Reply(text=""),
            usage=join_replies(replies).usage,
            started=min(reply.started for reply in replies),
            ended=max(reply.ended for reply in replies),
        )
        attempt = await self._chat.attempt(sample, request, reply, winner.text)
        attempt.fields |= self._fields(votes, candidates, sessions)
        attempt.fields["code_rounds_executed"] = winner.shown
        return attempt

    async def _candidate(self, request: Request, kit: Kit, session: CodeSession) -> PartialCandidate:
        candidate = PartialCandidate(replies=[])
        turn_request = request
        for left in range(self._config.rounds - 1, -1, -1):
            try:
                reply = await ask(kit.models[MAIN], turn_request)
            except ContextLimitError:
                if not candidate.replies:
                    raise
                candidate.end("pruned", "the model's context is full")
                break
            candidate.replies.append(reply)
            text, wants_output = self._read(reply)
            if request.messages is not None:
                candidate.text = join_turns([candidate.text, text])
            else:
                candidate.text += text
            if not self._goes_on(candidate, wants_output=wants_output, last=left == 0):
                break
            if not self._has_code(candidate.text):
                turn_request, candidate.text = (
                    with_seed(request, (request.inference.random_seed or 0) + RESTART * left),
                    "",
                )
                continue
            shown = self._format_result(await session.run(self._code(candidate.text)))
            candidate.text += shown
            candidate.shown += 1
            turn_request = continued(turn_request, text, shown, reply.reasoning)
        return candidate

    def _read(self, reply: Reply) -> tuple[str, bool]:
        """Return what was said, without the begin of an output block, and whether the model waits for an output.

        Where a server does not name the phrase that stopped it, a text that ends with a closed block waits.
        """
        if reply.finish_reason == "length" or self._chat.stopped(reply):
            return self._chat.text(reply), False
        tags = self._tags
        text = with_stop(reply, [tags.output_begin])
        if text.endswith(tags.output_begin):
            return text.removesuffix(tags.output_begin), True
        bare = text.rstrip()
        waits = bare.endswith(tags.end.rstrip()) and self._has_code(f"{bare}\n")
        return (f"{bare}\n" if waits else text), waits

    def _goes_on(self, candidate: PartialCandidate, *, wants_output: bool, last: bool) -> bool:
        """Return whether the candidate gets another round; else set how it ended."""
        if not self._has_code(candidate.text):
            return (self._config.restart_without_code and not last) or candidate.end("pruned", "no code")
        if wants_output:
            extracted = None
        else:
            extracted = extract_by_policy(candidate.text[-self._config.answer_characters :], ExtractionPolicy())
        if extracted is not None and extracted.answer is not None:
            if not candidate.shown:
                return candidate.end("pruned", "an answer though no code was run")
            answer = self._vote(extracted.answer)
            if answer:
                return candidate.end("answered", "", answer)
            return candidate.end("pruned", "not a number", answer)
        if not wants_output:
            return candidate.end("pruned", "neither an answer nor an output block")
        if last:
            candidate.why = "no answer within the rounds"
            return False
        return True

    def _vote(self, answer: str) -> str | None:
        config = self._config
        if not config.integers:
            return tidy_answer(answer) or None
        number = plain_number(tidy_answer(answer))
        if number is None or (rounded := round(number.value)) < 0:
            return None
        if config.modulus is not None:
            rounded %= config.modulus
        return str(rounded)

    def _has_code(self, text: str) -> bool:
        return self._tags.end.rstrip() in text.partition(self._tags.begin)[2]

    def _code(self, text: str) -> str:
        """Return the last block of `text`, with the headers before it."""
        code = text.rpartition(self._tags.begin)[2].partition(self._tags.end.rstrip())[0]
        return "\n".join([*self._config.headers, code])

    def _format_result(self, result: ExecutionResult) -> str:
        output, limit = self._tags.format_output(result), self._config.max_output_characters
        if len(output) > limit:
            output = f"{output[:limit]}{CUT}"
        return self._tags.tag_output(output)

    def _fields(
        self, votes: Votes, candidates: Sequence[PartialCandidate], sessions: Sequence[CodeSession]
    ) -> Row:
        winning = candidates[votes.winner].answer if votes.winner is not None else None
        return {
            "predicted_answer": winning or self._config.default_answer,
            "votes": votes.counts,
            "candidates": [
                {
                    "status": candidate.status,
                    "why": candidate.why,
                    "answer": candidate.answer,
                    "rounds": len(candidate.replies),
                    "num_code_executions": session.executions,
                    "num_generated_tokens": join_replies(candidate.replies).usage.output_tokens,
                }
                for candidate, session in zip(candidates, sessions, strict=True)
            ],
            "num_code_executions": sum(session.executions for session in sessions),
            "num_code_timeouts": sum(session.timeouts for session in sessions),
            "code_execution_time": sum(session.seconds for session in sessions),
        }
