# SPDX-License-Identifier: Apache-2.0
"""GRPO with TRL: our prompts as token ids, our graders as the reward."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import ceil
from typing import Any

import msgspec
from datasets import Dataset
from trl import GRPOConfig as TrlConfig
from trl import GRPOTrainer, RLOOTrainer
from trl import RLOOConfig as TrlRlooConfig

from newskills.base.errors import ConfigError, DataError
from newskills.train.backends.trl.fitting import check_fits
from newskills.train.backends.trl.losses import check_loss, loss_arguments
from newskills.train.backends.trl.model import (
    TrainingTask,
    adapter_config,
    context_of,
    load_model,
    load_tokenizer,
    router_arguments,
    training_arguments,
)
from newskills.train.backends.trl.processes import gather_all, sharding_strategy
from newskills.train.backends.trl.rollouts import TurnsTrainer, importance_level, loss_settings, no_reward
from newskills.train.backends.trl.shared import TrlTrainerMixin, places_of_steps, run_training
from newskills.train.backends.trl.signal import MeasuredParts, SignalMeter, can_measure
from newskills.train.loops.groups import Group, grouped, measured
from newskills.train.loops.grpo import GrpoConfig, RewardedProblems, StepGroups
from newskills.train.loops.remarks import flat_remark
from newskills.train.loops.rloo import RlooConfig
from newskills.train.loops.samples import (
    Judged,
    MixedScorer,
    Problem,
    Rollout,
    SampledTurn,
    Scorer,
    check_graded,
)
from newskills.train.loops.signal import StepSignal
from newskills.train.settings import TrainerSettings
from newskills.train.verbs import Sampled

PAGE, BATCH_TOKENS = 32, 2048
"""Tokens of a page of keys and values, and of what is computed at once, on a CPU."""


class _OwnPrompts:
    """The text of a prompt is the index of its problem: TRL gets the problem's own token ids."""

    problems: Sequence[Problem]

    def _tokenize_prompts(self, prompts: list[str]) -> tuple[list[list[int]], None, dict[str, Any]]:
        return [list(self.problems[int(index)].prompt) for index in prompts], None, {}

    def _generate_single_turn(self, *args: Any, **kwargs: Any) -> Any:
        """Seed continuous batching, which draws from a seed of its own, and keep the weights that are trained from
        being turned to bfloat16 by TRL.
        """
        this: Any = self
        generate: Any = super()
        if not this.use_transformers_continuous_batching:
            return generate._generate_single_turn(*args, **kwargs)
        this.continuous_batching_config.seed = this.args.seed * 1_000_003 + this.state.global_step
        half, this.args.bf16 = this.args.bf16, False
        try:
            return generate._generate_single_turn(*args, **kwargs)
        finally:
            this.args.bf16 = half


class _GrpoTrainer(_OwnPrompts, MeasuredParts, TrlTrainerMixin, GRPOTrainer):  # type: ignore[misc]
    pass


class _RlooTrainer(_OwnPrompts, TrlTrainerMixin, RLOOTrainer):  # type: ignore[misc]
    """Baseline of a sample: the mean reward of the others of its group (https://arxiv.org/abs/2402.14740)."""


class _Rewards:
    """The scorer as a reward function of TRL; keeps the groups of the last batch."""

    __name__ = "reward"

    def __init__(self, problems: Sequence[Problem], config: GrpoConfig, scorer: Scorer) -> None:
        self._problems, self._config, self._scorer = problems, config, scorer
        self.groups: list[Group] = []

    def __call__(self, prompts: list[str], completion_ids: list[list[int]], **_: Any) -> list[float | None]:
        """Return rewards, None for what could not be graded: TRL leaves it out of its group. All processes see all
        groups.
        """
        stops = set(self._scorer.stops)
        samples = [
            Sampled(tokens=ids, logprobs=[], stop_reason="stop" if ids and ids[-1] in stops else "length")
            for ids in completion_ids
        ]
        texts = [self._scorer.text(ids) for ids in completion_ids]
        problems = [self._problems[int(index)] for index in prompts]
        judged = self._scorer.reward(
            [
                (problem.row, text, sample.stop_reason)
                for problem, text, sample in zip(problems, texts, samples, strict=True)
            ]
        )
        self._keep(gather_all(list(zip(map(int, prompts), texts, samples, judged, strict=True))))
        return [judgement.reward for judgement in judged]

    def _keep(self, batch: list[tuple[int, str, Sampled, Judged]]) -> None:
        size = self._config.group_size
        check_graded([judged for *_, judged in batch])
        self.groups = []
        for start, end in pairwise(range(0, len(batch) + 1, size)):
            indices, texts, samples, judged = zip(*batch[start:end], strict=True)
            problem = self._problems[indices[0]]
            rollouts = [
                Rollout(
                    turns=(SampledTurn(problem.prompt, sample),),
                    row=problem.row,
                    text=text,
                    finish_reason=sample.stop_reason,
                )
                for text, sample in zip(texts, samples, strict=True)
            ]
            self.groups.append(grouped(problem, rollouts, list(judged), self._config.advantages))


