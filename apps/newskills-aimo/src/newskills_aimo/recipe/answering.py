# SPDX-License-Identifier: Apache-2.0
"""Answers to problems: the strategies of the recipe as solvers of `ns generate`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from newskills.base.errors import ConfigError
from newskills.base.records import Row
from newskills.base.store import read_rows, write_rows
from newskills.graders.math.extraction import ExtractionPolicy, extract_by_policy
from newskills_aimo.recipe.evaluating import prompt_settings, server_options, serving_lines
from newskills_aimo.recipe.lines import CommandLine

Strategy = Literal["greedy", "majority_vote", "weighted_vote", "genselect", "tir"]
SOLVERS: Mapping[str, str] = {
    "majority_vote": "majority",
    "weighted_vote": "weighted_vote",
    "genselect": "genselect",
}
SAMPLES = 16
TEMPERATURE, TOP_P = 0.7, 0.95
PROBLEM, OUTPUT = "problem.jsonl", "output.jsonl"


class AnsweringTask(Struct, frozen=True, kw_only=True):
    """One `problem`, or those of `input_file`. `samples` None: as many as the strategy usually takes."""

    model: str
    strategy: Strategy
    output_dir: Path
    problem: str | None = None
    input_file: str | None = None
    samples: int | None = None
    gpus: int = 0
    address: str | None = None
    keys: Mapping[str, Any] = {}

    @property
    def input(self) -> Path:
        if self.input_file:
            return Path(self.input_file)
        return self.output_dir / PROBLEM


def answering_lines(spec: AnsweringTask) -> Iterator[CommandLine]:
    """Yield the command lines that answer the problems. Raises ConfigError where the problems, or the model, are
    missing."""
    if (spec.problem is None) == (spec.input_file is None):
        raise ConfigError("No problem is given. Give --problem TEXT or --input-file FILE.jsonl.")
    yield from serving_lines(spec.model, spec.gpus, spec.address)
    options = {
        **server_options(spec.model, spec.gpus, spec.address),
        "input_file": spec.input,
        "output_dir": spec.output_dir,
        "with_sandbox": True if spec.strategy == "tir" else None,
    }
    yield CommandLine(
        command="generate", options=options, keys={**_solver_keys(spec), **spec.keys}, why="the answers"
    )


def _solver_keys(spec: AnsweringTask) -> dict[str, Any]:
    keys = prompt_settings(spec.strategy == "tir", spec.model, spec.address)
    name = SOLVERS.get(spec.strategy)
    if name is None and spec.strategy == "tir" and spec.samples is not None and spec.samples > 1:
        name = SOLVERS["majority_vote"]
    if name is None:
        return {**keys, "inference.temperature": 0.0}
    sampling = {"inference.temperature": TEMPERATURE, "inference.top_p": TOP_P}
    return {**keys, "solver": name, "solver_config.samples": spec.samples or SAMPLES, **sampling}


def write_problem(spec: AnsweringTask) -> None:
    """Write `spec.problem` where `lines` reads it."""
    if spec.problem is not None:
        write_rows(spec.input, [{"problem": spec.problem}])


def final_answers(spec: AnsweringTask) -> list[tuple[Row, str | None]]:
    """Return (record, its final answer) of each problem: what was chosen, else what its text ends with."""
    return [(row, _final_answer(row)) for row in read_rows(spec.output_dir / OUTPUT)]


def _final_answer(row: Row) -> str | None:
    if row.get("predicted_answer") is not None:
        return str(row["predicted_answer"])
    return extract_by_policy(str(row.get("generation") or ""), ExtractionPolicy()).answer
