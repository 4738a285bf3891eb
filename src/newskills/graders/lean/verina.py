# SPDX-License-Identifier: Apache-2.0
"""Lean 4 programs, and specifications of programs, judged by tests that Lean evaluates (Verina, arXiv:2505.23135)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from secrets import token_hex
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from newskills.base.errors import SandboxError
from newskills.base.protocols import Execution, ExecutionResult, Kit
from newskills.base.records import Row, Score
from newskills.graders.code.extract import extract_code
from newskills.graders.lean.grader import OUTPUT, first_error, not_taken
from newskills.graders.lean.program import Proof, Statement, read_proof
from newskills.graders.lean.source import forbidden_reason
from newskills.graders.reading.replies import no_answer_score, verdict_score

_UNTRUE = "did not evaluate to"
_PROOFS = "first | decide | simp_all | omega | grind"


class VerinaConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`++eval_config.*` of `eval_type=verina-code` and `verina-spec`."""

    timeout: Annotated[float, Meta(gt=0, description="seconds on the clock for all tests of one answer")] = 120.0
    header: Annotated[str, Meta(description="Lean's header; empty: that of the record")] = ""


class Parameter(Struct, frozen=True):
    param_name: str
    param_type: str


class Signature(Struct, frozen=True):
    """Of the function that a task is about."""

    name: str
    parameters: list[Parameter]
    return_type: str

    @property
    def binders(self) -> str:
        return " ".join(f"({each.param_name} : {each.param_type})" for each in self.parameters)

    @property
    def assumed(self) -> str:
        """The hypothesis that the precondition holds."""
        return f"(h_precond : {' '.join([f'{self.name}_precond', *(p.param_name for p in self.parameters)])})"


class Values:
    """The values of the tests as definitions, which stand before the answer: it could change what literals mean."""

    def __init__(self, mark: str, signature: Signature) -> None:
        self.signature, self.definitions = signature, list[str]()
        self._mark = mark

    def one(self, kind: str, value: Any) -> str:
        """Add the definition of `value` and return its name."""
        name = f"{self._mark}_{len(self.definitions)}"
        self.definitions.append(f"abbrev {name} : {kind} := {lean_value(kind, value)}")
        return name

    def inputs(self, arguments: Row) -> str:
        return " ".join(
            self.one(each.param_type, arguments[each.param_name]) for each in self.signature.parameters
        )

    def result(self, value: Any) -> str:
        return self.one(self.signature.return_type, value)


class LeanVerdicts(Struct):
    """What Lean says of each test, in order: True, False, or None where it was not decided."""

    found: list[bool | None]
    status: str = "completed"
    why: str = ""


def lean_value(kind: str, value: Any) -> str:
    """Return a value of the tests in Lean; most are written so there already."""
    if kind == "Bool":
        return str(value).lower()
    if kind == "String":
        return msgspec.json.encode(str(value)).decode()
    if kind == "Char":
        return f"'{value}'"
    return str(value)


class _TestedGrader:
    """What both share. Row: `header`, `given` (what precedes the answer), `signature`, `tests`, `reject_inputs`."""

    name = ""
    version = "2"
    Config = VerinaConfig

    def __init__(self, config: VerinaConfig = VerinaConfig()) -> None:  # noqa: B008 - frozen
        self.config = config
        self._stamp = f"{self.name}@{self.version}"

    def _statement_of(self, record: Row, keyword: str, name: str, head: str) -> Statement:
        header = self.config.header or str(record["header"])
        return Statement(header, str(record["given"]), keyword, name, head, tactics=False)

    async def _run_checks(
        self, record: Row, values: Values, answer: str, checks: Sequence[str], kit: Kit
    ) -> LeanVerdicts:
        """Run the answer and then `checks`, one command of Lean each, and return the verdicts."""
        if kit.sandbox is None:
            raise SandboxError("There is no sandbox to run Lean in.")
        mark = f"_ns_{token_hex(12)}"
        header = self.config.header or str(record["header"])
        definitions = [header, str(record["given"]), *values.definitions]
        text = [*definitions, f'#print "{mark}:given"', answer, f'#print "{mark}:answer"']
        for number, check in enumerate(checks):
            text += [f'#print "{mark}:{number}"', check]
        text.append(f'#print "{mark}:end"')
        execution = Execution(
            code="\n\n".join(text) + "\n",
            language="lean4",
            timeout=self.config.timeout,
            max_output_characters=OUTPUT,
        )
        return _read_verdicts(await kit.sandbox.execute(execution), mark, len(checks))

    def _unscored_tests(self, record: Row, verdicts: LeanVerdicts, text: str) -> Score | None:
        """Return the score where the tests were not all run; None where they were."""
        fields: Row = {"predicted_proof": text, "proof_status": verdicts.status}
        if verdicts.status == "failed":
            return Score(outcome="unscored", fields=fields, grader=self._stamp, why=verdicts.why, cause="grader")
        if verdicts.status != "completed":
            if verdicts.status == "error":
                fields["proof_status"] = f"error: {verdicts.why}"
            else:
                fields["proof_status"] = verdicts.status
            return verdict_score(self._stamp, False, fields, verdicts.why)
        return None

    def _not_read(self, record: Row) -> Score:
        return no_answer_score(self._stamp, record, {"predicted_proof": None, "proof_status": "no_proof"})


