# SPDX-License-Identifier: Apache-2.0
"""Lean 4 in rounds: what Lean says about an answer goes back to the model, which fixes it.

`prover`: proofs of given theorems, as Goedel-Prover-V2 does it (arXiv:2508.03613). `autoformalize`: statements of
problems in words, which Lean has to take and a reading back into words may have to confirm.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from newskills.base.errors import ConfigError
from newskills.base.judgement import parse_judgement
from newskills.base.protocols import Kit
from newskills.base.reading.reply_text import without_thinking
from newskills.base.records import Attempt, Message, Reply, Request, Row, Sample
from newskills.graders.lean.grader import LeanProofConfig, LeanProofGrader
from newskills.graders.lean.statement import LeanStatementConfig, LeanStatementGrader, StatementCheck
from newskills.solve.chat import MAIN, ChatSolver, ask, ask_next
from newskills.solve.parts import SolverParts
from newskills.solve.replies import join_replies

_LIBRARY = "lean4/"
_LONGEST = 4_000


class ProverConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`++solver_config.*` of the solver `prover`."""

    refinements: Annotated[int, Meta(ge=0, description="more rounds after a proof that Lean rejects")] = 2
    refinement_prompt: Annotated[
        str, Meta(description="prompt of a round: error_message, proof_attempt, and the row's fields")
    ] = f"{_LIBRARY}goedel-prover-v2-refinement"
    timeout: Annotated[float, Meta(gt=0, description="time limit of Lean in seconds, each round")] = 30.0


class AutoformalizeConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`++solver_config.*` of the solver `autoformalize`. A prompt that is empty switches its step off."""

    refinements: Annotated[int, Meta(ge=0, description="more rounds in total")] = 8
    judge: Annotated[
        bool, Meta(description="translate the statement back into words, and compare with the problem")
    ] = False
    judge_role: Annotated[
        str,
        Meta(
            description="which of several models (++server.model=[…]) translates back and compares; main: "
            "the first"
        ),
    ] = MAIN
    header: Annotated[str, Meta(description="Lean's header; empty: the row's, or Mathlib with the usual ones")] = (
        ""
    )
    timeout: Annotated[float, Meta(gt=0, description="time limit of Lean in seconds, each round")] = 30.0
    parsing_prompt: Annotated[str, Meta(description="prompt after an answer without a statement")] = (
        f"{_LIBRARY}refinement_parsing_error"
    )
    code_prompt: Annotated[str, Meta(description="prompt after a statement that Lean rejects")] = (
        f"{_LIBRARY}refinement_code_error"
    )
    consistency_prompt: Annotated[str, Meta(description="prompt after a statement with another meaning")] = (
        f"{_LIBRARY}refinement_consistent_error"
    )
    backtranslation_prompt: Annotated[str, Meta(description="prompt that translates Lean into words")] = (
        f"{_LIBRARY}backtranslation"
    )
    judge_prompt: Annotated[str, Meta(description="prompt that asks whether both are the same problem")] = (
        f"{_LIBRARY}judge-backtranslation"
    )


class _LeanConversation(Struct):
    """One conversation: the model's replies, and what is asked next."""

    asked: Request
    replies: list[Reply] = []

    async def say(self, kit: Kit) -> Reply | None:
        """Return the next reply; None where the conversation has outgrown the model, but not at its beginning."""
        return await ask_next(kit.models[MAIN], self.asked, self.replies)

    def answer(self, text: str) -> None:
        """Continue with a user turn after the last reply, whose reasoning is not repeated."""
        answer = without_thinking(self.replies[-1].text)
        turns = [Message(role="assistant", content=answer), Message(role="user", content=text)]
        self.asked = msgspec.structs.replace(self.asked, messages=[*(self.asked.messages or []), *turns])


class _RoundSolver:
    """What both solvers share."""

    def __init__(self, parts: SolverParts) -> None:
        self._chat: ChatSolver = parts.chat
        self._load = parts.load

    def _first(self, row: Row, sample: Sample, settings: Row) -> Request:
        """Return the first request. Raises DataError (the row does not fit the prompt), ConfigError (no chat
        endpoint)."""
        request = self._chat.request(msgspec.structs.replace(sample, row=row))
        if request.messages is None:
            raise ConfigError("Rounds with Lean are a conversation: they need ++inference.endpoint_type=chat.")
        request.solver = settings
        return request

    def _text(self, prompt: str, row: Row) -> str:
        """Return the text of a further user turn."""
        return str(self._load(prompt).messages(row)[-1].content)

    async def _attempt(self, sample: Sample, request: Request, talk: _LeanConversation, fields: Row) -> Attempt:
        """Return the attempt of the last reply, with the costs of all."""
        reply = join_replies(talk.replies)
        attempt = await self._chat.attempt(sample, request, reply, self._chat.text(talk.replies[-1]))
        attempt.fields |= {"num_refinements": len(talk.replies) - 1, **fields}
        return attempt


