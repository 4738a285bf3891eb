# SPDX-License-Identifier: Apache-2.0
"""A program in steps, each asked for with the code of the steps before it (SciCode, arXiv:2407.13168).

Steps whose code the benchmark gives are not asked for.
"""

from __future__ import annotations

from itertools import takewhile
from typing import Annotated

from msgspec import Meta, Struct, structs

from newskills.base.errors import DataError
from newskills.base.protocols import Kit
from newskills.base.reading.reply_text import join_turns
from newskills.base.records import Attempt, Request, Row, Sample
from newskills.graders.code.extract import extract_code
from newskills.graders.code.given import GIVEN
from newskills.graders.code.scicode import without_imports
from newskills.solve.chat import MAIN, ask
from newskills.solve.parts import SolverParts

_SUMS = (
    "num_generated_tokens",
    "num_reasoning_tokens",
    "num_answer_tokens",
    "num_input_tokens",
    "generation_time",
)


class SciCodeSolverConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`++solver_config.*` of the solver `scicode`."""

    with_background: Annotated[bool, Meta(description="show the model the scientific background of each step")] = (
        True
    )


class SciCodeSolver:
    """Row: `required_dependencies`; `sub_steps`: step_number, function_header, description and background.

    Written: `steps`, step number → code, and all answers one after the other under the generation key.
    """

    Config = SciCodeSolverConfig

    def __init__(self, parts: SolverParts, config: SciCodeSolverConfig = SciCodeSolverConfig()) -> None:  # noqa: B008 - frozen
        self._chat = parts.chat
        self._config = config

    def request(self, sample: Sample) -> Request:
        """Return the request of the first step that is not given. Raises DataError for a row without steps."""
        if not isinstance(sample.row.get("sub_steps"), list) or not sample.row["sub_steps"]:
            raise DataError(f"Record {sample.id} has no list of sub_steps.")
        numbers = [str(step["step_number"]) for step in sample.row["sub_steps"]]
        request = self._ask(sample, {number: GIVEN[number] for number in takewhile(GIVEN.__contains__, numbers)})
        request.solver = {"scicode": structs.asdict(self._config), "sub_steps": sample.row["sub_steps"]}
        return request

    async def solve(self, sample: Sample, request: Request, kit: Kit) -> Attempt:
        codes: Row = {}
        step_fields: list[Row] = []
        for step in sample.row["sub_steps"]:
            number = str(step["step_number"])
            if number in GIVEN:
                codes[number] = GIVEN[number]
                continue
            step_request = self._ask(sample, codes)
            reply = await ask(kit.models[MAIN], step_request)
            attempt = await self._chat.attempt(sample, step_request, reply, self._chat.text(reply))
            step_fields.append(attempt.fields)
            code = extract_code(str(attempt.fields[self._chat.generation_key])).code
            codes[number] = without_imports(code).strip("\n")
        return Attempt(
            sample_id=sample.id, key=request.key(), fields={**self._join_steps(step_fields), "steps": codes}
        )

    def _ask(self, sample: Sample, codes: Row) -> Request:
        """Make the request for the step that follows those in `codes`."""
        steps = sample.row["sub_steps"]
        done = [f"{self._format_step(step)}\n\n{codes[str(step['step_number'])]}" for step in steps[: len(codes)]]
        following = steps[len(codes)]
        row = {
            **sample.row,
            "problem_steps_str": "\n\n".join(done) or "(nothing yet)",
            "next_step_str": f"{self._format_step(following)}\n\n{following['function_header']}",
            "dependencies": sample.row["required_dependencies"],
        }
        return self._chat.request(Sample(id=sample.id, row=row))

    def _format_step(self, step: Row) -> str:
        background = str(step.get("step_background") or "") if self._config.with_background else ""
        return "\n".join(part for part in (str(step["step_description_prompt"]), background) if part)

    def _join_steps(self, step_fields: list[Row]) -> Row:
        key = self._chat.generation_key
        sums = {
            name: sum(fields[name] for fields in step_fields)
            for name in _SUMS
            if all(name in each for each in step_fields)
        }
        text = join_turns([str(fields[key]) for fields in step_fields], "\n\n")
        started = {name: step_fields[0][name] for name in ("generation_start_time",) if name in step_fields[0]}
        return {**step_fields[-1], **sums, **started, key: text}
