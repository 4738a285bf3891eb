# SPDX-License-Identifier: Apache-2.0
"""A training in this process, from the first step to the model."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from newskills.base.errors import ConfigError
from newskills.base.garbage import keep_later_imports
from newskills.base.records import Row
from newskills.base.store import read_rows, write_rows
from newskills.pipelines.options import tracking_of
from newskills.pipelines.training.command_script import RESUMED_BY_NEXT_JOB
from newskills.pipelines.training.methods.held_out import print_remark
from newskills.pipelines.training.methods.options import LocalOptions, StepKeys
from newskills.run.reporting.tracking import Tracking
from newskills.run.training.examples import train_to_end
from newskills.run.training.reporting import report_steps
from newskills.run.training.steps_shown import StepReporter, steps_shown
from newskills.train.backends.trl.launching import first_process
from newskills.train.loops.evaluation import HeldOut
from newskills.train.loops.folder import EXAMPLES, METRICS, TrainingFolder
from newskills.train.loops.method import Method
from newskills.train.loops.stepping import Hooks, TimeLimit
from newskills.train.loops.stopping import ASKED_TO_END, WARNED, StoppedError, stop_on_signals
from newskills.train.pipelines.inside import AGAIN
from newskills.train.trainers import make_trainer

S = TypeVar("S", bound=Struct)
FINAL = "final_hf_model"
"""Where the trained model lies below the output folder."""
BASE = "base_hf_model"
"""Where a model that has to be converted goes, below the output folder."""
STOPPED = StoppedError.exit_code
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


def run_identity(keys: StepKeys) -> dict[str, Any]:
    """Return the keys that name a run."""
    named = {name: value for name, value in msgspec.to_builtins(keys).items() if name not in UNNAMED}
    trainer = {name: value for name, value in named["trainer"].items() if name not in COMPUTING}
    trainer["trl"] = {name: value for name, value in trainer["trl"].items() if name not in COMPUTING_TRL}
    return {**named, "trainer": trainer}


def config_of(kind: type[S], keys: StepKeys, steps: int) -> S:
    """Return the settings of a loop: the keys that it has, and so many steps."""
    own_keys = {
        name: value for name, value in msgspec.structs.asdict(keys).items() if name in kind.__struct_fields__
    }
    return kind(**{**own_keys, "steps": steps})


class ReadyTraining(Struct, frozen=True, kw_only=True):
    """A training that can begin.

    title     of its bar
    base      model folder
    method    with its settings; `data` is what it learns from
    settings  what names the run beside the keys, the model and the backend
    held_out  problems to evaluate on
    first_rows  the first examples as the model sees them, which are kept beside the metrics
    """

    title: str
    base: Path
    method: Method[Any]
    data: Any
    settings: dict[str, Any]
    held_out: HeldOut | None = None
    first_rows: Sequence[Row] = ()


class TrainingOutcome(Struct, frozen=True, kw_only=True):
    """What a training has made.

    model       Hugging Face folder of the trained model
    output_dir  with metrics.jsonl, checkpoints.jsonl, samples.jsonl
    steps       that are done
    metrics     of the last step
    verdict     what the training did to held-out problems, in a sentence; empty: nothing was held out
    """

    model: Path
    output_dir: Path
    steps: int
    metrics: dict[str, float]
    verdict: str = ""


def run_task(options: LocalOptions, keys: StepKeys, task: ReadyTraining) -> int:
    """Train in the output folder, say where the model is or how to go on, and return the exit code.

    Raises ConfigError where the best model is asked for, but there is nothing to measure on.
    """
    if keys.eval.patience and task.held_out is None:
        raise ConfigError(
            f"++eval.patience={keys.eval.patience} needs held-out problems to evaluate on.",
            hint="Give them: --eval_benchmark=NAME (ns grpo: or --eval_data=FILE).",
        )
    out, first = Path(options.output_dir), first_process()
    tracking = trackio = None
    if first:
        name = options.wandb_name or None
        if name is None and "wandb" in keys.report_to:
            name = out.resolve().name
        tracking = tracking_of(name, options.wandb_project, options.wandb_group)
        if "trackio" in keys.report_to:
            trackio = Tracking(name=options.wandb_name or out.resolve().name, project=options.wandb_project)
    trainer = make_trainer(options.backend, task.base, keys.trainer)
    folder = _open_folder(options, keys, task)
    if first and task.first_rows and not (out / EXAMPLES).exists():
        write_rows(out / EXAMPLES, task.first_rows)
    if keys.checkpoint_must_save_by:
        limit = TimeLimit(seconds_of(keys.checkpoint_must_save_by))
    else:
        limit = None
    tensorboard = first and "tensorboard" in keys.report_to
    with (
        stop_on_signals(ASKED_TO_END) as ended,
        stop_on_signals((WARNED,)) as warned,
        steps_shown(task.title) if first else nullcontext(StepReporter()) as watch,
        report_steps(watch.on_step, out, tensorboard=tensorboard, tracking=tracking, trackio=trackio) as tell,
    ):

        def on_start(done: int, steps: int) -> None:
            keep_later_imports()
            watch.on_start(done, steps)

        hooks = Hooks(
            on_start=on_start,
            on_step=tell,
            remark=print_remark,
            stop=lambda: ended() or warned() or bool(limit and limit()),
            held_out=task.held_out,
        )
        whole = train_to_end(
            trainer, folder, out / FINAL, lambda model: model.run(task.method, task.data, folder, hooks)
        )
        stopped = ended()
    at = folder.last.step if folder.last else 0
    if first:
        if whole:
            report = f"{out / FINAL}"
        else:
            report = f"stopped after step {at}; run the same command to resume from there"
        sys.stdout.write(f"{report}\n")
        if whole and (judged := folder.verdict()):
            sys.stderr.write(f"{judged}\n")
    if not whole and not stopped and os.environ.get(RESUMED_BY_NEXT_JOB):
        return AGAIN
    if stopped or not whole:
        return STOPPED
    return 0


def _open_folder(options: LocalOptions, keys: StepKeys, task: ReadyTraining) -> TrainingFolder:
    """Open the output folder. Raises ConfigError for another run's, or a place that checkpoints cannot be sent to;
    AuthError without a token for it."""
    out, settings, first = Path(options.output_dir), settings_of(options, keys, task), first_process()
    if options.push_to is None or not first:
        return TrainingFolder(out, settings, writes=first, keep=keys.keep)
    from newskills.pipelines.training.methods.pushing import PushedFolder, push_target

    target = push_target(options.push_to)
    return PushedFolder(
        out, settings, keep=keys.keep, target=target, public=options.push_public, remark=print_remark
    )


def settings_of(options: LocalOptions, keys: StepKeys, task: ReadyTraining) -> dict[str, Any]:
    """Return what names the run."""
    return run_identity(keys) | task.settings | {"model": options.model, "backend": options.backend}


def training_outcome(out: Path) -> TrainingOutcome:
    """Read what a training that has ended left in `out`. Raises DataError."""
    folder = TrainingFolder(out, {}, writes=False)
    path = out / METRICS
    metrics: Row = {}
    if path.is_file():
        for row in read_rows(path):
            if row["step"]:
                metrics = {name: value for name, value in row.items() if name != "step"}
    return TrainingOutcome(
        model=out / FINAL,
        output_dir=out,
        steps=folder.last.step if folder.last else 0,
        metrics=metrics,
        verdict=folder.verdict(),
    )


def seconds_of(limit: str) -> float:
    """Convert dd:hh:mm:ss to seconds. Raises ConfigError."""
    parts = limit.split(":")
    if len(parts) != 4 or not all(part.isdecimal() for part in parts):
        raise ConfigError(
            f"++checkpoint_must_save_by={limit}: expected dd:hh:mm:ss.", hint="For example 00:03:45:00."
        )
    days, hours, minutes, seconds = map(int, parts)
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)
