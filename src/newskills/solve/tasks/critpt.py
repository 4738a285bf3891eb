# SPDX-License-Identifier: Apache-2.0
"""CritPt in two turns, as its makers ask (arXiv:2509.26574): the derivation first, then its result as a function."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from newskills.base.protocols import Kit
from newskills.base.records import Attempt, Request, Row, Sample
from newskills.solve.parts import SolverParts
from newskills.solve.turns import TurnsSolver


class CritPtConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`++solver_config.*` of `solver=critpt`."""

    second_prompt: Annotated[str, Meta(description="prompt that asks for the code")] = "eval/critpt/code_output"


class CritPtSolver(TurnsSolver):
    """`generation` is the second reply; `turn_answers` has both."""

    Config = CritPtConfig

    def __init__(self, parts: SolverParts, config: CritPtConfig = CritPtConfig()) -> None:  # noqa: B008 - frozen
        """Load the second prompt. Raises UnknownNameError, ConfigError for the prompt."""
        super().__init__(parts)
        self._second = parts.load(config.second_prompt)

    def request(self, sample: Sample) -> Request:
        """Return the request of the first turn. Raises DataError for a row that a prompt does not fit."""
        return super().request(self._with_turns(sample))

    async def solve(self, sample: Sample, request: Request, kit: Kit) -> Attempt:
        return await super().solve(self._with_turns(sample), request, kit)

    def _with_turns(self, sample: Sample) -> Sample:
        second_question = self._second.messages(sample.row)[-1].content
        row: Row = {**sample.row, "turns": [sample.row["problem"], str(second_question)]}
        return Sample(id=sample.id, row=row, position=sample.position)
