# SPDX-License-Identifier: Apache-2.0
"""Models that learn and answer, without any wire: one thread works with it."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import get_args

import msgspec
from msgspec import Struct
from torch import Tensor

from newskills.base.errors import ConfigError, DataError, UnknownNameError
from newskills.base.records import Row
from newskills.models.tokenizer import HFTokenizer
from newskills.train.backends.cpu.llama import LoraConfig
from newskills.train.backends.cpu.trainer import CpuTrainerConfig, dtype_of
from newskills.train.backends.cpu.weights import read_shape, read_tensors
from newskills.train.tensors import check_base, check_trainable
from newskills.train.verbs import AdamParams, LossConfig, LossName, LossOutput, Sampled, SamplingParams
from newskills_tinker.server.checkpoints import StoredRun
from newskills_tinker.server.trainer import ServedTrainer, read_pairs
from newskills_tinker.server.wire import Adam, PassRequest, SampleRequest, sample_answer

LOSSES: tuple[LossName, ...] = get_args(LossName)
BOUNDS = ("clip_low_threshold", "clip_high_threshold")
TEMPERATURE = ("temperature",)
SETTINGS = {
    "cross_entropy": TEMPERATURE,
    "importance_sampling": TEMPERATURE,
    "ppo": BOUNDS + TEMPERATURE,
    "cispo": BOUNDS + TEMPERATURE,
    "gspo": BOUNDS + TEMPERATURE,
    "dro": ("beta", *TEMPERATURE),
}
"""What `loss_fn_config` may hold, by loss; `temperature` is our own, and divides the logits."""


class BaseModel:
    """A model folder that is served, under the name by which clients know it."""

    def __init__(self, name: str, folder: Path) -> None:
        """Read the shape of a model. Raises DataError, ConfigError for a folder that the cpu trainer cannot work
        with."""
        self.name, self.folder = name, folder
        self.shape = read_shape(folder)

    @cached_property
    def tokenizer(self) -> HFTokenizer:
        """Raises ConfigError for a folder without one."""
        return HFTokenizer(str(self.folder))

    @cached_property
    def ends(self) -> list[int]:
        """Ids of the tokens that end a reply."""
        for file in ("generation_config.json", "config.json"):
            if (self.folder / file).is_file():
                end_tokens = msgspec.json.decode((self.folder / file).read_bytes(), type=Row).get("eos_token_id")
                if end_tokens is not None:
                    if isinstance(end_tokens, list):
                        return end_tokens
                    return [end_tokens]
        return []


class Sampler(Struct, kw_only=True, eq=False):
    """Weights to sample from: LoRA pairs that lie in `folder` or are in memory. `lora` has a key of its own for each
    shape of pairs; neither folder nor pairs: the base model itself.
    """

    sampler_id: str
    session_id: str
    base: BaseModel
    lora: LoraConfig
    model_path: str | None = None
    folder: Path | None = None
    pairs: dict[str, Tensor] | None = None


class ModelEngine:
    """`dtype`, `threads`: as the cpu trainer has them."""

    def __init__(self, *, dtype: str = "auto", threads: int = 0) -> None:
        """Check the dtype and keep the settings. Raises ConfigError for an unknown dtype."""
        dtype_of(dtype)
        self._dtype, self._threads = dtype, threads
        self._weights: dict[Path, Mapping[str, Tensor]] = {}
        self._trainers: dict[str, ServedTrainer] = {}
        self._askers: dict[tuple[Path, LoraConfig], ServedTrainer] = {}
        self._mounted: dict[int, Sampler] = {}

    def create(
        self, run: StoredRun, base: BaseModel, state: Path | None = None, *, optimizer: bool = False
    ) -> None:
        """Create a model that learns: fresh, or from a saved state. Raises DataError."""
        trainer = self._trainer(base, LoraConfig(rank=run.rank, alpha=run.alpha, seed=run.seed))
        if state is not None:
            trainer.restore(state, optimizer=optimizer)
        self._trainers[run.run_id] = trainer

    def drop(self, run_id: str) -> None:
        self._trainers.pop(run_id, None)

    def learn(self, request: PassRequest) -> LossOutput:
        """Compute a pass. Raises UnknownNameError for a loss, DataError for data that does not fit, TrainingError."""
        trainer = self._learner(request.model_id)
        loss = next((name for name in LOSSES if name == request.loss_fn), None)
        if loss is None:
            raise UnknownNameError("loss", request.loss_fn[:60], LOSSES)
        for name in set(request.config) - set(SETTINGS.get(loss, ())):
            raise UnknownNameError(f"setting of the loss {loss}", name[:60], SETTINGS.get(loss, ()))
        trainer.check(request.data)
        config = LossConfig(**request.config)
        if request.forward_only:
            return trainer.forward(request.data, loss, config)
        return trainer.forward_backward(request.data, loss, config)

    def step(self, run_id: str, adam: Adam) -> Row:
        """Take an optimizer step. Raises TrainingError where the gradient is no number."""
        return self._learner(run_id).optim_step(AdamParams(**msgspec.structs.asdict(adam)))

    def writer(self, run_id: str, *, optimizer: bool) -> Callable[[Path], None]:
        """Return the function that writes the model of this moment into a folder."""
        trainer = self._learner(run_id)
        if optimizer:
            return trainer.save_state
        return trainer.save_adapter

    def restore(self, run_id: str, state: Path, *, optimizer: bool) -> None:
        """Restore a model from a saved state. Raises DataError."""
        self._learner(run_id).restore(state, optimizer=optimizer)

    def snapshot(self, run_id: str) -> dict[str, Tensor]:
        return self._learner(run_id).pairs()

    def sample(self, sampler: Sampler, requests: Sequence[SampleRequest]) -> list[bytes]:
        """Sample the answers to requests that differ in their prompts only; together they need no seed.

        Raises ConfigError for what is not known here or does not fit the model's context, DataError.
        """
        asker = self._asker(sampler)
        prompts = [request.prompt.ids() for request in requests]
        for request, prompt in zip(requests, prompts, strict=True):
            _refuse_unsupported(request)
            asker.check_tokens(prompt, "The prompt")
        first = requests[0]
        params, texts = _sampling_params(first, sampler.base, prompts)
        sampled_groups = asker.sample(prompts, first.num_samples, params)
        if texts:
            sampled_groups = [
                [_truncate_sample(sampled, texts, sampler.base.tokenizer) for sampled in group]
                for group in sampled_groups
            ]
        answers = []
        for group, request, prompt in zip(sampled_groups, requests, prompts, strict=True):
            scores = None
            if request.prompt_logprobs:
                scores = _prompt_scores(asker, request, prompt)
            answers.append(sample_answer(group, scores))
        return answers

    def _learner(self, run_id: str) -> ServedTrainer:
        if run_id not in self._trainers:
            raise DataError(f"The model {run_id} could not be created, or has been unloaded.")
        return self._trainers[run_id]

    def _asker(self, sampler: Sampler) -> ServedTrainer:
        key = sampler.base.folder, sampler.lora
        if key not in self._askers:
            self._askers[key] = self._trainer(sampler.base, sampler.lora)
        asker = self._askers[key]
        if self._mounted.get(id(asker)) is not sampler:
            pairs = sampler.pairs
            if sampler.folder is not None:
                pairs = read_pairs(sampler.folder)
            if pairs is not None:
                asker.load_pairs(pairs)
            self._mounted[id(asker)] = sampler
        return asker

    def _trainer(self, base: BaseModel, lora: LoraConfig) -> ServedTrainer:
        """Return a trainer; all those of a model share its frozen weights."""
        dtype = dtype_of(self._dtype)
        if base.folder not in self._weights:
            check_trainable(base.folder)
            tensors = read_tensors(base.folder)
            check_base(tensors, base.folder)
            self._weights[base.folder] = {name: value.to(dtype) for name, value in tensors.items()}
        config = CpuTrainerConfig(lora=lora, dtype=self._dtype, threads=self._threads)
        return ServedTrainer(base.folder, config, self._weights[base.folder])


def _refuse_unsupported(request: SampleRequest) -> None:
    lacks = {
        "topk_prompt_logprobs": request.topk_prompt_logprobs,
        "topk_sample_logprobs": request.topk_sample_logprobs,
        "prompt_alt_tokens_k": request.prompt_alt_tokens_k,
        "target_prompt_logprobs": request.target_prompt_logprobs is not None,
        "record_stability_info": request.record_stability_info,
    }
    if unsupported := [name for name, is_given in lacks.items() if is_given]:
        raise ConfigError(
            f"This service does not support {', '.join(unsupported)}.",
            hint="It supports prompt_logprobs and logprobs.",
        )


def _sampling_params(
    request: SampleRequest, base: BaseModel, prompts: Sequence[Sequence[int]]
) -> tuple[SamplingParams, tuple[str, ...]]:
    """Return the parameters, with the texts that end a sample, if they are texts."""
    params = request.sampling_params
    ids, texts = base.ends, tuple[str, ...]()
    if params.stop is not None:
        stop = [params.stop] if isinstance(params.stop, str) else params.stop
        ids = [token_id for token_id in stop if isinstance(token_id, int)]
        texts = tuple(text for text in stop if isinstance(text, str) and text)
    if texts:
        ids = [*ids, *base.ends]
    longest = max(map(len, prompts))
    rest = base.shape.max_position_embeddings - longest
    return SamplingParams(
        max_tokens=params.max_tokens or max(1, rest),
        stop=ids,
        temperature=params.temperature,
        top_k=params.top_k,
        top_p=params.top_p,
        seed=secrets.randbits(48) if params.seed is None else params.seed % (1 << 63),
    ), texts


def _truncate_sample(sampled: Sampled, texts: Sequence[str], tokenizer: HFTokenizer) -> Sampled:
    """Return the sample up to and with the token that completes one of `texts`."""

    def has_stop_text(count: int) -> bool:
        tail = tokenizer.decode(sampled.tokens[:count])
        return any(text in tail for text in texts)

    low, high = 0, len(sampled.tokens)
    if not has_stop_text(high):
        return sampled
    while high - low > 1:
        middle = (low + high) // 2
        if has_stop_text(middle):
            high = middle
        else:
            low = middle
    return Sampled(tokens=sampled.tokens[:high], logprobs=sampled.logprobs[:high], stop_reason="stop")


def _prompt_scores(asker: ServedTrainer, request: SampleRequest, prompt: Sequence[int]) -> list[float | None]:
    last = request.prompt_logprobs_last_n
    if last is not None and last >= len(prompt):
        raise DataError(f"prompt_logprobs_last_n is {last}, but the prompt has only {len(prompt)} tokens.")
    scores = asker.scores(prompt)
    if last is None:
        return scores
    return [*([None] * (len(scores) - last)), *scores[-last:]]
