# SPDX-License-Identifier: Apache-2.0
"""What SFT, DPO and GRPO of TRL have in common here: learning rates, errors, records and checkpoints are ours."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from zipfile import is_zipfile

import msgspec
import torch
from accelerate import PartialState
from datasets import Dataset, load_from_disk
from peft import set_peft_model_state_dict
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from torch.distributed.tensor import DTensor
from transformers import PrinterCallback, TrainerCallback

from newskills.base.errors import ConfigError, DataError, TrainingError
from newskills.base.store import atomic_folder
from newskills.train.backends.trl.model import TrainingTask, seed_pairs
from newskills.train.backends.trl.processes import (
    broadcast_from_first,
    gather_all,
    process_count,
    sharding_strategy,
)
from newskills.train.backends.trl.sampling import TrlSampler
from newskills.train.loops.evaluation import HeldOut, Measured, measure
from newskills.train.loops.folder import CHECKPOINTS
from newskills.train.loops.schedule import batch_at, rate_at
from newskills.train.loops.stepping import Hooks, OnStart, Steps, TrainingMonitor
from newskills.train.tensors import check_finite, translate_write_errors
from newskills.train.verbs import NOT_FINITE, Sampled, SamplingClient, SamplingParams

PARTIAL = ".unfinished"
"""A checkpoint is written below it and takes its place when it is whole."""


class TrlTrainerMixin:
    """Put before SFTTrainer, DPOTrainer and GRPOTrainer. `loop_config`, `monitor` and `updates_a_step` are set before
    training begins.
    """

    loop_config: Steps
    monitor: TrainingMonitor
    updates_a_step: int = 1

    def create_model_card(self, *_: Any, **__: Any) -> None:
        """Write no README into a run folder."""

    def _send_telemetry(self) -> None:
        """Tell others nothing."""

    def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> Any:
        """Create the schedule of all our trainers."""
        this: Any = self
        if this.lr_scheduler is None:
            config = self.loop_config

            def share(update: int) -> float:
                step = min(update // self.updates_a_step, config.steps - 1)
                rate = rate_at(step, config.steps, 1.0, config.schedule, config.warmup_steps)
                return self.monitor.rate_share * rate

            this.lr_scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer or this.optimizer, share)
            this._created_lr_scheduler = True
        return this.lr_scheduler

    def _save(self, output_dir: str | None = None, state_dict: dict[str, Any] | None = None) -> None:
        """Save weights; those that are tied are written once, also where they were gathered apart from several
        processes.
        """
        this: Any = self
        tied = getattr(this.model, "all_tied_weights_keys", {})
        if state_dict is not None:
            state_dict = {name: value for name, value in state_dict.items() if name not in tied}
        super()._save(output_dir, state_dict)  # type: ignore[misc]

    def training_step(self, *args: Any, **kwargs: Any) -> Any:
        """Compute a training step, and stop before the weights are spoilt."""
        loss = super().training_step(*args, **kwargs)  # type: ignore[misc]
        self._finite(loss, "loss")
        return loss

    def _get_grad_norm(self, *args: Any, **kwargs: Any) -> Any:
        norm = super()._get_grad_norm(*args, **kwargs)  # type: ignore[misc]
        self._finite(torch.as_tensor(norm), "gradient")
        return norm

    def _finite(self, value: Any, what: str) -> None:
        if not torch.isfinite(value):
            this: Any = self
            raise TrainingError(
                f"The {what} of step {this.state.global_step // self.updates_a_step + 1} is {value.item()}; training "
                "stopped.",
                hint=NOT_FINITE,
            )


class StepRecords(TrainerCallback):  # type: ignore[misc]  # of a package whose types are not read
    """Our record of a run of TRL: after every step what follows in `TrainingMonitor`."""

    def __init__(
        self,
        monitor: TrainingMonitor,
        learner: TrlLearner,
        on_start: OnStart,
        more: Callable[[], dict[str, float]],
    ) -> None:
        """Keep what the steps need; `more` gives metrics of the last step beside TRL's."""
        self._monitor, self._learner, self._on_start, self._more = monitor, learner, on_start, more
        self._begun = time.monotonic()
        self.ended: bool | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        trainer = self._learner.trainer
        if sharding_strategy() == "fsdp":
            # So that transformers generates in step: a process that is done waits for the others.
            trainer.model._is_fsdp_managed_module = True
        self._on_start(state.global_step // trainer.updates_a_step, trainer.loop_config.steps)
        if state.global_step == 0:
            self._monitor.before(self._learner)
        self._begun = time.monotonic()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        control.should_log = state.global_step % self._learner.trainer.updates_a_step == 0

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
        if not logs or "loss" not in logs:
            return
        done = state.global_step // self._learner.trainer.updates_a_step
        metrics = {name: float(value) for name, value in logs.items() if name in KEPT and value is not None}
        self.ended = self._monitor.after(self._learner, done, metrics | self._more(), self._begun)
        control.should_training_stop |= self.ended is not None
        self._begun = time.monotonic()


KEPT = (
    *("loss", "learning_rate", "grad_norm", "kl", "entropy", "mean_token_accuracy", "aux_loss"),
    *("clip_ratio/region_mean", "clip_ratio/low_mean", "clip_ratio/high_mean", "cispo_clip_ratio"),
    *("sampling/importance_sampling_ratio/mean", "sampling/sampling_logp_difference/mean"),
    *("sampler_kl", "ratio"),
    *("accuracy", "margin"),
    *("rewards/chosen", "rewards/rejected", "rewards/margins", "rewards/accuracies"),
)
"""Metrics of TRL that are taken over; the others are ours."""


class TrlLearner:
    """The model in training: samples with it, saves it whole or not at all."""

    def __init__(self, trainer: Any, sampler: TrlSampler) -> None:
        self.trainer, self.sampler = trainer, sampler

    def save_state(self, folder: Path) -> None:
        """Save the checkpoint of transformers.Trainer (weights, optimizer, schedule, random numbers) as `folder`.

        Raises TrainingError for weights that are not finite, StorageError.
        """
        trainer = self.trainer
        learnt = {
            name: own_part(value).detach()
            for name, value in trainer.model.named_parameters()
            if value.requires_grad
        }
        _check_all(lambda: check_finite(learnt, f"{folder} is not written"))
        partial, usual = folder.parent / PARTIAL, trainer.args.output_dir
        if trainer.is_world_process_zero():
            shutil.rmtree(partial, ignore_errors=True)
        trainer.accelerator.wait_for_everyone()
        trainer.args.output_dir = str(partial)
        try:
            with translate_write_errors(folder):
                trainer._save_checkpoint(trainer.model_wrapped, trial=None)
        finally:
            trainer.args.output_dir = usual
        trainer.accelerator.wait_for_everyone()
        if trainer.is_world_process_zero():
            os.replace(next(partial.glob("checkpoint-*")), folder)
            partial.rmdir()
        trainer.accelerator.wait_for_everyone()

    def sample(
        self, prompts: Sequence[Sequence[int]], num_samples: int, params: SamplingParams
    ) -> list[list[Sampled]]:
        """Sample as `newskills.train.backends.trl.sampling.TrlSampler.sample` does."""
        return self.sampler.sample(prompts, num_samples, params)


class ReturningLearner(TrlLearner):
    """LoRA pairs that one process trains: they can go back to what they were."""

    def go_back(self, state: str) -> None:
        """Load pairs and moments of a checkpoint; empty: the pairs add nothing again, without moments. The learning
        rate is what the schedule and the monitor's share give now.

        Raises DataError for a checkpoint that cannot be read.
        """
        trainer, optimizer, schedule = self.trainer, self.trainer.optimizer, self.trainer.lr_scheduler
        if state:
            check_readable(Path(state))
            set_peft_model_state_dict(trainer.model, load_file(Path(state) / "adapter_model.safetensors"))
            moments = torch.load(Path(state) / "optimizer.pt", map_location=trainer.args.device, weights_only=True)
            optimizer.load_state_dict(moments)
        else:
            for name, value in trainer.model.named_parameters():
                if ".lora_B" in name:
                    value.data.zero_()
            optimizer.state.clear()
        rates = [
            base * share(schedule.last_epoch)
            for base, share in zip(schedule.base_lrs, schedule.lr_lambdas, strict=True)
        ]
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["lr"] = rate
        schedule._last_lr = rates


def own_part(tensor: torch.Tensor) -> torch.Tensor:
    """Return what this process has of a tensor that may be divided (FSDP, ZeRO-3)."""
    if isinstance(tensor, DTensor):
        return tensor.to_local()
    part: torch.Tensor = getattr(tensor, "ds_tensor", tensor)
    return part


def _check_all(check: Callable[[], None]) -> None:
    """Raise the first error of `check` in any process, in all of them: one alone would leave the others waiting.

    Raises TrainingError.
    """
    errors: list[TrainingError] = []
    try:
        check()
    except TrainingError as error:
        errors.append(error)
    if first := next(iter(gather_all(errors)), None):
        raise first


def join_hooks(hooks: Hooks) -> Hooks:
    """Join hooks for several processes: the first one decides and measures, all follow and sample with it."""

    def measured(client: SamplingClient, held_out: HeldOut, seed: int) -> Measured:
        assert isinstance(client, TrlLearner)
        return client.sampler.lead(lambda: measure(client, held_out, seed))

    return msgspec.structs.replace(hooks, stop=lambda: broadcast_from_first(hooks.stop()), measure=measured)


def check_readable(checkpoint: Path) -> None:
    """Raise DataError for a checkpoint with a file that is cut off."""
    for path in sorted(checkpoint.iterdir()):
        try:
            if path.suffix == ".safetensors":
                with safe_open(path, "pt"):
                    pass
            elif path.suffix == ".pt" and not is_zipfile(path):
                raise OSError("torch.save has not finished it")
        except (OSError, SafetensorError) as error:
            raise DataError(
                f"{path} cannot be read: {error}.",
                hint=f"Remove the last line of {CHECKPOINTS} beside it: the same command then resumes from "
                "the checkpoint before.",
            ) from error


def _check_division(checkpoint: Path) -> None:
    """Raise ConfigError for a checkpoint of the other kind: its optimizer lies in a file that would not be read."""
    divided = (checkpoint / "pytorch_model_fsdp.bin").exists()
    if divided != (sharding_strategy() == "fsdp"):
        how = "with" if divided else "without"
        raise ConfigError(
            f"{checkpoint} was written {how} ++trainer.trl.split=fsdp.",
            hint=f"Resume {how} it, or use another output folder.",
        )


def on_disk(rows: Dataset, folder: Path) -> Dataset:
    """Return the same rows in files that all processes see: the first one writes there what TRL computes once for all.

    Raises StorageError.
    """
    if process_count() == 1:
        return rows
    place = folder / "rows"
    if PartialState().is_main_process and not place.exists():
        with atomic_folder(place) as new:
            rows.save_to_disk(str(new))
    PartialState().wait_for_everyone()
    return load_from_disk(str(place))


def places_of_steps(config: Steps, count: int, size: int) -> list[int]:
    """Return which of `count` rows each step of `size` trains on, one step after another, as the other loops do."""
    return [at for step in range(config.steps) for at in batch_at(range(count), step, size, config.seed)]


def run_training(
    trainer: Any,
    task: TrainingTask,
    config: Steps,
    pad: int,
    more: Callable[[], dict[str, float]],
    sampler: TrlSampler | None = None,
) -> bool:
    """Train from the last checkpoint on; return whether the run has ended (False: it was stopped).

    `pad`: the token that fills up sequences; `more`: metrics of the last step beside TRL's; `sampler`: what held-out
    problems are asked of, where that is not the model in this process. Raises DataError for a
    checkpoint that cannot be read, ConfigError for one of weights that were divided otherwise.
    """
    folder, hooks = task.folder, task.hooks
    trainer.loop_config = config
    if task.settings.weights == "lora":
        seed_pairs(trainer.model, task.settings.lora)
    # A server of its own would have to be sent what the run went back to.
    returns = task.settings.weights == "lora" and sampler is None and process_count() == 1
    learner = (ReturningLearner if returns else TrlLearner)(trainer, sampler or TrlSampler(trainer, pad))
    trainer.monitor = monitor = TrainingMonitor(config, folder, join_hooks(hooks))
    records = StepRecords(monitor, learner, hooks.on_start, more)
    trainer.remove_callback(PrinterCallback)
    trainer.add_callback(records)
    at = folder.state_of(folder.last) if folder.last else None
    if at is not None:
        check_readable(Path(at))
        _check_division(Path(at))
    trainer.train(resume_from_checkpoint=at)
    return records.ended is True