class ProverSolver(_RoundSolver):
    """Row: `formal_statement`, `header`. Written: the last answer, `num_refinements`, and `proof_attempts`, what Lean
    said of each. A round is only asked for where the answer is to blame."""

    Config = ProverConfig

    def __init__(self, parts: SolverParts, config: ProverConfig = ProverConfig()) -> None:  # noqa: B008 - frozen
        super().__init__(parts)
        self._config = config
        self._grader = LeanProofGrader(LeanProofConfig(timeout=config.timeout))

    def request(self, sample: Sample) -> Request:
        return self._first(sample.row, sample, {"prover": msgspec.to_builtins(self._config)})

    async def solve(self, sample: Sample, request: Request, kit: Kit) -> Attempt:
        """Ask for a proof in rounds, each after what Lean said of the last. Raises what the model raises, and
        SandboxError."""
        talk = _LeanConversation(asked=request, replies=[])
        attempts: list[Row] = []
        while (reply := await talk.say(kit)) is not None:
            text = self._chat.text(reply)
            score = await self._grader.grade({**sample.row, "generation": text}, kit)
            attempts.append({"proof_status": score.fields["proof_status"], "why": score.why})
            if score.outcome in ("correct", "unscored") or len(attempts) > self._config.refinements:
                break
            tried = score.fields["predicted_proof"] or "(no Lean code was found)"
            fields = {**sample.row, "error_message": score.why[:_LONGEST], "proof_attempt": str(tried)}
            talk.answer(self._text(self._config.refinement_prompt, fields))
        return await self._attempt(sample, request, talk, {"proof_attempts": attempts})


class AutoformalizeSolver(_RoundSolver):
    """Row: `problem`, and `header` where it has its own. Written: `formal_statement` (null where none was taken),
    `header`, `statement_status` (of Lean; `inconsistent` where the comparison said no, `unjudged` without a verdict),
    `back_translation` and `judgement` of the last comparison, `statement_attempts`, `num_refinements`."""

    Config = AutoformalizeConfig

    def __init__(self, parts: SolverParts, config: AutoformalizeConfig = AutoformalizeConfig()) -> None:  # noqa: B008 - frozen
        super().__init__(parts)
        self._config = config
        self._grader = LeanStatementGrader(LeanStatementConfig(timeout=config.timeout, header=config.header))

    def request(self, sample: Sample) -> Request:
        row = {**sample.row, "header": self._grader.header(sample.row)}
        return self._first(row, sample, {"autoformalize": msgspec.to_builtins(self._config)})

    async def solve(self, sample: Sample, request: Request, kit: Kit) -> Attempt:
        """Ask for a statement in rounds, each after what was wrong with the last. Raises what the models raise, and
        SandboxError."""
        talk = _LeanConversation(asked=request, replies=[])
        row = {**sample.row, "header": self._grader.header(sample.row)}
        attempts: list[Row] = []
        fields: Row = {}
        while (reply := await talk.say(kit)) is not None:
            checked = await self._grader.check(self._chat.text(reply), row, kit)
            if checked.holds and self._config.judge:
                fields = await self._judge(row, checked, kit)
            else:
                fields = {}
            status = fields.pop("statement_status", checked.status)
            attempts.append({"statement_status": status, "why": checked.why})
            holds = status in ("completed", "unjudged")
            fields |= {"statement_status": status, "formal_statement": checked.text if holds else None}
            if holds or checked.status == "failed" or len(attempts) > self._config.refinements:
                break
            talk.answer(
                self._text(self._prompt(status), {**row, **fields, "error_message": checked.why[:_LONGEST]})
            )
        if "formal_statement" not in fields:
            fields["formal_statement"] = None
        return await self._attempt(
            sample, request, talk, {**fields, "header": row["header"], "statement_attempts": attempts}
        )

    def _prompt(self, status: str) -> str:
        config = self._config
        by_status = {"no_statement": config.parsing_prompt, "inconsistent": config.consistency_prompt}
        return by_status.get(status, config.code_prompt)

    async def _judge(self, row: Row, checked: StatementCheck, kit: Kit) -> Row:
        """Read the statement back into words, and compare these with the problem."""
        read = await self._ask(self._config.backtranslation_prompt, {**row, "formal_statement": checked.text}, kit)
        verdict = await self._ask(self._config.judge_prompt, {**row, "back_translation": read}, kit)
        same = parse_judgement(verdict)
        status = {True: "completed", False: "inconsistent", None: "unjudged"}[same]
        return {"back_translation": read, "judgement": verdict, "statement_status": status}

    async def _ask(self, prompt: str, row: Row, kit: Kit) -> str:
        if self._config.judge_role not in kit.models:
            raise ConfigError(
                f"There is no model '{self._config.judge_role}'; the choices are {', '.join(sorted(kit.models))}."
            )
        question = self._chat.with_prompt(self._load(prompt)).request(Sample(id=str(row.get("id", "")), row=row))
        reply = await ask(kit.models[self._config.judge_role], question)
        return without_thinking(reply.text)