def train_grpo(task: TrainingTask, data: RewardedProblems, config: GrpoConfig) -> bool:
    """Train on problems with TRL. The order of problems, the learning rates and the loss are those of
    `newskills.train.loops.grpo`.

    Raises DataError without problems or for lengths that do not fit the model, ConfigError for settings that do not go
    together.
    """
    problems, scorer = data.problems, data.scorer
    if not problems:
        raise DataError("There are no problems to train on.", hint="Check the filters of the training data.")
    if config.min_signal:
        raise ConfigError(
            "The trl trainer does not measure the gradients of groups, which ++min_signal needs.",
            hint="Leave it out and set a larger ++batch_size, or use --backend=cpu.",
        )
    settings, folder = task.settings, task.folder
    if settings.trl.staleness:
        from newskills.train.backends.trl.asynchronous import grpo_ahead

        return grpo_ahead(task, data, config)
    if settings.trl.algorithm == "rloo":
        config = RlooConfig(**msgspec.structs.asdict(config))
    rloo = isinstance(config, RlooConfig)
    drawn_here = _needs_draws(config, scorer)
    if drawn_here:
        _check_drawn_here(settings, drawn_here, config)
    if rloo:
        check_loss(settings.trl, "++trainer.trl.algorithm=rloo")
    elif drawn_here:
        check_loss(settings.trl, drawn_here)
    special = {} if rloo or drawn_here else loss_arguments(settings.trl, config)
    size = min(config.batch_size, len(problems))
    sequences, longest = size * config.group_size, max(len(problem.prompt) for problem in problems)
    reference = bool(config.kl) and settings.weights == "full"
    length = longest + config.max_tokens
    check_fits(task, sequences, length, config.max_tokens, sampled=sequences, reference=reference)
    model, tokenizer = load_model(task.base, settings), load_tokenizer(task.base, list(scorer.stops))
    _check_lengths(problems, config, context_of(model))
    order = places_of_steps(config, len(problems), size)
    updates = config.steps * config.iterations
    trl_arguments = training_arguments(
        config, settings, size * config.group_size, output=folder.path, updates=updates
    )
    rewards = _Rewards(problems, config, scorer)
    how = _grpo_arguments(config, settings, _cache_pages(problems, config))
    corrected = config if scorer.several_turns else msgspec.structs.replace(config, importance_cap=0.0)
    if drawn_here:
        special = loss_settings(corrected)
    how |= router_arguments(settings, model)
    trainer = _trainer_class(rloo=rloo, drawn_here=bool(drawn_here))(
        model=model,
        reward_funcs=no_reward if drawn_here else rewards,
        args=_trl_config(config, {**trl_arguments, **how}, special),
        train_dataset=Dataset.from_dict({"prompt": list(map(str, order))}),
        processing_class=tokenizer,
        peft_config=adapter_config(settings),
    )
    trainer.problems, trainer.updates_a_step = problems, config.iterations
    if drawn_here:
        trainer.source = StepGroups(problems, config, folder, scorer, task.hooks.remark)
        trainer.rollout_config = corrected
        trainer.beta = 0.0  # what holds back stands in the advantages
    _end_with(trainer, list(scorer.stops))
    meter = None
    if isinstance(trainer, _GrpoTrainer) and can_measure(config, settings, trl_arguments):
        groups = trl_arguments["per_device_train_batch_size"] // config.group_size
        meter = _add_meter(trainer, task, config, groups)

    def more() -> dict[str, float]:
        done = trainer.state.global_step // config.iterations
        if drawn_here:
            folder.groups(trainer.drawn, done)
            metrics: dict[str, float] = trainer.step_metrics()
            return metrics
        if remark := flat_remark(folder, done - 1):
            task.hooks.remark(remark)
        folder.groups(rewards.groups, done)
        tokens = sum(rollout.tokens for group in rewards.groups for rollout in group.rollouts)
        return measured(rewards.groups) | {"tokens": float(tokens)} | (meter.metrics if meter else {})

    return run_training(trainer, task, config, tokenizer.pad_token_id, more)


def _add_meter(trainer: _GrpoTrainer, task: TrainingTask, config: GrpoConfig, groups: int) -> SignalMeter:
    """Measure the signal of each step; `groups`: of a part of a step. Return what measures it."""
    signal = StepSignal(config, task.folder, task.hooks.remark)
    meter = SignalMeter(signal, list(trainer.model.parameters()), groups)
    trainer.meter = meter
    trainer.add_callback(meter)
    return meter


