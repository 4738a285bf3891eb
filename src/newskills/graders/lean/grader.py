# SPDX-License-Identifier: Apache-2.0
"""Lean 4 proofs of given theorems."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from msgspec import Meta, Struct

from newskills.base.errors import SandboxError
from newskills.base.protocols import Execution, ExecutionResult, Kit
from newskills.base.records import Cause, Row, Score
from newskills.graders.code.extract import ExtractedCode, extract_code, text_with_code
from newskills.graders.lean.program import (
    Names,
    Proof,
    Statement,
    new_names,
    proof_program,
    read_proof,
    read_statement,
)
from newskills.graders.lean.source import UNPROVED, forbidden_reason, lean_tokens
from newskills.graders.reading.replies import no_answer_score, ungradable_score, visible_reply

AXIOMS = frozenset({"propext", "Classical.choice", "Quot.sound", "choice", "sound"})
"""Lean may print a name as short as the header's opened namespaces allow; answers declare no axioms of their own."""
OUTPUT = 200_000
_FENCE = "```"
_STEP = re.compile(r"[a-z_][\w.']*(?:[ \[(⟨]|$)|[·⟨({]|--")
_ERROR = re.compile(r"main\.lean:\d+:\d+: error(?:\([^)\n]*\))?: *([^\n]*)")
_NO_LIBRARY = re.compile(r"unknown (?:module prefix|package) |object file .{1,300} does not exist|unknown import")
_LEAN_HELP = "name a project that has it built as ++sandbox.lean"
_MAX_WHY = 300


class LeanProofConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`++eval_config.*` of `eval_type=lean4-proof`."""

    timeout: Annotated[float, Meta(gt=0, description="seconds on the clock for one proof")] = 30.0
    extract_code_mode: Annotated[
        Literal["last", "first"], Meta(description="which block of Lean code holds the proof")
    ] = "last"
    restate_formal_statement: Annotated[
        bool, Meta(description="put the proof under the record's statement, whatever the answer repeats of it")
    ] = True
    final_answer_key: Annotated[
        str, Meta(description="the proof is looked for behind this text, where the answer has it")
    ] = "**FINAL ANSWER**"
    num_parallel_requests: Annotated[
        int, Meta(ge=1, description="kept for older scripts: the sandbox decides how many run at once")
    ] = 10


class LeanProofGrader:
    """Has Lean check the answer's proof of the record's `formal_statement` (after its `header`) in the sandbox.

    Right is a proof of that very statement without errors that rests on no axiom but Lean's own three. An answer with
    text that could run code while it is checked, or change what is assumed, is not run and counts as wrong, and so
    does one that takes more than `timeout` or the sandbox's memory: else a prover could choose not to be counted.
    Where Lean does not come to the end of the statement itself (no Mathlib, another version), the answer is unscored.
    Fields written: `predicted_proof` (declarations, statement, proof), `proof_status` (completed, has_sorry, forbidden,
    axioms, timeout, failed, no_proof, or error: the message of the compiler).
    """

    name = "lean4-proof"
    version = "3"
    answer_keys = ("generation",)
    Config = LeanProofConfig

    def __init__(self, config: LeanProofConfig = LeanProofConfig()) -> None:  # noqa: B008 - frozen
        self.config = config
        self._stamp = f"{self.name}@{self.version}"

    async def grade(self, record: Row, kit: Kit) -> Score:
        """Let Lean check the answer's proof. Raises SandboxError where there is no sandbox."""
        if kit.sandbox is None:
            raise SandboxError("There is no sandbox to run Lean in.")
        try:
            statement = read_statement(str(record.get("header") or ""), str(record["formal_statement"]))
        except (KeyError, ValueError) as error:
            fields: Row = {"predicted_proof": None, "proof_status": "failed"}
            return ungradable_score(self._stamp, f"the record has no statement to prove: {error}", fields)
        extracted = self._extract_lean(str(record.get("generation") or ""))
        proof = None
        if extracted.code:
            proof = read_proof(extracted.code, statement, restate=self.config.restate_formal_statement)
        if proof is None:
            return no_answer_score(self._stamp, record, {"predicted_proof": None, "proof_status": "no_proof"})
        why = forbidden_reason(proof.text.replace(statement.text, " ", 1))
        if why:
            unproved = any(f"`{word}`" in why for word in UNPROVED)
            status = "has_sorry" if unproved else "forbidden"
            return self._make_score(proof, status, why)
        return await self._check_proof(statement, proof, kit)

    async def _check_proof(self, statement: Statement, proof: Proof, kit: Kit) -> Score:
        assert kit.sandbox is not None
        names = new_names()
        execution = Execution(
            code=proof_program(statement, proof, names),
            language="lean4",
            timeout=self.config.timeout,
            max_output_characters=OUTPUT,
        )
        result = await kit.sandbox.execute(execution)
        return self._make_score(proof, *read_verdict(result, names))

    def _extract_lean(self, generation: str) -> ExtractedCode:
        if self.config.final_answer_key:
            text = generation.rpartition(self.config.final_answer_key)[2]
        else:
            text = generation
        if self.config.extract_code_mode == "first":
            blocks = (text_with_code(text) or "").split(_FENCE, 3)
            if len(blocks) > 2:
                text = _FENCE.join(blocks[:3])
        extracted = extract_code(text, "lean")
        plain = extracted.how == "whole" and not any(
            token.text in (":=", "by") for token in lean_tokens(extracted.code)
        )
        if not extracted.code or plain:
            return ExtractedCode(code=_begun_proof(text), how="whole")
        return extracted

    def _make_score(self, proof: Proof, status: str, why: str) -> Score:
        fields: Row = {"predicted_proof": proof.text, "proof_status": status}
        if status == "failed":
            return Score(outcome="unscored", fields=fields, grader=self._stamp, why=why, cause="grader")
        right = status == "completed"
        cause: Cause | None = None if right else "model"
        return Score(
            outcome="correct" if right else "wrong", fields=fields, grader=self._stamp, why=why, cause=cause
        )


