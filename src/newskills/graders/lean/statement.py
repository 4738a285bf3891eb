# SPDX-License-Identifier: Apache-2.0
"""Lean 4 statements without proofs, as answers: whether Lean takes them."""

from __future__ import annotations

import re
from typing import Annotated

from msgspec import Meta, Struct

from newskills.base.errors import SandboxError
from newskills.base.protocols import Execution, ExecutionResult, Kit
from newskills.base.records import Row, Score
from newskills.graders.code.extract import extract_code
from newskills.graders.lean.grader import (
    OUTPUT,
    LeanProofConfig,
    axioms_of,
    first_error,
    not_taken,
)
from newskills.graders.lean.program import Names, Statement, new_names, read_statement
from newskills.graders.lean.source import forbidden_reason, without_comments
from newskills.graders.reading.replies import no_answer_score, verdict_score

HEADER = (
    "import Mathlib\nimport Aesop\n\nset_option maxHeartbeats 400000\n\nopen BigOperators Real Nat Topology Rat\n"
)
"""Where neither the record nor the settings have one."""
_IMPORT = re.compile(r"^[ \t]*(?:prelude|import[ \t][^\n]*)$", re.MULTILINE)


class LeanStatementConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`++eval_config.*` of `eval_type=lean4-statement`."""

    timeout: Annotated[float, Meta(gt=0, description="seconds on the clock for one statement")] = 30.0
    header: Annotated[
        str, Meta(description="imports and opened names; empty: the record's, or Mathlib with the usual ones")
    ] = ""
    final_answer_key: Annotated[
        str, Meta(description="the statement is looked for behind this text, where the answer has it")
    ] = LeanProofConfig().final_answer_key
    num_parallel_requests: Annotated[
        int, Meta(ge=1, description="kept for older scripts: the sandbox decides how many run at once")
    ] = 10


class StatementCheck(Struct, frozen=True, kw_only=True):
    """What became of a statement. `status`: completed; no_statement (it cannot be read); forbidden; timeout;
    error (`why`: what Lean says); failed: Lean did not take the header, which is not the answer's doing."""

    status: str
    why: str
    text: str = ""

    @property
    def holds(self) -> bool:
        return self.status == "completed"


class LeanStatementGrader:
    """Has Lean elaborate the statement of the answer, proved by `sorry`, in the sandbox. That it says what it should
    is not looked at. Fields written: `predicted_proof` (the statement), `proof_status`."""

    name = "lean4-statement"
    version = "2"
    answer_keys = ("generation",)
    Config = LeanStatementConfig

    def __init__(self, config: LeanStatementConfig = LeanStatementConfig()) -> None:  # noqa: B008 - frozen
        self.config = config
        self._stamp = f"{self.name}@{self.version}"

    async def grade(self, record: Row, kit: Kit) -> Score:
        checked = await self.check(str(record.get("generation") or ""), record, kit)
        if not checked.text:
            return no_answer_score(self._stamp, record, {"predicted_proof": None, "proof_status": checked.status})
        if checked.status == "error":
            status = f"error: {checked.why}"
        else:
            status = checked.status
        fields: Row = {"predicted_proof": checked.text, "proof_status": status}
        if checked.status == "failed":
            return Score(outcome="unscored", fields=fields, grader=self._stamp, why=checked.why, cause="grader")
        return verdict_score(self._stamp, checked.holds, fields, checked.why)

    def header(self, record: Row) -> str:
        return self.config.header or str(record.get("header") or "") or HEADER

    async def check(self, generation: str, record: Row, kit: Kit) -> StatementCheck:
        """Find the statement in `generation` and check it with Lean. Raises SandboxError."""
        if kit.sandbox is None:
            raise SandboxError("There is no sandbox to run Lean in.")
        key = self.config.final_answer_key
        reply_end = generation.rpartition(key)[2] if key else generation
        extracted = extract_code(reply_end, "lean")
        prose = extracted.how == "whole" and ":=" not in extracted.code
        text = ""
        if not prose:
            text = _IMPORT.sub("", without_comments(extracted.code)).strip()
        if not text:
            return StatementCheck(status="no_statement", why="there is no Lean code in the answer")
        try:
            statement = read_statement(self.header(record), text)
        except ValueError as error:
            return StatementCheck(status="no_statement", why=f"it is no statement: {error}", text=text)
        source = f"{statement.preamble}\n{statement.text}"
        if why := forbidden_reason(source):
            return StatementCheck(status="forbidden", why=why, text=source)
        names = new_names()
        execution = Execution(
            code=_statement_program(statement, names),
            language="lean4",
            timeout=self.config.timeout,
            max_output_characters=OUTPUT,
        )
        status, why = _read_verdict(await kit.sandbox.execute(execution), names)
        end = " := by" if statement.tactics else " :="
        return StatementCheck(status=status, why=why, text=f"{source.strip()}{end}\n")


def _statement_program(statement: Statement, names: Names) -> str:
    """Return the header alone, with a mark, then the statement, with another: errors before the first are the
    header's."""
    marks = [f"theorem {name} : True := True.intro\n#print axioms {name}" for name in (names.mark, names.final)]
    proof = f"{statement.text} := by sorry"
    return "\n".join((statement.header.strip(), marks[0], statement.preamble, proof, marks[1], ""))


def _read_verdict(result: ExecutionResult, names: Names) -> tuple[str, str]:
    output = f"{result.stdout}\n{result.stderr}".replace("\r", "")
    mark = re.search(axioms_of(names.mark), output)
    before_mark = output[: mark.start()] if mark else output
    before = first_error(before_mark)
    ended = result.status if result.status not in ("completed", "failed") else ""
    if before or mark is None:
        return "failed", not_taken(before or ended.replace("_", " ") or output.strip())
    if ended == "timeout":
        return "timeout", f"Lean was not done with the statement after {result.seconds:.0f} s"
    if ended:
        return "error", f"Lean could not finish the statement ({ended.replace('_', ' ')})"
    if error := first_error(output[mark.end() :]):
        return "error", error
    if re.search(axioms_of(names.final), output) is None:
        return "error", "Lean did not come to the end of the statement"
    return "completed", "Lean takes the statement"
