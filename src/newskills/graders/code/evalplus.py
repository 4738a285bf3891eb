# SPDX-License-Identifier: Apache-2.0
"""Python functions judged by unit tests (HumanEval, MBPP, and the further tests of EvalPlus, arXiv:2305.01210)."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from newskills.base.errors import SandboxError
from newskills.base.protocols import Kit
from newskills.base.records import Cause, Row, Score
from newskills.graders.code.extract import ExtractedCode, extract_code
from newskills.graders.code.harness import Program, Suite, SuiteVerdict, Time, run_program
from newskills.graders.code.suspicion import list_suspicions

PLUS = "is_correct-plus"
_WALL = 6


class EvalPlusConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`++eval_config.*` of `eval_type=evalplus`."""

    timeout: Annotated[
        float, Meta(gt=0, description="CPU seconds for all tests of one answer; on the clock, six times as much")
    ] = 5.0
    evalplus: Annotated[Row, Meta(description="kept for older scripts: each row tells which tests it has")] = {}


class EvalPlusGrader:
    """Runs the answer's code against the row's tests in the run's sandbox.

    Row: `entry_point` (or `names`, all that the tests use of the answer), and `test` (a function `check`) or
    `test_list`; `prompt` where the function's head is given; `plus_test_list` for further tests; `cpu_seconds` where a
    suite needs more than `timeout`.
    Fields written: `completion` (the code), `is_correct`, and with further tests `is_correct-plus`.
    """

    name = "evalplus"
    version = "5"
    answer_keys = ("generation",)
    Config = EvalPlusConfig

    def __init__(self, config: EvalPlusConfig = EvalPlusConfig()) -> None:  # noqa: B008 - frozen
        self.config = config
        self._stamp = f"{self.name}@{self.version}"

    def gold_reply(self, record: Row) -> str | None:
        """Return the row's `canonical_solution`, behind the head that the prompt gives; None where it has none."""
        solution = record.get("canonical_solution")
        if solution is None:
            return None
        return f"```python\n{record.get('prompt', '')}{solution}\n```"

    def same_replies(self, record: Row) -> list[str]:
        """Return the gold reply with words around it; empty where there is none."""
        gold = self.gold_reply(record)
        if gold is None:
            return []
        return [f"Here is the function.\n\n{gold}\n\nIt passes `assert 1 < 2`."]

    async def grade(self, record: Row, kit: Kit) -> Score:
        """Run the answer's function against the suites of the record.

        Raises SandboxError where there is no sandbox.
        """
        if kit.sandbox is None:
            raise SandboxError("There is no sandbox to run the tests in.")
        extracted = extract_code(str(record.get("generation") or ""), wanted=str(record.get("entry_point") or ""))
        if not extracted.code:
            return self._no_answer(extracted, record)
        try:
            program = program_of(record, extracted.code)
        except (KeyError, TypeError, ValueError) as error:
            fields = self._score_fields(extracted.code, record, None)
            why = f"the record has no tests ({type(error).__name__}: {error})"
            return Score(outcome="unscored", fields=fields, grader=self._stamp, why=why, cause="data")
        verdicts = await run_program(program, self.time(record, len(program.suites)), kit.sandbox)
        return self._make_score(extracted, record, verdicts)

    def time(self, record: Row, suites: int) -> Time:
        """Return the time that the suites of a record may take together."""
        cpu = suites * max(self.config.timeout, float(record.get("cpu_seconds") or 0))
        return Time(cpu=cpu, wall=_WALL * cpu)

    def _make_score(self, extracted: ExtractedCode, record: Row, verdicts: list[SuiteVerdict]) -> Score:
        decisive = next((verdict for verdict in verdicts if not verdict.passed), verdicts[0])
        if not decisive.judged:
            cause: Cause = "data" if decisive.kind == "data" else "grader"
            fields = self._score_fields(extracted.code, record, None)
            return Score(outcome="unscored", fields=fields, grader=self._stamp, why=str(decisive), cause=cause)
        if extracted.how == "whole" and decisive.kind == "load" and decisive.text.startswith(_NO_PROGRAM):
            return self._no_answer(ExtractedCode(code="", how="no program"), record)
        passed = [verdict.passed for verdict in verdicts]
        fields = self._score_fields(extracted.code, record, passed[0])
        if PLUS in fields:
            fields[PLUS] = all(passed)
        why = str(decisive)
        if all(passed):
            return Score(outcome="correct", fields=fields, grader=self._stamp, why=why)
        return Score(outcome="wrong", fields=fields, grader=self._stamp, why=why, cause="model")

    def _no_answer(self, extracted: ExtractedCode, record: Row) -> Score:
        cut_short = extracted.how in ("thinking", "unclosed") or record.get("finish_reason") == "length"
        return Score(
            outcome="no_answer",
            fields=self._score_fields("", record, False),
            grader=self._stamp,
            why=f"no code ({extracted.how})",
            cause="truncation" if cut_short else "model",
        )

    @staticmethod
    def _score_fields(code: str, record: Row, correct: bool | None) -> Row:
        fields: Row = {"completion": code, "is_correct": correct}
        if "plus_test_list" in record:
            fields[PLUS] = correct
        if suspicious := list_suspicions(code):
            fields["suspicious"] = suspicious
        return fields


_NO_PROGRAM = ("SyntaxError", "IndentationError", "TabError")


def program_of(record: Row, code: str) -> Program:
    """Return the answer and the tests of a row. Raises KeyError, TypeError, ValueError for a row without them."""
    prompt = str(record.get("prompt", ""))
    names = [str(name) for name in record.get("names") or [record["entry_point"]]]
    return Program(
        answer=code,
        prefix=_prompt_head(prompt, names[0]),
        prompt=prompt,
        names=names,
        suites=[Suite(before=prompt, tests=tests) for tests in _test_suites(record, names[0])],
    )


def _test_suites(record: Row, entry: str) -> list[list[str]]:
    setup = [str(text) for text in (record.get("test_setup_code"),) if text]
    if "test" in record:
        base = [f"{record['test']}\ncheck({entry})\n"]
    else:
        base = _test_texts(record["test_list"])
    if "plus_test_list" in record:
        more = [setup + _test_texts(record["plus_test_list"])]
    else:
        more = []
    return [setup + base, *more]


def _test_texts(tests: Any) -> list[str]:
    if not isinstance(tests, list) or not tests:
        raise ValueError("a list of tests is expected")
    return [str(test) for test in tests]


def _prompt_head(prompt: str, entry: str) -> str:
    """Return what the prompt gives before the function itself."""
    at = prompt.find(f"def {entry}(")
    if at >= 0:
        return prompt[: prompt.rfind("\n", 0, at) + 1]
    return ""
