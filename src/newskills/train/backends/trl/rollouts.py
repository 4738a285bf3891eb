# SPDX-License-Identifier: Apache-2.0
"""GRPO of TRL on groups that are drawn and solved here: our solvers and sequences, TRL's loss and steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from trl import GRPOTrainer
from trl.models.utils import disable_gradient_checkpointing
from trl.trainer.utils import pad, use_adapter

from newskills.train.backends.trl.processes import gather_all
from newskills.train.backends.trl.sampling import TrlSampler
from newskills.train.backends.trl.shared import TrlTrainerMixin
from newskills.train.loops.groups import Group, measured
from newskills.train.loops.grpo import GrpoConfig, StepGroups
from newskills.train.loops.traces import TrainingSequence, gap_metrics, held_back, traces
from newskills.train.verbs import Datum

UNBOUNDED = 1e30


def no_reward(prompts: Sequence[str], **_: Any) -> list[None]:
    """Give no reward: TRL wants such a function, but rollouts are rewarded before it would be asked."""
    return [None] * len(prompts)


def importance_level(config: GrpoConfig) -> str:
    """Return what TRL takes one importance weight for."""
    if config.loss == "gspo":
        return "sequence"
    return "token"


def loss_settings(config: GrpoConfig) -> dict[str, Any]:
    """Return the arguments of GRPOConfig under which its loss is that of `newskills.train.loops.grpo` on rollouts. p /
    q is the importance weight, q of the sampler.
    """
    if config.loss in ("ppo", "gspo"):
        how: dict[str, Any] = {"loss_type": "dapo", "importance_sampling_level": importance_level(config)}
    elif config.importance_cap:
        how = {"loss_type": "cispo", "epsilon_high": config.importance_cap}
    else:
        how = {"loss_type": "dapo", "epsilon": 1.0, "epsilon_high": UNBOUNDED}
    return {**how, "vllm_importance_sampling_correction": False}


class TurnsTrainer(TrlTrainerMixin, GRPOTrainer):  # type: ignore[misc]
    """`source` and `rollout_config` are set before training begins."""

    source: StepGroups
    rollout_config: GrpoConfig

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.drawn: list[Group] = []
        self._of_draws: dict[str, float] = {}
        self._learnt: list[TrainingSequence] = []
        self._gaps: list[float] = []
        self._kl = 0.0
        self._logps: torch.Tensor | None = None

    @property
    def _groups(self) -> list[Group]:
        """What is learnt from."""
        return [group for group in self.drawn if not group.rejected]

    def step_metrics(self) -> dict[str, float]:
        """Return the metrics of the last step, the same in all processes."""
        config = self.rollout_config
        tokens = sum(gather_all([len(sequence.datum.tokens) for sequence in self._learnt]))
        metrics = measured(self._groups) | self._of_draws | {"tokens": float(tokens)}
        if config.kl:
            shares = gather_all([(self._kl, sum(len(sequence.written) for sequence in self._learnt))])
            metrics["kl"] = sum(kl * count for kl, count in shares) / max(1, sum(count for _, count in shares))
        return metrics | gap_metrics(gather_all(self._gaps), config.importance_cap)

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        """Return the sequences of this process: what the model wrote counts, what it was shown is only read."""
        this: Any = self
        config, step = self.rollout_config, this.state.global_step // self.updates_a_step
        sampler = TrlSampler(self, this._tokenizer.pad_token_id, vllm=this.use_vllm)

        def groups_of_step() -> tuple[list[Group], dict[str, float]]:
            drawn = self.source.drawn(sampler, step)
            return drawn, self.source.measured(drawn)

        self.drawn, self._of_draws = sampler.lead(groups_of_step)
        rollouts = [pair for group in self._groups for pair in zip(group.rollouts, group.advantages, strict=True)]
        own = rollouts[this.accelerator.process_index * len(inputs) :][: len(inputs)]
        self._learnt = [
            sequence
            for rollout, advantages in own
            if config.counts(rollout) and (any(advantages) or config.kl)
            for sequence in traces(rollout, advantages)
        ]
        self._gaps = []
        if config.kl and self._learnt:
            self._learnt, self._kl = held_back(self, self._learnt, config.kl, config.temperature)
        counted = [rollout for rollout, _ in rollouts if config.counts(rollout)]
        tokens = config.divisor(sum(rollout.tokens for rollout in counted), len(counted))
        tensors = self._tensors(self._learnt) | {"num_items_in_batch": torch.tensor(float(tokens))}
        return {name: tensor.to(this.accelerator.device) for name, tensor in tensors.items()}

    def _tensors(self, learnt: Sequence[TrainingSequence]) -> dict[str, torch.Tensor]:
        """Return [N, P] of prompts and [N, C] of the rest, N a multiple of the parts of a step: all processes learn as
        often, what is missing is filled up with rows that do not count.
        """
        this: Any = self
        end = this._tokenizer.pad_token_id
        rows = [_sequence_row(sequence) for sequence in learnt]
        parts = this.args.steps_per_generation
        empty = ([end], [end], [0], [0.0], [0.0])
        rows += [empty] * (-len(rows) % parts if rows else parts)
        prompts, replies, masks, logprobs, advantages = zip(*rows, strict=True)

        def padded(values: Sequence[list[Any]], filling: float, side: str, kind: torch.dtype) -> torch.Tensor:
            tensor: torch.Tensor = pad([torch.tensor(row, dtype=kind) for row in values], filling, side)
            return tensor

        return {
            "prompt_ids": padded(prompts, end, "left", torch.long),
            "prompt_mask": padded([[1] * len(row) for row in prompts], 0, "left", torch.long),
            "completion_ids": padded(replies, end, "right", torch.long),
            "completion_mask": padded([[1] * len(row) for row in replies], 0, "right", torch.long),
            "tool_mask": padded(masks, 0, "right", torch.long),
            "old_per_token_logps": padded(logprobs, 0.0, "right", torch.float32),
            "advantages": padded(advantages, 0.0, "right", torch.float32),
        }

    def reference_logprobs(self, data: Sequence[Datum], temperature: float = 1.0) -> list[list[float]]:
        """Return those of what the model wrote, under the weights that training began from; 0 elsewhere.

        TRL divides logits by the temperature that it samples at, which is `temperature`.
        """
        this: Any = self
        tensors = self._tensors(self._learnt)
        ids, mask = (
            torch.cat([tensors[f"prompt_{name}"], tensors[f"completion_{name}"]], 1).to(this.accelerator.device)
            for name in ("ids", "mask")
        )
        length, size = tensors["completion_ids"].shape[1], this.args.per_device_train_batch_size
        with torch.no_grad(), disable_gradient_checkpointing(this.model, this.args.gradient_checkpointing_kwargs):
            if this.ref_model is not None:
                values = this._get_per_token_logps_and_entropies(
                    this.ref_model, ids, mask, length, batch_size=size
                )
            else:
                with use_adapter(this.accelerator.unwrap_model(this.model), adapter_name=None):
                    values = this._get_per_token_logps_and_entropies(
                        this.model, ids, mask, length, batch_size=size
                    )
        starts = [sequence.written[0] for sequence in self._learnt]
        return [
            [0.0] * start + row[: len(datum.targets) - start]
            for datum, start, row in zip(data, starts, values[0].tolist(), strict=False)
        ]

    def _get_per_token_logps_and_entropies(self, *args: Any, **kwargs: Any) -> Any:
        values = super()._get_per_token_logps_and_entropies(*args, **kwargs)
        self._logps = values[0].detach()
        return values

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> Any:
        loss = super()._compute_loss(model, inputs)
        this: Any = self
        first = (
            this._step % (this.args.steps_per_generation * this.num_iterations) < this.args.steps_per_generation
        )
        if first and self._logps is not None:
            gaps = self._logps - inputs["old_per_token_logps"]
            self._gaps += gaps[(inputs["completion_mask"] * inputs["tool_mask"]).bool()].tolist()
        return loss


def _sequence_row(sequence: TrainingSequence) -> tuple[list[int], list[int], list[int], list[float], list[float]]:
    """Return the prompt, the rest, whether the model wrote it, log-probabilities and advantages of the rest."""
    datum, start = sequence.datum, sequence.written[0]
    written = set(sequence.written)
    places = range(start, len(datum.targets))
    logprobs, advantages = datum.logprobs or (), datum.advantages or ()
    return (
        [*datum.tokens[: start + 1]],
        [*datum.targets[start:]],
        [int(place in written) for place in places],
        [logprobs[place] for place in places],
        [advantages[place] for place in places],
    )
