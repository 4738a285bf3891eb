# SPDX-License-Identifier: Apache-2.0
"""The verbs of `newskills.train.verbs` on a small model in this process."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import torch
from msgspec import Struct
from torch import Tensor

from newskills.base.errors import ConfigError, DataError, TrainingError
from newskills.base.store import atomic_folder, write_json
from newskills.models.tokenizer import HFTokenizer
from newskills.train.backends.cpu.adamw import MOMENTS, AdamW
from newskills.train.backends.cpu.layout import Layout, common_length
from newskills.train.backends.cpu.llama import Llama, LoraConfig
from newskills.train.backends.cpu.losses import loss_of, target_logprobs
from newskills.train.backends.cpu.sampler import Decode, sample_continuations
from newskills.train.backends.cpu.weights import Shape, check_tensors, read_shape, read_tensors
from newskills.train.loops.signal import GradientMoments, moments_of
from newskills.train.settings import PROJECTIONS
from newskills.train.tensors import check_base, check_finite, save_tensors
from newskills.train.verbs import (
    NOT_FINITE,
    AdamParams,
    Datum,
    LossConfig,
    LossName,
    LossOutput,
    Sampled,
    SamplingParams,
)

MICRO_TOKENS = 2048
"""Tokens of one forward and backward pass; more are done one part after the other."""

FIELDS: dict[LossName, tuple[str, ...]] = {
    "cross_entropy": ("weights",),
    "importance_sampling": ("logprobs", "advantages"),
    "ppo": ("logprobs", "advantages"),
    "cispo": ("logprobs", "advantages"),
    "dro": ("logprobs", "advantages"),
    "gspo": ("logprobs", "advantages", "in_ratio"),
}
ADAPTER, OPTIMIZER, STATE = "adapter_model.safetensors", "optimizer.safetensors", "state.json"


class CpuTrainerConfig(Struct, frozen=True, kw_only=True):
    """dtype of the frozen weights: auto takes bfloat16 where this CPU multiplies it in hardware. threads 0 = all."""

    lora: LoraConfig = LoraConfig()
    dtype: str = "auto"
    threads: int = 0


class _State(Struct, frozen=True):
    """What a saved state says of itself."""

    base: str
    lora: LoraConfig
    dtype: str
    steps: int


class CpuTrainer:
    """LoRA on a Llama from a Hugging Face folder. One at a time in a process: torch's thread count is global.

    `all_logprobs`: those of targets that do not count are computed too, instead of being given as 0.0.
    """

    all_logprobs = False

    def __init__(self, model: Path, config: CpuTrainerConfig, weights: Mapping[str, Tensor] | None = None) -> None:
        """Load `model`, of which `weights` may be in memory already. Raises DataError, ConfigError."""
        torch.set_num_threads(config.threads or torch.get_num_threads())
        self.base, self.config = model, config
        self.dtype = dtype_of(config.dtype)
        shape, tensors = self._read(model, weights)
        check_tensors(shape, tensors, model)
        if weights is None:
            check_base(tensors, model)
        self.model = Llama(shape, tensors, config.lora, self.dtype)
        self.named = self._trainable_tensors(tensors)
        self.optimizer = AdamW(list(self.named.values()))
        self.steps = 0
        self._kept: tuple[str, Mapping[str, Tensor]] | None = None

    def _read(self, model: Path, weights: Mapping[str, Tensor] | None) -> tuple[Shape, Mapping[str, Tensor]]:
        return read_shape(model), weights or read_tensors(model)

    def _trainable_tensors(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return the tensors that learn, by the names that PEFT gives them; `tensors` are those of the model."""
        return self.model.parameters()

    def forward_backward(
        self, data: Sequence[Datum], loss: LossName, config: LossConfig | None = None
    ) -> LossOutput:
        """Add the gradient of the loss. Raises TrainingError for a loss that is not finite."""
        total, logprobs = 0.0, []
        for part in self._parts(data):
            value, part_logprobs = self._pass(part, loss, config or LossConfig())
            if not torch.isfinite(value):
                self.optimizer.zero_grad()
                raise TrainingError(
                    f"The loss of step {self.steps + 1} is {value.item()}; training stopped.",
                    hint=NOT_FINITE,
                )
            value.backward()
            total += value.item()
            logprobs += part_logprobs
        return LossOutput(loss=total, logprobs=logprobs)

    def forward_backward_parts(
        self, parts: Sequence[Sequence[Datum]], loss: LossName, config: LossConfig | None = None
    ) -> tuple[LossOutput, GradientMoments]:
        """Add the gradient of the loss, part by part. Raises TrainingError for a loss that is not finite."""
        parameters = list(self.named.values())
        halves = [[torch.zeros_like(value) for value in parameters] for _ in range(2)]
        total, squares, logprobs = 0.0, 0.0, []
        for number, part in enumerate(parts):
            output = self.forward_backward(part, loss, config)
            gradients = [torch.zeros_like(value) if value.grad is None else value.grad for value in parameters]
            self.optimizer.zero_grad()
            torch._foreach_add_(halves[number % 2], gradients)
            squares += _inner_product(gradients, gradients)
            total += output.loss
            logprobs += output.logprobs
        lengths = [_inner_product(half, half) for half in halves]
        across = _inner_product(*halves)
        torch._foreach_add_(halves[0], halves[1])
        for value, gradient in zip(parameters, halves[0], strict=True):
            value.grad = gradient
        moments = moments_of(squares, (lengths[0], lengths[1]), across)
        return LossOutput(loss=total, logprobs=logprobs), moments

    def optim_step(self, adam: AdamParams) -> dict[str, float]:
        """Take a step of AdamW on clipped gradients; return their norm before.

        Raises TrainingError where it is not finite.
        """
        limit = adam.grad_clip_norm or torch.inf
        norm = torch.nn.utils.clip_grad_norm_(list(self.named.values()), limit)
        if not torch.isfinite(norm):
            self.optimizer.zero_grad()
            raise TrainingError(
                f"The gradient of step {self.steps + 1} is {norm.item()}; training stopped.",
                hint=NOT_FINITE,
            )
        self.optimizer.step(adam)
        self.optimizer.zero_grad()
        self.steps += 1
        check_finite(self.named, f"Step {self.steps} has made the weights unusable; training stopped")
        return {"grad_norm": norm.item()}

    def sample(
        self, prompts: Sequence[Sequence[int]], num_samples: int, params: SamplingParams
    ) -> list[list[Sampled]]:
        """Sample `num_samples` for each prompt.

        Raises ConfigError where a prompt and its answer exceed the model's context.
        """
        longest = max(map(len, prompts)) + params.max_tokens
        if longest > (context := self.model.shape.max_position_embeddings):
            raise ConfigError(
                f"A prompt and {params.max_tokens} new tokens need {longest} tokens; the model's context is "
                f"{context}.",
                hint="Lower max_tokens, or leave out long prompts.",
            )
        return sample_continuations(
            self.model, prompts, num_samples, params, self._decode if params.stop_texts else None
        )

    @cached_property
    def _decode(self) -> Decode:
        """Raises ConfigError for a model without a tokenizer."""
        return HFTokenizer(str(self.base)).decode

    def logprobs(self, data: Sequence[Datum], temperature: float = 1.0) -> list[list[float]]:
        """Return those of the targets that count, of logits divided by `temperature`; the others are given as 0.0."""
        with torch.inference_mode():
            logprobs: list[list[float]] = []
            for part in self._parts(data):
                loss: LossName = "importance_sampling" if part[0].weights is None else "cross_entropy"
                logprobs += self._pass(part, loss, LossConfig(temperature=temperature))[1]
        return logprobs

    def reference_logprobs(self, data: Sequence[Datum], temperature: float = 1.0) -> list[list[float]]:
        """Return those of the base model, without the pairs."""
        with self.model.without_pairs():
            return self.logprobs(data, temperature)

    def go_back(self, state: str) -> None:
        """Load a saved state; empty: the model before any training, whose pairs add nothing, without moments.

        Raises DataError as `load_state`.
        """
        if state:
            self.load_state(state)
            return
        with torch.no_grad():
            for name, value in self.named.items():
                if ".lora_B" in name:
                    value.zero_()
        self.optimizer.state.clear()
        self.steps = 0

    def kept_logprobs(self, data: Sequence[Datum], state: str, temperature: float = 1.0) -> list[list[float]]:
        """Return log-probabilities under the pairs of a saved state; empty: those of the base model.

        Raises DataError for a folder that holds no state.
        """
        if not state:
            return self.reference_logprobs(data, temperature)
        if self._kept is None or self._kept[0] != state:
            self._kept = state, _load_adapter(Path(state))
        own = {name: value.detach().clone() for name, value in self.named.items()}
        try:
            self._put(self._kept[1])
            return self.logprobs(data, temperature)
        finally:
            self._put(own)

    def _put(self, pairs: Mapping[str, Tensor]) -> None:
        with torch.no_grad():
            for name, value in self.named.items():
                value.copy_(pairs[name])

    def save_state(self, folder: Path) -> None:
        moments = {
            f"{name}.{moment}": self.optimizer.state[value][moment]
            for name, value in self.named.items()
            for moment in MOMENTS
            if value in self.optimizer.state
        }
        with atomic_folder(folder) as new:
            self._write_adapter(new)
            save_tensors(moments, new / OPTIMIZER)
            state = _State(str(self.base), self.config.lora, str(self.dtype), self.steps)
            write_json(new / STATE, state)

    def save_adapter(self, folder: Path) -> None:
        """Write the LoRA pairs alone, in PEFT's form: what `ns merge_lora` and any server takes."""
        with atomic_folder(folder) as new:
            self._write_adapter(new)

    def load_state(self, state: str) -> None:
        """Load a saved state. Raises DataError for a folder that holds no state, or that of another run."""
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        folder = Path(state)
        try:
            saved = msgspec.json.decode((folder / STATE).read_bytes(), type=_State)
            adapter, moments = load_file(folder / ADAPTER), load_file(folder / OPTIMIZER)
        except (OSError, msgspec.DecodeError, SafetensorError) as error:
            raise DataError(f"{folder} is not a checkpoint of the cpu trainer: {error}.") from error
        mine = _State(str(self.base), self.config.lora, str(self.dtype), saved.steps)
        if saved != mine:
            raise DataError(
                f"{folder} belongs to another run: it is for {saved.base} with {saved.lora}, {saved.dtype}; "
                f"this run is for {mine.base} with {mine.lora}, {mine.dtype}.",
                hint="Use the same model and LoRA settings, or another output folder.",
            )
        with torch.no_grad():
            for name, value in self.named.items():
                value.copy_(adapter[name])
                if saved.steps:
                    kept = [moments[f"{name}.{moment}"] for moment in MOMENTS]
                    self.optimizer.restore(value, saved.steps, kept)
        self.steps = saved.steps

    def _write_adapter(self, folder: Path) -> None:
        save_tensors({name: value.detach() for name, value in self.named.items()}, folder / ADAPTER)
        lora = self.config.lora
        write_json(
            folder / "adapter_config.json",
            {
                "peft_type": "LORA",
                "task_type": "CAUSAL_LM",
                "base_model_name_or_path": str(self.base),
                "r": lora.rank,
                "lora_alpha": lora.alpha,
                "lora_dropout": 0.0,
                "bias": "none",
                "fan_in_fan_out": False,
                "target_modules": sorted(PROJECTIONS),
            },
        )

    def _parts(self, data: Sequence[Datum]) -> Iterator[list[Datum]]:
        part: list[Datum] = []
        size = 0
        context = self.model.shape.max_position_embeddings
        for datum in data:
            if len(datum.tokens) > context:
                raise DataError(
                    f"A sequence of {len(datum.tokens) + 1} tokens does not fit into the model's context of "
                    f"{context}.",
                    hint="Leave out such rows: ns prepare_training_data "
                    "++filters.remove_len_outlier_solutions=true.",
                )
            more = len(datum.tokens) - (common_length(part[-1].tokens, datum.tokens) if part else 0)
            if part and size + more > MICRO_TOKENS:
                yield part
                part, size, more = [], 0, len(datum.tokens)
            part.append(datum)
            size += more
        if part:
            yield part

    def _pass(self, part: Sequence[Datum], loss: LossName, config: LossConfig) -> tuple[Tensor, list[list[float]]]:
        """Compute the loss of some data, and the log-probabilities of their targets."""
        lengths = [len(datum.tokens) for datum in part]
        joined = {
            field: torch.tensor([value for datum in part for value in _datum_field(datum, field, loss)])
            for field in FIELDS[loss]
        }
        if loss == "gspo":
            joined["sequence"] = torch.arange(len(part)).repeat_interleave(torch.tensor(lengths))
        counts = torch.stack([joined[field] != 0 for field in FIELDS[loss]]).any(0).nonzero().squeeze(1)
        if not len(counts) and not self.all_logprobs:
            raise DataError(f"The loss {loss} has no tokens to train on: every token has weight zero.")
        targets = torch.tensor([token for datum in part for token in datum.targets])
        layout = Layout([datum.tokens for datum in part])
        hidden = self.model(layout)
        temperature = config.temperature or 1.0
        logprobs = target_logprobs(hidden[layout.where[counts]], self.model.head, targets[counts], temperature)
        value = loss_of(loss, logprobs, {field: joined[field][counts] for field in joined}, config)
        every = torch.zeros(len(targets)).index_put((counts,), logprobs.detach())
        if self.all_logprobs:
            others = torch.ones(len(targets), dtype=torch.bool).index_fill(0, counts, False).nonzero().squeeze(1)
            rest = hidden.detach()[layout.where[others]]
            every[others] = target_logprobs(rest, self.model.head, targets[others], temperature)
        return value, [piece.tolist() for piece in every.split(lengths)]


