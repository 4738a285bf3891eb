# SPDX-License-Identifier: Apache-2.0
"""GRPO with TRL's AsyncGRPOTrainer: a vLLM server samples while the model learns, and gets its weights after each step.

TRL's are the loss, the packing of sequences that begin alike, and how weights reach the server. Ours are problems,
solvers, rewards, and what makes a step: that of `newskills.train.loops.grpo`.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from typing import Any, TypeVar
from uuid import uuid4

import numpy as np
import torch
from datasets import Dataset
from msgspec import Struct
from torch.utils.data import DataLoader, IterableDataset
from trl.experimental.async_grpo import AsyncGRPOConfig, AsyncGRPOTrainer, packing
from trl.experimental.async_grpo.async_grpo_trainer import DataCollatorForRollout

from newskills.base.errors import ConfigError
from newskills.train.backends.trl.ahead import StepAhead, StepsAhead
from newskills.train.backends.trl.fitting import check_fits
from newskills.train.backends.trl.losses import check_loss
from newskills.train.backends.trl.model import (
    TrainingTask,
    adapter_config,
    load_tokenizer,
    precision_of,
    router_arguments,
    training_arguments,
)
from newskills.train.backends.trl.processes import broadcast_from_first, on_cpu
from newskills.train.backends.trl.rollouts import no_reward
from newskills.train.backends.trl.sampling import TrlSampler
from newskills.train.backends.trl.settings import SERVE
from newskills.train.backends.trl.shared import TrlTrainerMixin, run_training
from newskills.train.backends.trl.vllm_server import VllmServer
from newskills.train.loops.groups import Group, measured
from newskills.train.loops.grpo import GrpoConfig, RewardedProblems
from newskills.train.loops.remarks import flat_remark
from newskills.train.loops.rloo import RlooConfig
from newskills.train.loops.traces import TrainingSequence, traces
from newskills.train.settings import TrainerSettings
from newskills.train.tensors import check_base
from newskills.train.verbs import Sampled, SamplingParams

T = TypeVar("T")
WHAT = "++trainer.trl.staleness"
ADAPTERS = ".vllm_lora"
"""Folder in which TRL puts the pairs that a server is to load."""


class _StepBatches(IterableDataset[dict[str, Any]]):
    """The micro-batches of each step for this process; the first one draws, packs and tells the others.

    accelerate's own way would fetch the first batch of the next step before this one is learnt from, and wait for it.
    """

    def __init__(self, trainer: _AsyncTrainer) -> None:
        self._trainer = trainer
        self.wait_s = 0.0

    def __iter__(self) -> Iterator[dict[str, Any]]:
        rank = self._trainer.accelerator.process_index
        for batch in self._pack_batches() if rank == 0 else iter(lambda: broadcast_from_first(None), None):
            if rank == 0:
                broadcast_from_first(batch)
            yield {name: values[rank : rank + 1] for name, values in batch.items()}
        if rank == 0:
            broadcast_from_first(None)

    def _pack_batches(self) -> Iterator[dict[str, Any]]:
        trainer = self._trainer
        config, args, pad = trainer.rollout_config, trainer.args, trainer.processing_class.pad_token_id
        parts, share = args.gradient_accumulation_steps, trainer.accelerator.num_processes
        collator = DataCollatorForRollout(
            pad, share, groups_trained=trainer._trained_groups, metrics=trainer._metrics["train"]
        )
        while True:
            begun = time.monotonic()
            step = trainer.ahead.next()
            if step is None:
                return
            self.wait_s += time.monotonic() - begun
            trainer.drawn = step
            counted = [rollout for group in step.groups for rollout in group.rollouts if config.counts(rollout)]
            divisor = config.divisor(sum(rollout.tokens for rollout in counted), len(counted))
            rows = rows_of(step.groups, config, parts * share, pad)
            for at in range(0, len(rows), share):
                batch = collator.torch_call([rows[at : at + share]])
                # The loss is divided by all tokens of a step, which may be learnt in parts.
                batch["global_n_tokens"].fill_(max(divisor, 1) / parts)
                yield batch


def rows_of(groups: Sequence[Group], config: GrpoConfig, count: int, pad: int) -> list[Any]:
    """Return `count` rows of about as much to compute; what a problem's samples have in common is computed once in each
    row. A row without any sequence gets one that teaches nothing.
    """
    units = [
        [
            _training_sample(sequence, advantages[0], number)
            for rollout, advantages in zip(group.rollouts, group.advantages, strict=True)
            if config.counts(rollout) and any(advantages)
            for sequence in traces(rollout, advantages)
        ]
        for number, group in enumerate(groups)
    ]
    units = [unit for unit in units if unit]
    if len(units) < count:
        units = [[sample] for unit in units for sample in unit]
    units += [[_padding_sample(pad)]] * (count - len(units))
    rows = [packing.TreeRow() for _ in range(count)]
    for unit in sorted(units, key=lambda unit: -sum(len(sample["input_ids"]) for sample in unit)):
        row = min(rows, key=lambda row: (row.load, len(row.samples)))
        for sample in unit:
            row.add(sample)
    return rows


def _training_sample(sequence: TrainingSequence, advantage: float, group: int) -> dict[str, Any]:
    datum = sequence.datum
    tokens = [*datum.tokens, datum.targets[-1]]
    mask, logprobs = np.zeros(len(tokens), np.int64), np.zeros(len(tokens), np.float32)
    for place in sequence.written:
        mask[place + 1], logprobs[place + 1] = 1, (datum.logprobs or ())[place]
    return {
        "input_ids": np.asarray(tokens, np.int64),
        "completion_mask": mask,
        "old_log_probs": logprobs,
        "advantage": advantage,
        "group_id": group,
        "metrics": {},
    }


def _padding_sample(pad: int) -> dict[str, Any]:
    """Return a sequence that teaches nothing: TRL wants a token of each process."""
    return {
        "input_ids": np.asarray([pad, pad], np.int64),
        "completion_mask": np.asarray([0, 1], np.int64),
        "old_log_probs": np.zeros(2, np.float32),
        "advantage": 0.0,
        "group_id": -1,
        "metrics": {},
    }


class _AsyncTrainer(TrlTrainerMixin, AsyncGRPOTrainer):  # type: ignore[misc]
    """`ahead`, `rollout_config` are set before training begins."""

    ahead: StepsAhead
    rollout_config: GrpoConfig
    drawn: StepAhead | None = None

    def get_train_dataloader(self) -> Any:
        """Return the steps of `ahead` in micro-batches."""
        self._rollout_dataset = _StepBatches(self)
        return DataLoader(self._rollout_dataset, batch_size=None, num_workers=0)

    def compute_loss(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the loss; what TRL calls `kl` here is that of sampler and trainer."""
        loss = super().compute_loss(*args, **kwargs)
        this: Any = self
        measures = this._metrics["train"]
        measures["sampler_kl"].append(measures["kl"].pop())
        return loss

    def _sync_weight(self) -> None:
        this: Any = self
        if this.model_version == 0 and this.accelerator.is_main_process:
            self.ahead.first = this.state.global_step
        super()._sync_weight()