class VerinaCodeGrader(_TestedGrader):
    """The answer is the function of `signature`, with helpers before it: right where all `tests` give what they should.

    A test that Lean cannot evaluate for this function counts against it. Fields written: `predicted_proof` (the
    program), `proof_status`, `tests_passed`.
    """

    name = "verina-code"

    def gold_reply(self, record: Row) -> str | None:
        if record.get("code"):
            return f"```lean4\n{record['code']}\n```"
        return None

    async def grade(self, record: Row, kit: Kit) -> Score:
        signature = msgspec.convert(record["signature"], Signature)
        head = f" {signature.binders} {signature.assumed} : {signature.return_type}"
        statement = self._statement_of(record, "def", signature.name, head)
        code = extract_code(str(record.get("generation") or ""), "lean").code
        answer = None
        if f"def {signature.name}" in code:
            answer = read_proof(code, statement, restate=True)
        if answer is None:
            return self._not_read(record)
        if why := forbidden_reason(answer.text):
            return _refused_score(self._stamp, answer, why)
        values = Values(f"_ns_{token_hex(6)}", signature)
        checks = [
            f"#guard decide ({signature.name} {values.inputs(test['input'])} (by sorry)"
            f" = {values.result(test['expected'])})"
            for test in record["tests"]
        ]
        verdicts = await self._run_checks(record, values, answer.text, checks, kit)
        if (score := self._unscored_tests(record, verdicts, answer.text)) is not None:
            return score
        passed = sum(verdict is True for verdict in verdicts.found)
        fields: Row = {"predicted_proof": answer.text, "proof_status": "completed", "tests_passed": passed}
        return verdict_score(self._stamp, passed == len(checks), fields, f"{passed} of {len(checks)} tests")


class VerinaSpecGrader(_TestedGrader):
    """The answer is `<name>_precond` and `<name>_postcond`. They are right where the first holds for the inputs of all
    tests and for no rejected input, the second for what is expected and for nothing unexpected. What Lean neither
    decides nor proves either way leaves the answer unscored, where nothing else is wrong.

    Fields written: `predicted_proof` (the conditions), `proof_status`, `spec_checks` (true, false, null for each).
    """

    name = "verina-spec"

    def gold_reply(self, record: Row) -> str | None:
        if record.get("specification"):
            return f"```lean4\n{record['specification']}\n```"
        return None

    async def grade(self, record: Row, kit: Kit) -> Score:
        signature = msgspec.convert(record["signature"], Signature)
        code = extract_code(str(record.get("generation") or ""), "lean").code
        conditions = self._read_conditions(record, signature, code)
        if conditions is None:
            return self._not_read(record)
        if why := forbidden_reason(conditions.text):
            return _refused_score(self._stamp, conditions, why)
        values = Values(f"_ns_{token_hex(6)}", signature)
        claims = _test_claims(record, values)
        checks = [f"#guard decide ({claim})" for claim in claims]
        verdicts = await self._run_checks(record, values, conditions.text, checks, kit)
        if (score := self._unscored_tests(record, verdicts, conditions.text)) is not None:
            return score
        left = [at for at, verdict in enumerate(verdicts.found) if verdict is None]
        if left and False not in verdicts.found:
            proofs = [line for at in left for line in _opposite_examples(signature, claims[at])]
            again = await self._run_checks(record, values, conditions.text, proofs, kit)
            for at, holds, fails in zip(left, again.found[::2], again.found[1::2], strict=False):
                if holds or fails:
                    verdicts.found[at] = bool(holds)
        fields: Row = {
            "predicted_proof": conditions.text,
            "proof_status": "completed",
            "spec_checks": verdicts.found,
        }
        if False in verdicts.found:
            return verdict_score(
                self._stamp, False, fields, f"test {verdicts.found.index(False) + 1} of {len(claims)}"
            )
        if None in verdicts.found:
            why = f"{verdicts.found.count(None)} of {len(claims)} tests are neither decided nor proved"
            return Score(outcome="unscored", fields=fields, grader=self._stamp, why=why, cause="grader")
        return verdict_score(self._stamp, True, fields, f"all {len(claims)} tests")

    def _read_conditions(self, record: Row, signature: Signature, code: str) -> Proof | None:
        """Return the proof with both definitions, under the heads that the task says; None where one is missing."""
        pre, post = f"{signature.name}_precond", f"{signature.name}_postcond"
        if f"def {pre}" not in code or f"def {post}" not in code:
            return None
        first, _, second = code.partition(f"def {post}")
        opening = first.rstrip().rfind("@[")
        if opening > first.rfind(f"def {pre}") and "]" in first[opening:]:
            first = first[:opening]
        precondition = read_proof(
            first, self._statement_of(record, "def", pre, f" {signature.binders} : Prop"), restate=True
        )
        head = f" {signature.binders} (result : {signature.return_type}) {signature.assumed} : Prop"
        postcondition = read_proof(
            f"def {post}{second}", self._statement_of(record, "def", post, head), restate=True
        )
        if precondition is None or postcondition is None:
            return None
        text = f"{_reducible_source(precondition)}\n\n{_reducible_source(postcondition)}"
        return Proof("", "", text)