def _needs_draws(config: GrpoConfig, scorer: Scorer) -> str:
    """Return what TRL's own draws and samples lack; empty where they suffice."""
    if scorer.several_turns:
        return "problems that take several turns"
    if isinstance(scorer, MixedScorer):
        return "several benchmarks"
    if config.control != "none":
        return f"++control={config.control}"
    if config.baseline != "mean" and not isinstance(config, RlooConfig):
        return f"++baseline={config.baseline}"
    return next((f"++{key}" for key in ("resample", "put_aside") if getattr(config, key)), "")


def _check_drawn_here(settings: TrainerSettings, what: str, config: GrpoConfig) -> None:
    """Raise ConfigError for what groups that are drawn and solved here cannot have."""
    if isinstance(config, RlooConfig):
        raise ConfigError(
            f"++trainer.trl.algorithm=rloo has one reply per problem, in TRL's order: it does not support {what}.",
            hint="Leave it out: GRPO does.",
        )
    # Passes of the reference are in some of the processes only.
    if config.kl and sharding_strategy() in ("fsdp", "zero3"):
        raise ConfigError(
            f"++kl with {what} needs all weights in each process.",
            hint=f"Leave out ++kl or ++trainer.trl.split={sharding_strategy()}.",
        )
    if settings.trl.sampler == "paged":
        raise ConfigError(
            f"++trainer.trl.sampler=paged has one reply per problem, in TRL's order: it does not support {what}.",
            hint="Use transformers (the default), vllm or vllm_server.",
        )


def _cache_pages(problems: Sequence[Problem], config: GrpoConfig) -> dict[str, Any] | None:
    """Make room, on a CPU, for the samples of a step: transformers would take half of the machine's memory."""
    import torch

    if torch.cuda.is_available():
        return None
    longest = max(len(problem.prompt) for problem in problems) + config.max_tokens
    pages = ceil(longest / PAGE) * config.batch_size * config.group_size
    return {"page_size": PAGE, "num_blocks": pages, "max_batch_tokens": max(longest, BATCH_TOKENS)}


def _grpo_arguments(config: GrpoConfig, settings: TrainerSettings, pages: dict[str, Any] | None) -> dict[str, Any]:
    """Return the arguments of GRPOConfig and RLOOConfig."""
    trl = settings.trl
    return {
        "num_generations": config.group_size,
        "max_completion_length": config.max_tokens,
        "temperature": config.temperature,
        "top_p": config.top_p,
        "num_iterations": config.iterations,
        "beta": config.kl,
        "epsilon": config.clip_low,
        "epsilon_high": config.clip_high,
        "mask_truncated_completions": config.drop_cut_off,
        "shuffle_dataset": False,
        "remove_unused_columns": False,
        "use_transformers_continuous_batching": trl.sampler == "paged",
        "transformers_continuous_batching_config": pages,
        "use_vllm": trl.sampler.startswith("vllm"),
        "vllm_mode": "server" if trl.sampler == "vllm_server" else "colocate",
        "vllm_server_base_url": trl.vllm_url if trl.sampler == "vllm_server" else None,
        "vllm_gpu_memory_utilization": trl.vllm_memory,
        "vllm_tensor_parallel_size": trl.vllm_tensor_parallel,
        "vllm_enable_sleep_mode": trl.vllm_sleep,
    }


def _trainer_class(*, rloo: bool, drawn_here: bool) -> Any:
    if drawn_here:
        return TurnsTrainer
    if rloo:
        return _RlooTrainer
    return _GrpoTrainer


def _trl_config(config: GrpoConfig, common: dict[str, Any], special: dict[str, Any]) -> Any:
    """Return the RLOOConfig or GRPOConfig; `common`: arguments of both, `special`: of GRPO's loss."""
    if isinstance(config, RlooConfig):
        return TrlRlooConfig(**common)
    return TrlConfig(**{**common, **_only_grpo(config), **special})


def _only_grpo(config: GrpoConfig) -> dict[str, Any]:
    """Return the arguments of GRPOConfig alone. dapo: the mean over all completion tokens of a batch."""
    return {
        "scale_rewards": "group" if config.scale_by_std else "none",
        "loss_type": "dapo",
        "importance_sampling_level": importance_level(config),
    }


def _end_with(trainer: Any, stops: list[int]) -> None:
    """Set the tokens that end a reply of this model, which need not be those of its generation_config."""
    trainer.eos_token_ids = stops
    if not trainer.use_vllm:
        trainer.generation_kwargs["eos_token_id"] = stops
        trainer.generation_config.eos_token_id = stops


def _check_lengths(problems: Sequence[Problem], config: GrpoConfig, context: int | None) -> None:
    longest = max(len(problem.prompt) for problem in problems) + config.max_tokens
    if context and longest > context:
        raise DataError(
            f"A prompt and {config.max_tokens} new tokens need {longest} tokens; the model's context is "
            f"{context}.",
            hint="Lower ++max_tokens or set ++too_long=drop.",
        )
