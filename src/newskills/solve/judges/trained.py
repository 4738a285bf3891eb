# SPDX-License-Identifier: Apache-2.0
"""Judges that are no language models, or the user's own: what they are given of an answer."""

from __future__ import annotations

from abc import abstractmethod
from string import ascii_uppercase
from typing import Annotated

from msgspec import Meta, Struct

from newskills.base.errors import ConfigError, DataError
from newskills.base.protocols import Kit, Solver
from newskills.base.reading.reply_text import without_thinking
from newskills.base.records import Attempt, Request, Row, Sample
from newskills.base.registry import load_attr
from newskills.solve.generation_modules import refuse_task
from newskills.solve.judges.judge import JudgeSolver, is_lost
from newskills.solve.parts import SolverParts

_SOURCES, _REFERENCES = ("source", "source_text"), ("reference", "expected_answer")


class MeasureSolver(JudgeSolver):
    """Base: sends fields in place of a prompt; the measure comes back as text."""

    def request(self, sample: Sample) -> Request:
        """Return the request with the fields that are measured. Raises DataError for a row without what is measured."""
        if is_lost(sample.row):
            return super().request(sample)
        return Request(prompt="", extra_body=self.fields(sample.row))

    @abstractmethod
    def fields(self, row: Row) -> Row:
        """Return the fields that are measured. Raises DataError."""


class CometSolver(MeasureSolver):
    """A translation (`predicted_answer`, or the whole reply), its `source`, and its `reference`."""

    def fields(self, row: Row) -> Row:
        return {"src": _row_text(row, _SOURCES), "mt": answer_text(row), "ref": _row_text(row, _REFERENCES)}


class NearestOptionSolver(MeasureSolver):
    """The whole reply, and the options `A`, `B` and so on."""

    def fields(self, row: Row) -> Row:
        """Return the answer and the options. Raises DataError for a record with fewer than two options."""
        options = [str(row[letter]) for letter in ascii_uppercase if letter in row]
        if len(options) < 2:
            raise DataError(f"Record {row.get('id')} has no options A, B, … to compare its answer with.")
        return {"answer": _reply_text(row), "options": options}


class StepSolver(MeasureSolver):
    """The whole record, for a function of the user's."""

    def fields(self, row: Row) -> Row:
        return dict(row)


class OwnJudgeConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`++solver_config.*` of `solver=own_judge`."""

    module: Annotated[str, Meta(description="file.py::MAKER or package.module::MAKER: makes the judge's solver")]


class OwnJudge:
    """A solver of the user's as judge; an answer that was lost is not shown to it."""

    Config = OwnJudgeConfig

    def __init__(self, parts: SolverParts, config: OwnJudgeConfig) -> None:
        """Call the maker that `config` names. Raises ConfigError, UnknownNameError for a module without such a
        maker."""
        refuse_task(config.module)
        made = load_attr(config.module, "judge")(parts)
        if not isinstance(made, Solver):
            raise ConfigError(
                f"{config.module} returns no judge: it needs `request(sample)` and `solve(sample, …)`."
            )
        self._own, self._lost = made, JudgeSolver(parts)

    def _solver(self, sample: Sample) -> Solver:
        if is_lost(sample.row):
            return self._lost
        return self._own

    def request(self, sample: Sample) -> Request:
        return self._solver(sample).request(sample)

    async def solve(self, sample: Sample, request: Request, kit: Kit) -> Attempt:
        return await self._solver(sample).solve(sample, request, kit)


def answer_text(row: Row) -> str:
    """Return the answer that a rule has found, or the whole reply."""
    if "predicted_answer" in row:
        return str(row["predicted_answer"] or "")
    return _reply_text(row)


def _reply_text(row: Row) -> str:
    return without_thinking(str(row.get("generation") or ""))


def _row_text(row: Row, names: tuple[str, ...]) -> str:
    for name in names:
        if isinstance(row.get(name), str):
            return str(row[name])
    raise DataError(f"Record {row.get('id')} has no text in {' or '.join(names)}.")