def _opposite_examples(signature: Signature, claim: str) -> list[str]:
    """Return a claim that cannot be decided as two examples: to be proved, and to be disproved."""
    unfold = f"try simp only [{signature.name}_precond, {signature.name}_postcond]"
    return [f"example : {sign}({claim}) := by\n  {unfold}\n  {_PROOFS}" for sign in ("", "¬")]


def _reducible_source(proof: Proof) -> str:
    return f"{proof.before}\n@[reducible, simp]\n{proof.statement} {proof.body}".strip()


def _test_claims(record: Row, values: Values) -> list[str]:
    name, claims = values.signature.name, []
    for test in record["tests"]:
        inputs = values.inputs(test["input"])
        claims.append(f"{name}_precond {inputs}")
        claims.append(f"{name}_postcond {inputs} {values.result(test['expected'])} (by sorry)")
        unexpected = test.get("unexpected", ())
        claims += [f"¬ {name}_postcond {inputs} {values.result(other)} (by sorry)" for other in unexpected]
    return claims + [f"¬ {name}_precond {values.inputs(each['input'])}" for each in record["reject_inputs"]]


def _refused_score(stamp: str, proof: Proof, why: str) -> Score:
    return verdict_score(stamp, False, {"predicted_proof": proof.text, "proof_status": "forbidden"}, why)


def _read_verdicts(result: ExecutionResult, mark: str, count: int) -> LeanVerdicts:
    """Read the verdicts from what stands between the marks; errors before the answer are not its doing."""
    output = f"{result.stdout}\n{result.stderr}".replace("\r", "")
    before, given_mark, rest = output.partition(f"{mark}:given")
    ended = result.status if result.status not in ("completed", "failed") else ""
    if not given_mark or first_error(before):
        why = first_error(before) or (f"Lean ended: {ended}" if ended else before.strip())
        return LeanVerdicts([], "failed", not_taken(why))
    answer, built, tests = rest.partition(f"{mark}:answer")
    if ended and f"{mark}:end" not in tests:
        status = "timeout" if ended == "timeout" else "error"
        return LeanVerdicts([], status, f"Lean could not finish the answer ({ended.replace('_', ' ')})")
    if error := first_error(answer):
        return LeanVerdicts([], "error", error)
    if not built or f"{mark}:end" not in tests:
        return LeanVerdicts([], "error", "Lean did not come to the end of the tests")
    pieces = re.split(rf"{mark}:(?:\d+|end)", tests)[1 : count + 1]
    return LeanVerdicts([_is_proved(piece) for piece in pieces])


def _is_proved(piece: str) -> bool | None:
    if _UNTRUE in piece:
        return False
    if first_error(piece):
        return None
    return True
