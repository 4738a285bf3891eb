# SPDX-License-Identifier: Apache-2.0
"""What a training loop asks of whoever holds the weights: a trainer in this process, a Tinker service, another one.

The verbs, losses and their signs are those of the Tinker API (https://tinker-docs.thinkingmachines.ai): all losses
are sums over tokens, so a loop that wants a mean divides its weights or advantages. Sequences are token ids.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

from msgspec import Struct

LossName = Literal["cross_entropy", "importance_sampling", "ppo", "cispo", "dro", "gspo"]
CLIPS = {"ppo": (0.8, 1.2), "cispo": (0.0, 4.0), "gspo": (1 - 3e-4, 1 + 4e-4)}
"""Bounds of the ratio where a LossConfig leaves them out; those of gspo are its paper's."""
BETA = 0.05
"""Weight of dro's penalty where a LossConfig leaves it out."""
NOT_FINITE = (
    "Checkpoints are kept. Check the data, or use a lower learning rate and another output folder; ns "
    "merge_lora turns the last checkpoint into a model to start from."
)
"""What to do where a loss or gradient is no number."""


class Datum(Struct, frozen=True, kw_only=True):
    """One sequence to learn from. All lists are as long as `tokens`; entry i belongs to predicting target i.

    tokens      the input, x[:-1]
    targets     x[1:]
    weights     cross_entropy: how much each target counts; 0 on a prompt
    logprobs    all other losses: log-probabilities under which the targets were sampled
    advantages  all other losses: 0 on a prompt
    in_ratio    gspo: whether a target counts in the ratio of the sequence; None = where it was sampled
    """

    tokens: Sequence[int]
    targets: Sequence[int]
    weights: Sequence[float] | None = None
    logprobs: Sequence[float] | None = None
    advantages: Sequence[float] | None = None
    in_ratio: Sequence[float] | None = None

    def sampled(self) -> list[float]:
        """Return 1 for each target that was sampled, or has an advantage."""
        pairs = zip(self.logprobs or (), self.advantages or (), strict=True)
        return [float(logprob != 0 or advantage != 0) for logprob, advantage in pairs]


class LossConfig(Struct, frozen=True, kw_only=True):
    """Bounds of the ratio and weight of the penalty, as Tinker's `loss_fn_config` names them; None = as `CLIPS` and
    `BETA` have it. `temperature`: what logits are divided by before log-probabilities are computed; None = 1.

    ppo (https://arxiv.org/abs/1707.06347), cispo (https://arxiv.org/abs/2506.13585),
    gspo (https://arxiv.org/abs/2507.18071), dro (https://arxiv.org/abs/2405.19107)
    """

    clip_low_threshold: float | None = None
    clip_high_threshold: float | None = None
    beta: float | None = None
    temperature: float | None = None

    def bounds(self, loss: LossName) -> tuple[float, float]:
        low, high = CLIPS[loss]
        return (
            low if self.clip_low_threshold is None else self.clip_low_threshold,
            high if self.clip_high_threshold is None else self.clip_high_threshold,
        )


class AdamParams(Struct, frozen=True, kw_only=True):
    """https://arxiv.org/abs/1711.05101. `grad_clip_norm` 0 = no clipping."""

    learning_rate: float
    beta1: float = 0.9
    beta2: float = 0.95
    eps: float = 1e-8
    weight_decay: float = 0.0
    grad_clip_norm: float = 0.0


class SamplingParams(Struct, frozen=True, kw_only=True):
    """`stop`: token ids that end a sequence (and stay in it). temperature 0 = the likeliest token; top_k -1 = all.

    `stop_texts`: the token that completes one of them may end a sequence; a client that knows no texts samples on.
    `logprob_temperature`: the temperature of the log-probabilities of what is sampled.
    """

    max_tokens: int
    stop: Sequence[int] = ()
    stop_texts: Sequence[str] = ()
    temperature: float = 1.0
    top_k: int = -1
    top_p: float = 1.0
    seed: int = 0
    logprob_temperature: float = 1.0


class Sampled(Struct, frozen=True, kw_only=True):
    """`logprobs` [tokens] are those of the model at `logprob_temperature`, before top_k and top_p."""

    tokens: list[int]
    logprobs: list[float]
    stop_reason: Literal["stop", "length"]


class LossOutput(Struct, frozen=True, kw_only=True):
    """`loss` summed over all tokens; `logprobs` of the targets of each datum."""

    loss: float
    logprobs: list[list[float]]


class Saved(Struct, frozen=True, kw_only=True):
    """What a service calls a saved state: a URI that `load_state` takes, and one of the weights to sample from."""

    state_path: str
    sampler_path: str = ""


class SamplingClient(Protocol):
    """Weights that answer."""

    def sample(
        self, prompts: Sequence[Sequence[int]], num_samples: int, params: SamplingParams
    ) -> list[list[Sampled]]:
        """Sample `num_samples` for each prompt; the same seed gives the same samples."""
        ...


class TrainingClient(SamplingClient, Protocol):
    """Weights that learn. It samples with the weights of this moment."""

    def forward_backward(
        self, data: Sequence[Datum], loss: LossName, config: LossConfig | None = None
    ) -> LossOutput:
        """Add the gradient of the loss. Raises TrainingError where it is not a number."""
        ...

    def logprobs(self, data: Sequence[Datum]) -> list[list[float]]:
        """Return log-probabilities of the targets under the weights of this moment, without gradient; what stands for
        a target that does not count may be 0.0.
        """
        ...

    def optim_step(self, adam: AdamParams) -> dict[str, float]:
        """Change the weights and forget the gradient; return at least `grad_norm`."""
        ...

    def save_state(self, folder: Path) -> Saved | None:
        """Save everything needed to go on exactly: weights and optimizer. Whole or not at all.

        Returns None where the state lies in `folder`; a service that keeps it elsewhere says where.
        """
        ...

    def load_state(self, state: str) -> None:
        """Load a state, a folder or what `save_state` returned. Raises DataError for a state of other weights."""
        ...


@runtime_checkable
class ReferenceClient(Protocol):
    """Weights that remember where they began."""

    def reference_logprobs(self, data: Sequence[Datum], temperature: float = 1.0) -> list[list[float]]:
        """Return what `TrainingClient.logprobs` does under the weights before any training, of logits that are divided
        by `temperature`."""
        ...