def read_verdict(result: ExecutionResult, names: Names) -> tuple[str, str]:
    """Return (`proof_status`, reason) by what Lean said. What stands before the mark is not the answer's doing."""
    output = f"{result.stdout}\n{result.stderr}".replace("\r", "")
    mark = re.search(axioms_of(names.mark), output)
    before_mark = output[: mark.start()] if mark else output
    before = _ERROR.search(before_mark)
    ended = result.status if result.status not in ("completed", "failed") else ""
    if mark is None and ended:
        how = ended.replace("_", " ")
        return "failed", f"Lean did not come to the end of the statement itself ({how}, {result.seconds:.0f} s)"
    if before or mark is None:
        reason = before[1] if before else output.strip()
        return "failed", not_taken(reason)
    if ended == "timeout":
        return "timeout", f"Lean was not done with the answer after {result.seconds:.0f} s"
    if ended:
        return f"error: {ended}", f"Lean could not finish the answer ({ended.replace('_', ' ')})"
    answer = output[mark.end() :]
    error = _ERROR.search(answer)
    if error or result.status == "failed":
        message = _without_random_names(error[1] if error else "Lean gave no reason", names)
        return f"error: {message}", message
    return _by_axioms(re.findall(axioms_of(names.final), answer))


def _begun_proof(text: str) -> str:
    """Return the steps with which a reply goes on in the block of code that its prompt has begun, up to where it closes
    that block; empty where the reply begins with prose."""
    steps, fence, _ = (visible_reply(text) or "").partition(_FENCE)
    steps = steps.rstrip()
    first = steps.partition("\n")[0].rstrip()
    if _STEP.match(first) is None or (not fence and first.endswith((".", ":", "!", "?"))):
        return ""
    before = text[: text.rfind(steps)].rpartition("\n")[2]
    if before.isspace():
        return before + steps
    return steps


def axioms_of(name: str) -> str:
    """Return the pattern of the line that `#print axioms` writes about `name`, whose list may go over several lines."""
    return rf"'(?:[^'\n]{{0,200}}\.)?{name}' (?:does not depend on any axioms|depends on axioms: \[([^\]]*)\])"


def first_error(output: str) -> str:
    """Return Lean's first message about an error; empty where there is none."""
    match = _ERROR.search(output)
    if match:
        return match[1] or "no reason is given"
    return ""


def _by_axioms(axiom_lists: list[str]) -> tuple[str, str]:
    if len(axiom_lists) != 1:
        return "error: no report", "Lean did not come to the report on the axioms"
    used = {name.strip() for name in axiom_lists[0].split(",") if name.strip()}
    if "sorryAx" in used:
        return "has_sorry", "the proof rests on `sorry`"
    if used - AXIOMS:
        return "axioms", f"the proof rests on {', '.join(sorted(used - AXIOMS))}"
    return "completed", "Lean accepts the proof"


def not_taken(message: str) -> str:
    shown = message[:_MAX_WHY] or "no message"
    if _NO_LIBRARY.search(message):
        return f"a library is missing ({shown}); {_LEAN_HELP}"
    return f"Lean does not take the statement itself: {shown}"


def _without_random_names(message: str, names: Names) -> str:
    """Remove names that differ from run to run."""
    for name in (names.asked, names.final, names.mark):
        message = message.replace(name, "_")
    return message[:_MAX_WHY]
