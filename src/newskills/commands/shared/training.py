# SPDX-License-Identifier: Apache-2.0
"""What commands that train share: their keys, held-out problems, and a run from the first step to the model."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from newskills.base.errors import ConfigError, DataError
from newskills.base.garbage import keep_later_imports
from newskills.base.store import read_rows
from newskills.benchmarks import get_benchmark
from newskills.benchmarks.data import load_rows
from newskills.commands.shared.training_options import LocalOptions, StepKeys
from newskills.config.command_line import Parsed
from newskills.config.layers import Layer, explain, resolve
from newskills.pipelines.dry_run import Step, show_dry_run
from newskills.pipelines.extras import require_train
from newskills.pipelines.options import tracking_of
from newskills.recipes.leakage import question_of
from newskills.recipes.reporting import reported
from newskills.recipes.rollouts import TrainedSkill, scoring
from newskills.recipes.skill import Skill
from newskills.recipes.steps_shown import StepReporter, steps_shown
from newskills.recipes.training import context_of, fitting_problems, train_to_end
from newskills.run.rewarding.questions import asking_of
from newskills.run.rewarding.reward import RewardConfig
from newskills.run.rewarding.rollouts import with_code
from newskills.train.loops.evaluation import HeldOut
from newskills.train.loops.folder import TrainingFolder
from newskills.train.loops.stepping import Hooks, TimeLimit
from newskills.train.loops.stopping import ASKED_TO_END, WARNED, StoppedError, stop_on_signals
from newskills.train.trainers import TRAINERS, Trainer, make_trainer
from newskills.train.trl.launching import launch, wants_launch

S = TypeVar("S", bound=Struct)


STOPPED = StoppedError.exit_code


FINAL = "final_hf_model"
"""Where the trained model lies below the output folder."""


UNNAMED = ("report_to", "checkpoint_must_save_by", "keep")
"""Keys that do not change what is learnt, so a run goes on with others."""


COMPUTING = ("threads",)


COMPUTING_TRL = (
    "micro_batch_size",
    "gradient_checkpointing",
    "attention",
    "vllm_memory",
    "vllm_sleep",
    "vllm_tensor_parallel",
    "vllm_url",
)
"""Keys below `trainer` and `trainer.trl` of how a machine computes: they change no more than last digits, and one that
runs out of memory must be able to go on with others."""


def identity(keys: StepKeys) -> dict[str, Any]:
    """Return the keys that name a run."""
    named = {name: value for name, value in msgspec.to_builtins(keys).items() if name not in UNNAMED}
    trainer = {name: value for name, value in named["trainer"].items() if name not in COMPUTING}
    trainer["trl"] = {name: value for name, value in trainer["trl"].items() if name not in COMPUTING_TRL}
    return {**named, "trainer": trainer}


def check_trainer(options: LocalOptions, keys: StepKeys) -> None:
    """Raise UnknownNameError or ConfigError for a trainer that does not exist or cannot follow its settings."""
    make_trainer(options.backend, Path(options.model), keys.trainer)


def show_or_launch(command: str, parsed: Parsed[Any], keys: StepKeys, plan: Sequence[Step]) -> int | None:
    """Return the exit code where nothing is left to do here, else None: a dry run shows its plan, or several processes
    train together.

    Raises ConfigError, also where the packages that train are missing.
    """
    if parsed.options.dry_run:
        show_dry_run(plan)
        return 0
    require_train("torch", "safetensors", "tokenizers")
    options: LocalOptions = parsed.options
    if not TRAINERS.properties(options.backend).several_processes or not wants_launch(
        keys.trainer.trl, os.environ
    ):
        return None
    words = [f"--{name}={_word(getattr(options, name))}" for name in sorted(parsed.given)]
    more = [f"++{name}={value}" for name, value in parsed.overrides.items()]
    return launch(keys.trainer.trl, [command, *words, *more], Path(options.output_dir))


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def config_of(kind: type[S], keys: StepKeys, steps: int) -> S:
    """Return the settings of a loop: the keys that it has, and so many steps."""
    own_keys = {
        name: value for name, value in msgspec.structs.asdict(keys).items() if name in kind.__struct_fields__
    }
    return kind(**{**own_keys, "steps": steps})


class TrainingRun(Struct, frozen=True, kw_only=True):
    """title of the bar; `base` model folder; `settings` name the run; `held_out` problems to measure on."""

    title: str
    base: Path
    settings: dict[str, Any]
    held_out: HeldOut | None = None


def run_training(
    options: LocalOptions,
    keys: StepKeys,
    run: TrainingRun,
    learn: Callable[[Trainer, TrainingFolder, Hooks], bool],
) -> int:
    """Trains in the output folder, says where the model is or how to go on; the exit code.

    Raises ConfigError where the best model is asked for, but there is nothing to measure on.
    """
    if keys.eval.patience and run.held_out is None:
        raise ConfigError(
            f"++eval.patience={keys.eval.patience} needs held-out problems to evaluate on.",
            hint="Give them: --eval_benchmark=NAME (ns grpo: or --eval_data=FILE).",
        )
    out, first = Path(options.output_dir), first_process()
    name = options.wandb_name or (out.resolve().name if "wandb" in keys.report_to else None)
    tracking = tracking_of(name if first else None, options.wandb_project, options.wandb_group)
    trainer = make_trainer(options.backend, run.base, keys.trainer)
    settings = run.settings | {"model": options.model, "backend": options.backend}
    folder = TrainingFolder(out, settings, writes=first, keep=keys.keep)
    limit = TimeLimit(seconds_of(keys.checkpoint_must_save_by)) if keys.checkpoint_must_save_by else None
    tensorboard = first and "tensorboard" in keys.report_to
    with (
        stop_on_signals(ASKED_TO_END) as ended,
        stop_on_signals((WARNED,)) as warned,
        steps_shown(run.title) if first else nullcontext(StepReporter()) as watch,
        reported(watch.on_step, out, tensorboard=tensorboard, tracking=tracking) as tell,
    ):

        def on_start(done: int, steps: int) -> None:
            keep_later_imports()
            watch.on_start(done, steps)

        hooks = Hooks(
            on_start=on_start,
            on_step=tell,
            remark=remark,
            stop=lambda: ended() or warned() or bool(limit and limit()),
            held_out=run.held_out,
        )
        whole = train_to_end(trainer, folder, out / FINAL, lambda model: learn(model, folder, hooks))
        stopped = ended()
    at = folder.last.step if folder.last else 0
    if first:
        report = (
            f"{out / FINAL}" if whole else f"stopped after step {at}; run the same command to resume from there"
        )
        sys.stdout.write(f"{report}\n")
        if whole and (judged := folder.verdict()):
            sys.stderr.write(f"{judged}\n")
    return STOPPED if stopped or not whole else 0


def first_process() -> bool:
    """Whether this is the one of several processes (accelerate launch, torchrun) that writes."""
    return os.environ.get("RANK", "0") == "0"


@contextmanager
def held_out_of(options: LocalOptions, keys: StepKeys, base: Path) -> Iterator[HeldOut | None]:
    """Yield the problems of --eval_benchmark, or None. Raises UnknownNameError, DataError."""
    if options.eval_benchmark is None:
        yield None
        return
    benchmark = get_benchmark(options.eval_benchmark)
    data = load_rows(benchmark, options.eval_split, options.data_dir)
    rows = list(read_rows(data))
    settings = keys.eval
    changes: dict[str, Any] = {}
    if keys.chat_template_kwargs:
        changes["chat_template_kwargs"] = keys.chat_template_kwargs
    changes["inference.tokens_to_generate"] = settings.max_tokens
    if settings.code_tags is not None:
        changes |= with_code(settings.code_tags, settings.code_executions, settings.max_tokens)
    asking = asking_of(benchmark, data, str(base), [Layer("command line", changes)])
    asking.check_one_answer(f"--eval_benchmark={options.eval_benchmark}")
    asking.check()
    skill = Skill(base, asking)
    problems = [skill.problem(row) for row in rows[: keys.eval.max_problems]]
    room = fitting_problems(problems, context_of(base), keys.eval.max_tokens, "drop", say=print)
    if not room:
        raise DataError(f"No problem of {benchmark.name} ({options.eval_split}) fits into the model's context.")
    trained = TrainedSkill(benchmark=benchmark, asking=asking, skill=skill, rows=rows)
    with scoring(trained, RewardConfig(), context_of(base)) as scorer:
        yield HeldOut(problems=room, scorer=scorer, settings=settings)


def remark(text: str) -> None:
    """Says it beside the results, once however many processes train together."""
    if first_process():
        sys.stderr.write(f"{text}\n")


def measured_by(options: LocalOptions) -> dict[str, list[str]]:
    """Return the questions of --eval_benchmark, by its name. Raises UnknownNameError, DataError."""
    if options.eval_benchmark is None:
        return {}
    benchmark = get_benchmark(options.eval_benchmark)
    data = load_rows(benchmark, options.eval_split, options.data_dir)
    return {f"{benchmark.name} ({options.eval_split})": questions_in(data)}


def split_questions(name: str | None, data_dir: str | None) -> dict[str, list[str]]:
    """Return the questions of the split that a benchmark measures, by its name; none where it is not prepared here.

    Raises UnknownNameError.
    """
    if name is None:
        return {}
    benchmark = get_benchmark(name)
    try:
        rows = load_rows(benchmark, benchmark.split, data_dir)
    except DataError:  # not prepared: nobody can have measured by it here
        return {}
    return {f"{benchmark.name} ({benchmark.split})": questions_in(rows)}


def questions_in(data: Path) -> list[str]:
    """Return the questions of the rows, as far as they are in a field that is known. Raises DataError."""
    return [text for row in read_rows(data) if (text := question_of(row)) is not None]


def seconds_of(limit: str) -> float:
    """dd:hh:mm:ss → seconds. Raises ConfigError."""
    parts = limit.split(":")
    if len(parts) != 4 or not all(part.isdecimal() for part in parts):
        raise ConfigError(
            f"++checkpoint_must_save_by={limit}: expected dd:hh:mm:ss.", hint="For example 00:03:45:00."
        )
    days, hours, minutes, seconds = map(int, parts)
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


def keys_of(kind: type[S], parsed: Parsed[Any]) -> S | None:
    """Return the `++` keys; None where only their origin was to be shown, which is done. Raises ConfigError."""
    resolved = resolve(kind, [Layer("command line", parsed.overrides)])
    if not parsed.explain:
        return resolved.value
    for key, value, source in explain(resolved):
        sys.stdout.write(f"++{key} = {value}  ({source})\n")
    return None
