# SPDX-License-Identifier: Apache-2.0
"""The training of one round: from the last kept model to a candidate."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from newskills.base.callbacks import PrintLine
from newskills.base.errors import DataError
from newskills.base.store import read_rows
from newskills.recipes.improve.problems import ImproveProblems
from newskills.recipes.improve.records import ImproveSpec, round_name
from newskills.recipes.skill import RewardConfig, Skill
from newskills.recipes.training import context_of, examples_of, fitting, fitting_problems, train_to_end
from newskills.run.rewarding.graders import BatchGrader
from newskills.run.rewarding.questions import asking_of
from newskills.train.loops.folder import METRICS, TrainingFolder
from newskills.train.loops.grpo import GrpoConfig
from newskills.train.loops.schedule import steps_of
from newskills.train.loops.sft import SftConfig
from newskills.train.loops.stepping import Hooks
from newskills.train.loops.stopping import StoppedError, stop_on_signals
from newskills.train.trainers import Trainer, make_trainer

Learn = Callable[[Trainer, TrainingFolder, Hooks], bool]
TRAINING = "training"


def train_round(spec: ImproveSpec, problems: ImproveProblems, number: int, base: Path, say: PrintLine) -> Path:
    """Trains `base` on the round's data, from its last checkpoint on; the folder of the model.

    Raises StoppedError where a signal came, DataError, TrainingError, StorageError.
    """
    data = spec.folder(number) / "data/train.jsonl"
    if spec.method == "sft":
        return _sft(spec, number, base, data, say)
    rows = list(read_rows(data))
    benchmark, keys = problems.benchmark, spec.keys
    skill = Skill(base, asking_of(benchmark, problems.source, str(base)))
    config = GrpoConfig(
        steps=keys.steps,
        batch_size=min(keys.batch_size or 8, len(rows)),
        group_size=keys.group_size,
        learning_rate=keys.learning_rate,
        max_tokens=keys.max_tokens,
        save_every=keys.save_every,
        seed=keys.seed,
    )
    with BatchGrader(benchmark.grader, benchmark.grader_config) as verdict:
        fitting_rows = fitting_problems(
            [skill.problem(row) for row in rows], context_of(base), keys.max_tokens, "drop", say=say
        )
        scorer = skill.scorer(verdict, RewardConfig())
        return _train(
            spec,
            number,
            base,
            config,
            lambda trainer, folder, hooks: trainer.grpo(fitting_rows, config, folder, scorer, hooks),
        )


def _sft(spec: ImproveSpec, number: int, base: Path, data: Path, say: PrintLine) -> Path:
    keys = spec.keys
    examples = fitting(examples_of(list(read_rows(data)), Skill(base), data), context_of(base), "drop", say=say)
    if not examples:
        raise DataError(f"No example of {data} fits into the model's context.", hint="Lower ++max_tokens.")
    size = keys.batch_size or 16
    config = SftConfig(
        steps=steps_of(keys.epochs, len(examples), size),
        batch_size=size,
        learning_rate=keys.learning_rate,
        save_every=keys.save_every,
        seed=keys.seed,
    )
    return _train(
        spec,
        number,
        base,
        config,
        lambda trainer, folder, hooks: trainer.sft(examples, config, folder, hooks),
    )


def trained_tokens(folder: Path) -> int:
    """Tokens that counted in the loss of a round's training."""
    return round(sum(float(row.get("tokens", 0)) for row in read_rows(folder / TRAINING / METRICS)))


def _train(spec: ImproveSpec, number: int, base: Path, config: SftConfig | GrpoConfig, learn: Learn) -> Path:
    target = spec.model_folder(round_name(number))
    settings = {**msgspec.to_builtins(config), "model": str(base)}
    folder = TrainingFolder(spec.folder(number) / TRAINING, settings)
    trainer = make_trainer(spec.backend, base, spec.keys.trainer)
    title = f"{spec.method.upper()}, round {number}"
    with stop_on_signals() as stop, spec.watch(title) as watch:
        hooks = Hooks(on_start=watch.on_start, on_step=watch.on_step, stop=stop)
        whole = train_to_end(trainer, folder, target, lambda own: learn(own, folder, hooks))
    if whole and not stop():
        return target
    at = folder.last.step if folder.last else 0
    raise StoppedError(f"{title}: stopped after step {at}; run the same command to resume from there.")
