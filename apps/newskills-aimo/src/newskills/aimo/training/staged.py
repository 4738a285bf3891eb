# SPDX-License-Identifier: Apache-2.0
"""One stage of `ns aimo train` from Python, on rows that are given."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from newskills.base.errors import ConfigError
from newskills.base.records import Row
from newskills.base.store import write_rows
from newskills_aimo.recipe.lines import ReportingOptions
from newskills_aimo.recipe.settings import AimoConfig, SftStage, Stage, StageName


def train_stage(
    name: StageName,
    stage: Stage,
    rows: Iterable[Row],
    *,
    decontaminate: tuple[str, ...],
    report_to: str,
    run_name: str = "",
    force_cpu: bool = False,
) -> Path:
    """Train a stage on `rows`, which stay in its folder; return the folder of the model. Raises NewskillsError."""
    from newskills_aimo.recipe.lines import FINAL
    from newskills_aimo.recipe.training import StagedTraining, train_stages
    from newskills_aimo.running.lines import print_from_first_process, run_line
    from newskills_aimo.running.stages import backend_for

    out = Path(stage.output)
    file = out / "problems.jsonl"
    write_rows(file, rows)
    backend = backend_for(stage, force_cpu=force_cpu)
    stage = msgspec.structs.replace(stage, data_files=(str(file),))
    if isinstance(stage, SftStage) and stage.quantisation != "none" and (why := _cannot_quantise(backend)):
        print_from_first_process(f"the weights are not quantised to {stage.quantisation}: {why}")
        stage = msgspec.structs.replace(stage, quantisation="none")
    destinations = () if report_to == "none" else (report_to,)
    reporting = ReportingOptions(report_to=destinations, run_name=run_name)
    training = StagedTraining(
        stages=(name,),
        config=msgspec.structs.replace(AimoConfig(), **{name: stage}, decontaminate=decontaminate),
        backend=backend,
        reporting=reporting,
    )
    if code := train_stages(training, ns=run_line, say=print_from_first_process):
        raise ConfigError(f"The training ended with code {code}.", hint="The same call resumes from there.")
    return out / FINAL


def _cannot_quantise(backend: str) -> str | None:
    """Return why weights cannot be held in 4 bits here; None where they can."""
    from newskills.models.serving.gpus import visible_gpus
    from newskills.train.backends.trl.settings import cannot_quantise
    from newskills.train.trainers import TRAINERS

    if not TRAINERS.properties(backend).quantizes:
        return f"this trainer is the {backend} trainer"
    if visible_gpus():
        return cannot_quantise()
    return "no GPU is visible"