class _ServerSampler(TrlSampler):
    """Asks the server, which has the weights of the last step."""

    def __init__(self, trainer: Any, pad: int, server: VllmServer) -> None:
        super().__init__(trainer, pad)
        self._server = server

    def lead(self, work: Callable[[], T]) -> T:
        """Return what `work` returns, in all processes, as `TrlSampler.lead`."""
        with self._trainer.ahead.drawing:
            return super().lead(work)

    def sample(
        self, prompts: Sequence[Sequence[int]], num_samples: int, params: SamplingParams
    ) -> list[list[Sampled]]:
        return self._server.sample(prompts, num_samples, params)


def check_asynchronous(settings: TrainerSettings, config: GrpoConfig) -> None:
    """Raise ConfigError for what sampling ahead cannot have."""
    trl = settings.trl
    if isinstance(config, RlooConfig) or trl.algorithm == "rloo":
        raise ConfigError(f"++trainer.trl.algorithm=rloo does not go with {WHAT}.", hint="Leave one of them out.")
    check_loss(trl, WHAT)
    wrong = {
        "++kl": config.kl,
        "++iterations": config.iterations > 1,
        "++loss=gspo": config.loss == "gspo",
        "++resample": config.resample,
        "++put_aside": config.put_aside,
        "++turn_weight": config.turn_weight,
        f"++trainer.trl.sampler={trl.sampler}": trl.sampler != "vllm_server",
        f"++trainer.trl.split={trl.split}": trl.split.startswith("zero"),
        "++trainer.trl.quantization": trl.quantization != "none",
    }
    if refused := [name for name, is_set in wrong.items() if is_set]:
        raise ConfigError(f"{refused[0]} does not go with {WHAT}.", hint="Leave one of them out.")


def check_gpu(settings: TrainerSettings) -> None:
    """Raise ConfigError where there is no GPU, or no package or kernel that TRL needs there."""
    if on_cpu():
        raise ConfigError(
            f"{WHAT} needs a GPU for the trainer and another for vLLM, but torch finds none here.",
            hint="Leave it out: then samples and steps take turns, which a CPU can do.",
        )
    needed = ["kernels", "requests", *([] if settings.weights == "lora" else ["vllm"])]
    if missing := [name for name in needed if find_spec(name) is None]:
        raise ConfigError(f"{WHAT} needs {', '.join(missing)}.", hint=f"Run: pip install {' '.join(missing)}")
    try:
        packing._flash_attn()
    except Exception as error:
        raise ConfigError(
            f"{WHAT} needs FlashAttention 3, which cannot be loaded: {str(error).splitlines()[0]}.",
            hint="It runs on Hopper GPUs and later. HF_HUB_OFFLINE=0 lets the package kernels download it.",
        ) from error


