# SPDX-License-Identifier: Apache-2.0
"""Samples of the model in training, made by all processes that hold its weights: the first one asks, all compute."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil
from typing import Any, TypeVar

import msgspec
import torch
from msgspec import Struct
from transformers import LogitsProcessor
from trl.distributed import DistributedBackend
from trl.models.utils import unwrap_model_for_generation

from newskills.base.errors import NewskillsError, TrainingError
from newskills.train.backends.trl.processes import broadcast_from_first, gather_all, process_count
from newskills.train.verbs import Sampled, SamplingParams

T = TypeVar("T")


class _Order(Struct, frozen=True):
    prompts: Sequence[Sequence[int]]
    num_samples: int
    params: SamplingParams


class _Done(Struct, frozen=True):
    value: Any


class _Failed(Struct, frozen=True):
    reason: str
    hint: str


class TrlSampler:
    """`vllm`: by the vLLM that the trainer has, which keeps TRL's temperature and top_p; else by transformers."""

    def __init__(self, trainer: Any, pad: int, *, vllm: bool = False) -> None:
        self._trainer, self._pad, self._vllm = trainer, pad, vllm

    def lead(self, work: Callable[[], T]) -> T:
        """Return what `work` returns, in all processes. It runs in the first one, and samples with all of them.

        Raises what `work` raises; TrainingError in the other processes.
        """
        if process_count() == 1:
            return work()
        if self._trainer.is_world_process_zero():
            try:
                value = work()
            except BaseException as error:
                broadcast_from_first(_Failed(str(error), error.hint if isinstance(error, NewskillsError) else ""))
                raise
            broadcast_from_first(_Done(value))
            return value
        while True:
            message: Any = broadcast_from_first(None)
            if isinstance(message, _Order):
                self._share(message)
            elif isinstance(message, _Failed):
                raise TrainingError(message.reason, hint=message.hint)
            else:
                assert isinstance(message, _Done)
                led: T = message.value
                return led

    def sample(
        self, prompts: Sequence[Sequence[int]], num_samples: int, params: SamplingParams
    ) -> list[list[Sampled]]:
        """Sample; only below `lead` where several processes train. Log-probabilities are those at the temperature, as
        TRL computes them when it learns; the random numbers of the training are left as they are.
        """
        order = _Order(prompts, num_samples, params)
        return self._share(order if process_count() == 1 else broadcast_from_first(order))

    def _share(self, order: _Order) -> list[list[Sampled]]:
        """Give each process its prompts, as many as every other: weights that are split are gathered by all at once."""
        size = ceil(len(order.prompts) / process_count())
        rank = self._trainer.accelerator.process_index
        prompts = list(order.prompts)
        prompts += prompts[:1] * (size * process_count() - len(prompts))
        params = msgspec.structs.replace(order.params, seed=order.params.seed + rank)
        generate = self._by_vllm if self._vllm else self._by_transformers
        return gather_all(generate(prompts[rank * size :][:size], order.num_samples, params))[: len(order.prompts)]

    def _by_vllm(
        self, prompts: Sequence[Sequence[int]], num_samples: int, params: SamplingParams
    ) -> list[list[Sampled]]:
        trainer = self._trainer
        trainer.vllm_generation.max_completion_length = params.max_tokens
        repeated = [list(prompt) for prompt in prompts for _ in range(num_samples)]
        tokens, logprobs = trainer._generate_single_turn(repeated, None, {}, num_samples)
        rows = [_truncate_at_stop(*row, params.stop) for row in zip(tokens, logprobs, strict=True)]
        return [rows[at : at + num_samples] for at in range(0, len(rows), num_samples)]

    def _by_transformers(
        self, prompts: Sequence[Sequence[int]], num_samples: int, params: SamplingParams
    ) -> list[list[Sampled]]:
        trainer, width = self._trainer, max(map(len, prompts))
        device = trainer.accelerator.device
        ids = torch.tensor(
            [[self._pad] * (width - len(prompt)) + list(prompt) for prompt in prompts], device=device
        )
        mask = torch.tensor([[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts], device=device)
        how: dict[str, Any] = {"do_sample": False, "temperature": None, "top_p": None, "top_k": None}
        if params.temperature > 0:
            how = {
                "do_sample": True,
                "temperature": params.temperature,
                "top_p": params.top_p,
                "top_k": max(params.top_k, 0),
            }
        different = num_samples if params.temperature > 0 else 1
        recorder = _Recorder(params.temperature or 1.0)
        training = trainer.model.training
        with (
            unwrap_model_for_generation(trainer.model_wrapped, trainer.accelerator) as model,
            torch.no_grad(),
            DistributedBackend(trainer.accelerator).summon_full_params(trainer.model_wrapped, recurse=False),
            torch.random.fork_rng(),
        ):
            torch.manual_seed(params.seed)
            model.eval()
            try:
                generated = model.generate(
                    input_ids=ids,
                    attention_mask=mask,
                    max_new_tokens=params.max_tokens,
                    num_return_sequences=different,
                    eos_token_id=list(params.stop),
                    pad_token_id=self._pad,
                    logits_processor=[recorder],
                    **how,
                )
            finally:
                model.train(training)
        tokens = generated[:, width:]
        logprobs = recorder.logprobs_of(tokens).tolist()
        rows = [_truncate_at_stop(*row, params.stop) for row in zip(tokens.tolist(), logprobs, strict=True)]
        groups = [rows[at : at + different] for at in range(0, len(rows), different)]
        return [group * (num_samples // different) for group in groups]


class _Recorder(LogitsProcessor):  # type: ignore[misc]  # of a package whose types are not read
    """Log-probabilities of what is sampled, before top_k and top_p. A row of the vocabulary is kept for one token."""

    def __init__(self, temperature: float) -> None:
        self._temperature = temperature
        self._last: torch.Tensor | None = None
        self._logprobs: list[torch.Tensor] = []

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        self._record_tokens(input_ids[:, -1])
        self._last = (scores.float() / self._temperature).log_softmax(-1)
        return scores

    def logprobs_of(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return [N, T] of the tokens [N, T] that were generated."""
        self._record_tokens(tokens[:, -1])
        return torch.stack(self._logprobs[: tokens.shape[1]], 1)

    def _record_tokens(self, tokens: torch.Tensor) -> None:
        if self._last is not None:
            self._logprobs.append(self._last.gather(1, tokens[:, None]).squeeze(1))


def _truncate_at_stop(tokens: list[int], logprobs: list[float], stops: Sequence[int]) -> Sampled:
    """Return what was sampled, up to the first token that ends it."""
    ends = [place for place, token in enumerate(tokens) if token in set(stops)]
    count = ends[0] + 1 if ends else len(tokens)
    return Sampled(tokens=tokens[:count], logprobs=logprobs[:count], stop_reason="stop" if ends else "length")
