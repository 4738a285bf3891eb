# SPDX-License-Identifier: Apache-2.0
"""Tool-integrated reasoning by code tags: blocks of code in the model's text are run, and it goes on from the output.

ToRA (https://arxiv.org/abs/2309.17452), OpenMathInstruct (https://arxiv.org/abs/2402.10176).
"""

from __future__ import annotations

import hashlib

import msgspec
from msgspec import Struct

from newskills.base.protocols import Execution, Kit, Model, Tokenizer
from newskills.base.reading.reply_text import join_turns
from newskills.base.records import Attempt, Reply, Request, Sample
from newskills.prompts.code_tags import CodeTags
from newskills.solve.chat import MAIN, ChatSolver, ask_next, with_stop
from newskills.solve.code.config import CodeExecution
from newskills.solve.code.sessions import CodeSession
from newskills.solve.dialogue import continued, count_tokens, generated_tokens, lead_text, with_budget
from newskills.solve.replies import join_replies, stopped_on_repetition

STATED = "total_code_executions"
"""Field by which a prompt tells the model how often it may run code."""

LEFT = "[code executions left: %d]\n"
NONE_LEFT = "[no code executions are left: finish without]\n"
LOST = "[the session was restarted: what earlier code defined may be gone]\n"


class CodeOptions(Struct, frozen=True, kw_only=True):
    """`stated`: executions that the prompt speaks of, or the bounds between which each sample's number is drawn.

    `stated_is_limit`: that number is the limit, instead of `execution.max_code_executions`.
    """

    tags: CodeTags
    execution: CodeExecution = CodeExecution()
    stated: int | tuple[int, int] | None = None
    stated_is_limit: bool = False
    seed: int = 0


class _CodeAnswer(Struct):
    """What came of one sample: all replies as one, the whole text, rounds whose output is in it."""

    reply: Reply
    text: str
    rounds: int
    repeated: bool


class CodeExecutionSolver:
    """Asks, runs the block that the text ends with, shows the output, and asks again, up to the limit.

    Per sample at most `limit + 1` requests. The end tag is a stop phrase; a block that is left open was ended by it.
    What the code does (error, timeout, crash) is shown to the model; a failing sandbox raises SandboxError.

    Record fields beside those of ChatSolver: `generation` is the whole text with all outputs; token counts are sums
    over the requests; `code_rounds_executed` are blocks whose output stands in it, `num_code_executions` all that
    was run for the record (here the same), `code_execution_time` seconds.
    """

    def __init__(self, chat: ChatSolver, options: CodeOptions, *, counter: Tokenizer | None = None) -> None:
        """Create the solver; `counter` counts the tokens of outputs, only needed where generated tokens are
        limited."""
        self._chat, self._options, self._counter = chat, options, counter

    def request(self, sample: Sample) -> Request:
        """Return the sample's first request. Raises DataError for a row that the prompt does not fit."""
        options = self._options
        stated = {STATED: self._stated_limit(sample)}
        row = {**stated, **sample.row} if options.stated is None else {**sample.row, **stated}
        request = self._chat.request(msgspec.structs.replace(sample, row=row))
        request.stop = [*request.stop, *options.tags.stop_phrases()]
        request.solver = {
            "code_execution": msgspec.to_builtins(options.execution),
            "code_tags": msgspec.to_builtins(options.tags),
            "limit": self._limit(sample),
        }
        return request

    async def solve(self, sample: Sample, request: Request, kit: Kit) -> Attempt:
        """Let the model answer with code that is run in a session. Raises what the model raises, and SandboxError."""
        async with CodeSession(kit, _empty_execution(self._options.execution)) as session:
            answer = await self._answer(request, kit.models[MAIN], session, self._limit(sample))
        attempt = await self._chat.attempt(sample, request, answer.reply, answer.text)
        attempt.fields |= session.fields(answer.rounds)
        attempt.fields["stopped_on_repetition"] = answer.repeated
        if self._options.stated is not None:
            attempt.fields[STATED] = self._stated_limit(sample)
        return attempt

    async def _answer(self, request: Request, model: Model, session: CodeSession, limit: int) -> _CodeAnswer:
        replies: list[Reply] = []
        pieces: list[str] = []
        cut = False
        turn_request = request
        for remaining in range(limit, -1, -1):
            reply = await ask_next(model, turn_request, replies)
            if reply is None:
                cut = True  # what was said and shown has filled the model's context
                break
            text, code = self._read(reply, lead_text(turn_request))
            if pieces and request.messages is not None:
                pieces = [join_turns(["".join(pieces), text])]
            else:
                pieces.append(text)
            if code is None or remaining == 0:
                break
            shown = await self._run_code(session, code, remaining - 1)
            pieces.append(shown)
            spent = await self._tokens_spent(turn_request, reply, shown)
            following = with_budget(continued(turn_request, text, shown, reply.reasoning), spent)
            if following is None:
                cut = True
                break
            turn_request = following
        whole = join_replies(replies)
        if cut:
            whole.finish_reason = "length"
        return _CodeAnswer(whole, "".join(pieces), session.executions, any(map(stopped_on_repetition, replies)))

    def _read(self, reply: Reply, begun: str) -> tuple[str, str | None]:
        """Return the text of a reply, an open block closed, and the code that is to be run.

        A text that was cut off, or ended at a stop phrase of the user's, asks for nothing.
        """
        if reply.finish_reason == "length" or self._chat.stopped(reply):
            return self._chat.text(reply), None
        tags = self._options.tags
        text = tags.close_block(with_stop(reply, tags.stop_phrases()), begun)
        return text, tags.last_block(text, begun)

    async def _run_code(self, session: CodeSession, code: str, remaining: int) -> str:
        """Run `code`, and return what the model is shown of it. Raises SandboxError."""
        execution = self._options.execution
        first = session.executions == 0
        result = await session.run("\n".join([*execution.code_execution_headers, code]))
        notes = [LOST] if result.new_session_created and not first else []
        if execution.add_remaining_code_executions:
            notes.append(LEFT % remaining if remaining else NONE_LEFT)
        return self._options.tags.wrap_output(result, "".join(notes))

    async def _tokens_spent(self, turn_request: Request, reply: Reply, shown: str) -> int:
        """Return the tokens generated and shown, where they are limited."""
        if turn_request.inference.tokens_to_generate is None:
            return 0
        return await generated_tokens(reply, self._counter) + await count_tokens(shown, self._counter)

    def _limit(self, sample: Sample) -> int:
        options = self._options
        if options.stated_is_limit:
            return self._stated_limit(sample)
        return options.execution.max_code_executions

    def _stated_limit(self, sample: Sample) -> int:
        """Return the number that the prompt speaks of: drawn by seed and sample, so that a resume finds the same
        one."""
        stated = self._options.stated
        if stated is None:
            return self._options.execution.max_code_executions
        if isinstance(stated, int):
            return stated
        low, high = stated
        digest = hashlib.blake2b(f"{self._options.seed} {sample.id}".encode(), digest_size=8).digest()
        return low + int.from_bytes(digest, "big") % (high - low + 1)


def _empty_execution(execution: CodeExecution) -> Execution:
    """Return an execution of no code yet."""
    return Execution(
        code="",
        language=execution.code_execution_language,
        timeout=execution.code_execution_timeout,
        max_output_characters=execution.max_code_output_characters,
        traceback_verbosity=execution.sandbox_traceback_verbosity.capitalize(),
    )