def _inner_product(some: Sequence[Tensor], others: Sequence[Tensor]) -> float:
    """Return the inner product of two gradients."""
    pairs = zip(some, others, strict=True)
    return math.fsum(torch.dot(left.flatten(), right.flatten()).item() for left, right in pairs)


def _load_adapter(folder: Path) -> Mapping[str, Tensor]:
    """Return the pairs of a saved state. Raises DataError where there are none."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file(folder / ADAPTER)
    except (OSError, SafetensorError) as error:
        raise DataError(f"{folder} is not a checkpoint of the cpu trainer: {error}.") from error


def _datum_field(datum: Datum, field: str, loss: str) -> Sequence[float]:
    values: Any = getattr(datum, field)
    if field == "in_ratio" and values is None:
        values = datum.sampled()
    if values is None or len(values) != len(datum.tokens) or len(datum.targets) != len(datum.tokens):
        raise DataError(f"The loss {loss} needs as many {field} and targets as tokens in every datum.")
    field_values: Sequence[float] = values
    return field_values


def dtype_of(name: str) -> torch.dtype:
    """Return the dtype that `auto`, `bfloat16`, `float32` stand for on this machine. Raises ConfigError."""
    if name != "auto":
        kinds = {"float32": torch.float32, "bfloat16": torch.bfloat16}
        if name not in kinds:
            raise ConfigError(f"The cpu trainer has no dtype {name}.", hint=f"Use auto, {', '.join(kinds)}.")
        return kinds[name]
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return torch.float32
    if "avx512_bf16" in flags or "amx_bf16" in flags:
        return torch.bfloat16
    return torch.float32
