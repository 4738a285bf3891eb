# SPDX-License-Identifier: Apache-2.0
"""The second generation of a judged evaluation: another model reads the answers, seed by seed, and its verdicts count.

Answers lie in `tmp-eval-results/<benchmark>/`, what the judge makes of them in `eval-results/<benchmark>/`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from newskills.base.benchmark import Judge
from newskills.config.layers import Layer
from newskills.prompts.official.table import FOLDER as OFFICIAL
from newskills.run.engine.build import RunBuilder, grader_id
from newskills.run.engine.execute import SIGNAL_EXIT_BASE, execute
from newskills.run.engine.preflight import asks_nothing, check_begun
from newskills.run.hosting.roles import HostedServers, at_servers, host_servers
from newskills.run.planning.config import JUDGES
from newskills.run.planning.plan import RESULTS_FOLDER, PlannedUnit, WorkPieces, folder_units
from newskills.run.planning.spec import RunResult, RunSpec
from newskills.run.records.paths import done_path

ANSWERS_FOLDER = "tmp-eval-results"
"""Folder of answers that a judge has yet to read, below the output folder."""
LOGS_FOLDER = "judge"
"""Of the judge, below the logs of the evaluation."""
UNIT_PREFIX = "judge-"
"""What names of judging units begin with; the benchmark's follows."""


class JudgeSettings(Struct, frozen=True, kw_only=True):
    """How the answers of one benchmark are judged; `layers` are the user's, and win over the judge's own."""

    judge: Judge
    layers: Sequence[Layer] = ()
    hosting: HostedServers | None = None


def judge_layer(judge: Judge, rows: Path | None = None) -> Layer:
    """Return the settings of a generation that judges. Single refused requests leave single samples unscored.

    `rows`: the folder of the benchmark's rows, where official instructions for its judge lie.
    """
    official = {"official_prompts": str(rows / OFFICIAL)} if rows is not None else {}
    return Layer(
        "judge",
        {
            "prompt_config": judge.prompt,
            **official,
            "solver": JUDGES.get(judge.kind, judge.kind),
            "generation_key": judge.generation_key,
            "add_generation_stats": False,
            "eval_type": judge.grader,
            "eval_config": judge.grader_config,
            "server.enable_soft_fail": True,
            **judge.defaults,
        },
    )


def judge_units(
    name: str,
    judging: JudgeSettings,
    *,
    output_dir: Path,
    seeds: tuple[int, ...] | None,
    rows: Path,
) -> list[PlannedUnit]:
    """Plan one unit per seed of the benchmark `name`; its rows are in `rows`. Raises ConfigError, UnknownNameError."""
    place = Path(*name.split("."))
    layers = [judge_layer(judging.judge, rows), *judging.layers]
    planned = folder_units(
        output_dir / ANSWERS_FOLDER / place,
        output_dir=output_dir / RESULTS_FOLDER / place,
        pieces=WorkPieces(seeds=seeds),
        layers=layers,
    )
    return [replace(piece, unit=replace(piece.unit, name=f"{UNIT_PREFIX}{name}")) for piece in planned]


def check_judges(planned: Sequence[PlannedUnit], *, rerun_done: bool) -> None:
    """Check what can be checked before there are answers: keys, settings, prompts, judgements made with other
    settings.

    Raises NewskillsError.
    """
    with closing(RunBuilder(os.environ)) as builder:
        for piece in planned:
            builder.check_model(piece.unit.config)
            grader_id(piece.unit.config)
            prompt = builder.prompt(piece.unit.config)
            if piece.unit.config.inference.endpoint_type != "text":  # which may need the judge's own tokenizer
                builder.solver(piece.unit.config, prompt)
            if not rerun_done:
                check_begun(piece.unit, builder)


def judge_answers(
    judges: Mapping[str, JudgeSettings],
    judgements: Sequence[PlannedUnit],
    spec: RunSpec,
    *,
    complete: bool = True,
) -> RunResult:
    """Judge all answers, by one server after the other where several are started. `spec`: without units; `complete`:
    all answers have to be there.

    One that does not come to its end does not keep the others from theirs, a signal does; all messages are told.
    Raises NewskillsError as `execute`.
    """
    total = RunResult(units=[])
    hosts: list[HostedServers | None] = []
    for judging in judges.values():
        if judging.hosting not in hosts:
            hosts.append(judging.hosting)
    for host in hosts:
        own = {f"{UNIT_PREFIX}{name}" for name, judging in judges.items() if judging.hosting == host}
        planned = [piece for piece in judgements if piece.unit.name in own]
        with host_servers(host, planned, rerun_done=spec.rerun_done) as servers:
            own_spec = judge_spec(spec, at_servers(planned, servers))
            done = execute(own_spec if complete else replace(own_spec, needs=()))
        total.units += done.units
        total.retries += done.retries
        if done.exit_code:
            total.exit_code, total.message = done.exit_code, f"{total.message} {done.message}".strip()
        if done.exit_code > SIGNAL_EXIT_BASE:
            break
    return total


def judge_spec(spec: RunSpec, planned: Sequence[PlannedUnit]) -> RunSpec:
    """Return `spec` for these units, which need their answers to be complete."""
    units = tuple(piece.unit for piece in planned)
    waiting = [Path(unit.config.input_file) for unit in units if not asks_nothing(unit)]
    return replace(spec, units=units, needs=tuple(str(done_path(path)) for path in waiting))