class AsyncTraining(Struct, frozen=True):
    """What a training has been made of."""

    trainer: Any
    tokenizer: Any
    server: VllmServer


def grpo_ahead(task: TrainingTask, data: RewardedProblems, config: GrpoConfig) -> bool:
    """Train on problems that a vLLM server samples ahead of the steps; return whether the run has ended.

    Raises ConfigError for settings that do not go together, without GPU or server; DataError for lengths that do not
    fit the server; TrainingError where the server does not answer.
    """
    settings, folder = task.settings, task.folder
    check_asynchronous(settings, config)
    check_gpu(settings)
    size = min(config.batch_size, len(data.problems))
    length = max(len(problem.prompt) for problem in data.problems) + config.max_tokens
    check_fits(task, size * config.group_size, length, config.max_tokens)
    made = _make_trainer(task, data, config)
    trainer, server = made.trainer, made.server

    def more() -> dict[str, float]:
        done = trainer.state.global_step
        step = trainer.drawn
        if step is None:  # not the first process
            return {}
        if remark := flat_remark(folder, done - 1):
            task.hooks.remark(remark)
        folder.groups(step.groups, done)
        tokens = sum(rollout.tokens for group in step.groups for rollout in group.rollouts)
        return measured(step.groups) | {"tokens": float(tokens), "staleness": float(done - 1 - step.updates)}

    sampler = _ServerSampler(trainer, made.tokenizer.pad_token_id, server)
    try:
        return run_training(trainer, task, config, made.tokenizer.pad_token_id, more, sampler)
    finally:
        if trainer.accelerator.is_main_process and trainer._lora_sync:
            for version in range(1, trainer.model_version + 1)[-settings.trl.staleness - 1 :]:
                trainer.vllm_client.unload_lora_adapter(f"{trainer._lora_name}-v{version}")
            shutil.rmtree(folder.path / ADAPTERS, ignore_errors=True)


def _make_trainer(task: TrainingTask, data: RewardedProblems, config: GrpoConfig) -> AsyncTraining:
    """Make the trainer. Raises ConfigError for a server that it cannot use."""
    settings, folder, stops = task.settings, task.folder, list(data.scorer.stops)
    trl = settings.trl
    server = VllmServer(trl.vllm_url)
    server.connect(config.temperature)
    ahead = StepsAhead(server, data.problems, config, data.scorer, trl.staleness)
    size = min(config.batch_size, len(data.problems)) * config.group_size
    tokenizer = load_tokenizer(task.base, stops)
    frozen = settings.weights == "lora" and not on_cpu()
    dtype = precision_of(settings) if frozen else torch.float32
    try:
        trainer = _AsyncTrainer(
            model=str(task.base),
            reward_funcs=no_reward,
            args=AsyncGRPOConfig(
                **training_arguments(config, settings, size, output=folder.path, updates=config.steps),
                **({} if trl.router_loss is None else {"router_aux_loss_coef": trl.router_loss}),
                model_init_kwargs={"dtype": dtype, "local_files_only": True},
                num_generations=config.group_size,
                max_completion_length=config.max_tokens,
                temperature=config.temperature,
                top_p=config.top_p,
                epsilon=config.clip_low,
                epsilon_high=config.clip_high,
                vllm_server_base_url=trl.vllm_url,
                max_staleness=trl.staleness,
            ),
            train_dataset=Dataset.from_dict({"prompt": [str(at) for at in range(len(data.problems))]}),
            processing_class=tokenizer,
            peft_config=adapter_config(settings),
            rollout_worker=ahead,
        )
    except (ValueError, ImportError, TimeoutError, KeyError) as error:
        raise ConfigError(f"{WHAT}: {error}", hint=f"The server starts so: {SERVE}") from error
    router_arguments(settings, trainer.model)
    check_base(dict(trainer.model.named_parameters()), task.base)
    trainer.ahead, trainer.rollout_config = ahead, config
    if trainer._lora_sync:
        # A server may still have the pairs of another run, or of this one before it was killed.
        trainer._lora_name = f"newskills-{uuid4().hex[:8]}"
        ahead.adapter = lambda version: f"{trainer._lora_name}-v{version}"
    return AsyncTraining(trainer, tokenizer, server)
