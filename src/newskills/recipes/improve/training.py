# SPDX-License-Identifier: Apache-2.0
"""The training of one round: from the last kept model to a candidate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from newskills.base.benchmark import Benchmark
from newskills.base.callbacks import PrintLine
from newskills.base.errors import DataError
from newskills.base.store import read_rows
from newskills.prompts.code_tags import code_tags
from newskills.recipes.improve.problems import ImproveProblems
from newskills.recipes.improve.records import ImproveSpec, ImproveStage
from newskills.run.rewarding.questions import QuestionFormat, asking_of
from newskills.run.training.examples import context_of, examples_of, fit_to_length, fitting_problems, train_to_end
from newskills.run.training.scoring import TrainedSkill, open_scorer
from newskills.run.training.skill import Skill
from newskills.train.loops.evaluation import HeldOut
from newskills.train.loops.folder import METRICS, TrainingFolder
from newskills.train.loops.grpo import GrpoConfig, RewardedProblems
from newskills.train.loops.samples import Problem, Scorer
from newskills.train.loops.schedule import steps_of
from newskills.train.loops.sft import SftConfig
from newskills.train.loops.stepping import Hooks
from newskills.train.loops.stopping import StoppedError, stop_on_signals
from newskills.train.settings import EvalSettings
from newskills.train.trainers import Trainer, make_trainer

Learn = Callable[[Trainer, TrainingFolder, Hooks], bool]
TRAINING_FOLDER = "training"


def check_solver(stage: ImproveStage, benchmark: Benchmark, source: Path, base: Path) -> None:
    """Raise ConfigError where the replies of the benchmark's solver cannot be trained on."""
    asking = asking_of(stage.apply_to(benchmark), source, str(base))
    if stage.method == "grpo" or asking.config.code_execution:
        asking.check_one_answer(benchmark.name)
    else:
        asking.check_one_reply(benchmark.name)


def train_round(spec: ImproveSpec, problems: ImproveProblems, number: int, base: Path, say: PrintLine) -> Path:
    """Train `base` on the round's data, from its last checkpoint on; return the folder of the model.

    Raises StoppedError where a signal came, DataError, TrainingError, StorageError.
    """
    stage, source = spec.stage(number), problems.pool(number).source
    benchmark = stage.apply_to(problems.benchmark)
    asking = asking_of(benchmark, source, str(base))
    task = _Task(spec=spec, number=number, base=base, say=say)
    if stage.method == "sft":
        return _train_sft(task, asking)
    rows = list(read_rows(task.data))
    trained = TrainedSkill(benchmark=benchmark, asking=asking, skill=Skill(base, asking), rows=rows)
    with open_scorer(trained, stage.keys.reward, context_of(base)) as scorer:
        return _train_grpo(task, [trained.skill.problem(row) for row in rows], scorer)


class _Task(Struct, frozen=True, kw_only=True):
    """A round that is to be trained from the model in `base`."""

    spec: ImproveSpec
    number: int
    base: Path
    say: PrintLine

    @property
    def stage(self) -> ImproveStage:
        return self.spec.stage(self.number)

    @property
    def data(self) -> Path:
        return self.spec.folder(self.number) / "data/train.jsonl"


def _train_grpo(task: _Task, problems: Sequence[Problem], scorer: Scorer) -> Path:
    keys = task.stage.keys
    room = fitting_problems(problems, context_of(task.base), keys.max_tokens, "drop", say=task.say)
    held_out = None
    if checked := min(keys.checked, len(room) - 1):
        room, apart = room[:-checked], room[-checked:]
        every = max(1, keys.steps // 2)
        settings = EvalSettings(every=every, max_tokens=keys.max_tokens, batch_size=checked, max_problems=checked)
        held_out = HeldOut(problems=apart, scorer=scorer, settings=settings)
    config = GrpoConfig(
        steps=keys.steps,
        batch_size=min(keys.batch_size or 8, len(room)),
        group_size=keys.group_size,
        learning_rate=keys.learning_rate,
        schedule=keys.schedule,
        warmup_steps=round(keys.warmup * keys.steps),
        weight_decay=keys.weight_decay,
        max_grad_norm=keys.max_grad_norm,
        kl=keys.kl,
        max_tokens=keys.max_tokens,
        save_every=keys.save_every,
        seed=keys.seed,
    )
    return _run_training(
        task,
        config,
        lambda trainer, folder, hooks: trainer.run(
            config,
            RewardedProblems(room, scorer),
            folder,
            msgspec.structs.replace(hooks, held_out=held_out),
        ),
    )


def _train_sft(task: _Task, asking: QuestionFormat) -> Path:
    keys, data = task.stage.keys, task.data
    if asking.config.code_execution and asking.config.code_tags:
        tags = code_tags(asking.config.code_tags)
    else:
        tags = None
    every = examples_of(list(read_rows(data)), Skill(task.base), data, tags)
    examples = fit_to_length(every, context_of(task.base), "drop", say=task.say)
    if not examples:
        raise DataError(f"No example of {data} fits into the model's context.", hint="Lower ++max_tokens.")
    size = keys.batch_size or 16
    steps = steps_of(keys.epochs, len(examples), size)
    config = SftConfig(
        steps=steps,
        batch_size=size,
        learning_rate=keys.learning_rate,
        schedule=keys.schedule,
        warmup_steps=round(keys.warmup * steps),
        weight_decay=keys.weight_decay,
        max_grad_norm=keys.max_grad_norm,
        save_every=keys.save_every,
        seed=keys.seed,
    )
    return _run_training(task, config, lambda trainer, folder, hooks: trainer.run(config, examples, folder, hooks))


def trained_tokens(folder: Path) -> int:
    """Return the tokens that counted in the loss of a round's training."""
    return round(sum(float(row.get("tokens", 0)) for row in read_rows(folder / TRAINING_FOLDER / METRICS)))


def _run_training(task: _Task, config: SftConfig | GrpoConfig, learn: Learn) -> Path:
    spec, stage = task.spec, task.stage
    target = spec.model_folder(stage.name)
    settings = {**msgspec.to_builtins(config), "model": str(task.base)}
    folder = TrainingFolder(spec.folder(task.number) / TRAINING_FOLDER, settings)
    trainer = make_trainer(spec.backend, task.base, stage.keys.trainer)
    title = f"{stage.method.upper()}, {stage.name}"
    with stop_on_signals() as stop, spec.watch(title) as watch:
        hooks = Hooks(on_start=watch.on_start, on_step=watch.on_step, remark=task.say, stop=stop)
        whole = train_to_end(trainer, folder, target, lambda own: learn(own, folder, hooks))
    if whole and not stop():
        return target
    at = folder.last.step if folder.last else 0
    raise StoppedError(f"{title}: stopped after step {at}; run the same command to resume from there.")
