# SPDX-License-Identifier: Apache-2.0
"""What commands that train or convert share: options, the extra they need, and what shows the steps of a training."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

from newskills.base.errors import ConfigError, DataError
from newskills.base.store import read_rows
from newskills.benchmarks import get_benchmark
from newskills.benchmarks.data import load_rows
from newskills.commands._options import (
    DEFAULT_PROJECT,
    AtLeastOne,
    DryRun,
    WandbGroup,
    WandbName,
    WandbProject,
    doc,
    tracking_of,
)
from newskills.config.command_line import Parsed
from newskills.config.layers import Layer, explain, resolve
from newskills.recipes.reporting import reported
from newskills.recipes.skill import RewardConfig, Skill
from newskills.recipes.training import TooLong, context_of, fitting_problems, trained
from newskills.run.rewarding import Verdicts
from newskills.train.loops.evaluation import EvalSettings, HeldOut
from newskills.train.loops.folder import TrainingFolder
from newskills.train.loops.stepping import Hooks, Progress, TimeLimit, Told
from newskills.train.trainers import Trainer, TrainerSettings, make_trainer

S = TypeVar("S", bound=Struct)
PLAIN_EVERY = 10.0
WIDTH = 24
SHOWN = ("loss", "reward")
STOPPED = 130
"""Exit code of a training that was asked to stop."""
FINAL = "final_hf_model"
"""Where the trained model lies below the output folder."""


class LocalOptions(Struct, frozen=True, kw_only=True):
    """Options of every training on this machine."""

    model: Annotated[str, doc("Hugging Face folder or name on the hub, .gguf file, or smollm2")]
    output_dir: Annotated[str, doc("folder of checkpoints and metrics; the same folder goes on where it was")]
    backend: Annotated[
        str,
        doc("cpu: LoRA, small Llama models; trl: any model, GPUs (newskills[trl]); tinker: at a Tinker service"),
    ] = "cpu"
    dry_run: DryRun = False
    data_dir: Annotated[str | None, doc("where prepared data lies")] = None
    eval_benchmark: Annotated[
        str | None, doc("benchmark whose problems are asked on the way (++eval.*), with its prompt and grader")
    ] = None
    eval_split: Annotated[str, doc("of that benchmark")] = "test"
    wandb_name: WandbName = None
    wandb_group: WandbGroup = None
    wandb_project: WandbProject = DEFAULT_PROJECT


class StepKeys(Struct, frozen=True, kw_only=True):
    """`++` keys of every training on this machine."""

    epochs: Annotated[float, Meta(gt=0, description="passes over the data, unless steps is set")] = 1.0
    steps: Annotated[AtLeastOne | None, Meta(description="batches to learn from")] = None
    learning_rate: Annotated[float, Meta(gt=0, description="at its highest")] = 2e-4
    warmup_steps: Annotated[int, Meta(ge=0, description="steps up to the learning rate")] = 0
    weight_decay: Annotated[float, Meta(ge=0, description="of AdamW")] = 0.0
    max_grad_norm: Annotated[float, Meta(ge=0, description="longer gradients are cut to this; 0 = never")] = 1.0
    seed: Annotated[int, Meta(description="of the order of the data and of the samples")] = 0
    too_long: Annotated[
        TooLong, Meta(description="what does not fit into the model's context: refuse, leave out, cut off (sft)")
    ] = "error"
    max_length: Annotated[AtLeastOne | None, Meta(description="tokens that fit, if fewer than the model's")] = None
    eval: EvalSettings = EvalSettings()
    report_to: Annotated[
        tuple[Literal["tensorboard", "wandb"], ...], Meta(description="where else metrics go, step by step")
    ] = ()
    keep: Annotated[
        int, Meta(ge=0, description="latest checkpoints that stay, beside the best one; 0 = all of them")
    ] = 0
    checkpoint_must_save_by: Annotated[
        str | None,
        Meta(description="days:hours:minutes:seconds after which the run must have saved itself and ended"),
    ] = None
    trainer: TrainerSettings = TrainerSettings()

    def limit(self, base: Path) -> int | None:
        """Tokens that fit into the model in `base`."""
        return min(filter(None, (self.max_length, context_of(base))), default=None)


UNNAMED = ("report_to", "checkpoint_must_save_by", "keep")
"""Keys that do not change what is learnt, so a run goes on with others."""


def identity(keys: StepKeys) -> dict[str, Any]:
    """The keys that name a run."""
    return {name: value for name, value in msgspec.to_builtins(keys).items() if name not in UNNAMED}


def check_trainer(options: LocalOptions, keys: StepKeys) -> None:
    """Raises UnknownNameError, ConfigError for a trainer that does not exist or cannot follow its settings."""
    make_trainer(options.backend, Path(options.model), keys.trainer)


def config_of(kind: type[S], keys: StepKeys, steps: int) -> S:
    """The settings of a loop: the keys that it has, and so many steps."""
    given = {name: value for name, value in msgspec.structs.asdict(keys).items() if name in kind.__struct_fields__}
    return kind(**{**given, "steps": steps})


class Run(Struct, frozen=True, kw_only=True):
    """title of the bar; `base` model folder; `settings` name the run; `held_out` problems to measure on."""

    title: str
    base: Path
    settings: dict[str, Any]
    held_out: HeldOut | None = None


def learnt(
    options: LocalOptions, keys: StepKeys, run: Run, learn: Callable[[Trainer, TrainingFolder, Hooks], bool]
) -> int:
    """Trains in the output folder, says where the model is or how to go on; the exit code.

    Raises ConfigError where the best model is asked for, but there is nothing to measure on.
    """
    if keys.eval.patience and run.held_out is None:
        raise ConfigError(
            f"++eval.patience={keys.eval.patience} needs held-out problems to measure on.",
            hint="Name them: --eval_benchmark=NAME (ns grpo: or --eval_data=FILE).",
        )
    out, first = Path(options.output_dir), first_process()
    name = options.wandb_name or (out.resolve().name if "wandb" in keys.report_to else None)
    tracking = tracking_of(name if first else None, options.wandb_project, options.wandb_group)
    trainer = make_trainer(options.backend, run.base, keys.trainer)
    settings = run.settings | {"model": options.model, "backend": options.backend}
    folder = TrainingFolder(out, settings, writes=first, keep=keys.keep)
    limit = TimeLimit(seconds_of(keys.checkpoint_must_save_by)) if keys.checkpoint_must_save_by else None
    told = steps_shown(run.title) if first else (lambda _: None)
    tensorboard = first and "tensorboard" in keys.report_to
    with (
        stop_on_signals() as asked,
        reported(told, out, tensorboard=tensorboard, tracking=tracking) as tell,
    ):
        hooks = Hooks(told=tell, stop=lambda: asked() or bool(limit and limit()), held_out=run.held_out)
        whole = trained(trainer, folder, out / FINAL, lambda one: learn(one, folder, hooks))
    at = folder.last.step if folder.last else 0
    if first:
        said = f"{out / FINAL}" if whole else f"stopped after step {at}; the same command goes on from there"
        sys.stdout.write(f"{said}\n")
        if whole and (judged := folder.verdict()):
            sys.stderr.write(f"{judged}\n")
    return 0 if whole else STOPPED


def first_process() -> bool:
    """Whether this is the one of several processes (accelerate launch, torchrun) that writes."""
    return os.environ.get("RANK", "0") == "0"


@contextmanager
def held_out_of(options: LocalOptions, keys: StepKeys, base: Path) -> Iterator[HeldOut | None]:
    """The problems of --eval_benchmark, or None. Raises UnknownNameError, DataError."""
    if options.eval_benchmark is None:
        yield None
        return
    benchmark = get_benchmark(options.eval_benchmark)
    rows = list(read_rows(load_rows(benchmark, options.eval_split, options.data_dir)))
    skill = Skill(base, benchmark.prompt)
    problems = [skill.problem(row) for row in rows[: keys.eval.max_problems]]
    room = fitting_problems(problems, context_of(base), keys.eval.max_tokens, "drop", say=print)
    if not room:
        raise DataError(f"No problem of {benchmark.name} ({options.eval_split}) fits into the model's context.")
    with Verdicts(benchmark.grader, benchmark.grader_config) as verdicts:
        yield HeldOut(problems=room, scorer=skill.scorer(verdicts, RewardConfig()), settings=keys.eval)


def seconds_of(limit: str) -> float:
    """dd:hh:mm:ss → seconds. Raises ConfigError."""
    parts = limit.split(":")
    if len(parts) != 4 or not all(part.isdecimal() for part in parts):
        raise ConfigError(
            f"++checkpoint_must_save_by={limit} is no dd:hh:mm:ss.", hint="For instance 00:03:45:00."
        )
    days, hours, minutes, seconds = map(int, parts)
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


def require_train(*modules: str, instead: str = "") -> None:
    """Raises ConfigError where an extra is missing; `instead`: what works without it."""
    if missing := [module for module in modules if find_spec(module) is None]:
        raise ConfigError(
            f"This needs {', '.join(missing)}, which this environment lacks.",
            hint="Run: pip install 'newskills[train,local]' (without a GPU, install torch from its CPU index first). "
            f"{instead}".strip(),
        )


def steps_shown(title: str) -> Told:
    """A bar with what is left on a terminal, a line now and then elsewhere."""
    began = last = time.monotonic()
    first: int | None = None
    terminal = sys.stderr.isatty()

    def told(progress: Progress) -> None:
        nonlocal last, first
        now = time.monotonic()
        first = progress.done - 1 if first is None else first
        ended = progress.done == progress.steps
        if terminal:
            sys.stderr.write(f"\r\x1b[2K{title} {_bar(progress)} {_words(progress, now - began, first)}")
            sys.stderr.write("\n" if ended else "")
        elif ended or now - last >= PLAIN_EVERY:
            last = now
            sys.stderr.write(f"{title} {progress.done}/{progress.steps} {_words(progress, now - began, first)}\n")
        sys.stderr.flush()

    return told


def _bar(progress: Progress) -> str:
    full = WIDTH * progress.done // progress.steps
    return f"{'━' * full}{' ' * (WIDTH - full)} {progress.done}/{progress.steps}"


def _words(progress: Progress, seconds: float, first: int) -> str:
    pace = seconds / (progress.done - first)
    left = pace * (progress.steps - progress.done)
    values = [f"{name} {progress.metrics[name]:.3g}" for name in SHOWN if name in progress.metrics]
    return " · ".join([*values, f"{pace:.1f} s a step", f"{left // 60:.0f} min {left % 60:.0f} s left"])


@contextmanager
def stop_on_signals() -> Iterator[Callable[[], bool]]:
    """Whether the run should write a checkpoint and end: Slurm's warning before the limit, or the first Ctrl-C."""
    asked: list[int] = []

    def ask(number: int, _: object) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(number)
        sys.stderr.write("\nstopping after this step; once more stops at once\n")

    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
    before = [signal.signal(number, ask) for number in signals]
    try:
        yield lambda: bool(asked)
    finally:
        for number, handler in zip(signals, before, strict=True):
            signal.signal(number, handler)


def keys_of(kind: type[S], parsed: Parsed[Any]) -> S | None:
    """The `++` keys; None where only their origin was to be shown, which is done. Raises ConfigError."""
    resolved = resolve(kind, [Layer("command line", parsed.overrides)])
    if not parsed.explain:
        return resolved.value
    for key, value, source in explain(resolved):
        sys.stdout.write(f"++{key} = {value}  ({source})\n")
    return None
