# SPDX-License-Identifier: Apache-2.0
"""What only the trl trainer can be told."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Annotated, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

TrlLoss = Literal[
    "token_mean", "grpo", "dr_grpo", "dapo", "bnpo", "gspo", "cispo", "sapo", "luspo", "vespo", "masked"
]
"""Losses of TRL's GRPO by the names of their papers; `newskills.train.backends.trl.losses` says what each one is."""


class TrlSettings(Struct, frozen=True, kw_only=True):
    """`++trainer.trl.*`."""

    micro_batch_size: Annotated[
        int, Meta(ge=0, description="sequences per forward pass on a device; 0 = all sequences of a step")
    ] = 0
    gradient_checkpointing: Annotated[
        bool, Meta(description="recompute activations to save memory (gradient checkpointing)")
    ] = False
    packing: Annotated[
        bool, Meta(description="(sft) pack several examples into one sequence, without attention between them")
    ] = False
    packed_length: Annotated[int, Meta(ge=2, description="(sft) length of a packed sequence in tokens")] = 1024
    sampler: Annotated[
        Literal["auto", "transformers", "paged", "vllm", "vllm_server"],
        Meta(
            description="(grpo) sampler: generate of transformers, its paged continuous batching, vLLM "
            "beside the trainer on the same GPUs, or a vLLM server (trl vllm-serve); auto = vllm on a GPU where it is "
            "installed, else transformers"
        ),
    ] = "auto"
    staleness: Annotated[
        int,
        Meta(
            ge=0,
            description="(grpo) sample on a vLLM server while the model learns, with weights at most so many updates "
            "old (TRL's AsyncGRPOTrainer); 0 = sample and learn in turns",
        ),
    ] = 0
    algorithm: Annotated[
        Literal["grpo", "rloo"],
        Meta(
            description="(grpo) baseline of a sample: the mean of its group (grpo), or of the others of its group, "
            "with one probability ratio per sample (rloo)"
        ),
    ] = "grpo"
    loss: Annotated[
        TrlLoss,
        Meta(
            description="(grpo) loss by name; token_mean: the mean over all tokens of a step, as on the other backends"
        ),
    ] = "token_mean"
    entropy_bonus: Annotated[
        float, Meta(ge=0, description="(grpo) weight of the mean entropy of a token, which is rewarded")
    ] = 0.0
    router_loss: Annotated[
        float | None,
        Meta(
            description="(mixtures of experts) weight of the loss that balances experts; none = as config.json says"
        ),
    ] = None
    liger: Annotated[bool, Meta(description="Triton kernels of liger-kernel for the layers (GPU)")] = False
    processes: Annotated[
        int,
        Meta(ge=1, description="processes on each node, one per GPU; ns starts them with accelerate launch"),
    ] = 1
    split: Annotated[
        Literal["none", "zero1", "zero2", "zero3", "fsdp"],
        Meta(
            description="divide among the processes: optimizer (zero1), gradients, too (zero2), weights, too (zero3, "
            "fsdp); zero* need deepspeed"
        ),
    ] = "none"
    context_parallel: Annotated[
        int,
        Meta(ge=1, description="(sft, fsdp) processes that share each sequence, for long ones"),
    ] = 1
    fp8: Annotated[
        bool,
        Meta(description="multiply in 8-bit floats by torchao (all weights; GPUs from Ada and Hopper on)"),
    ] = False
    offload: Annotated[
        bool,
        Meta(
            description="keep in the machine's memory what does not compute: weights and optimizer (fsdp, zero3), "
            "optimizer (zero1, zero2)"
        ),
    ] = False
    vllm_sleep: Annotated[bool, Meta(description="vllm frees its GPU memory while the model learns")] = False
    vllm_memory: Annotated[float, Meta(gt=0, le=1, description="share of GPU memory for vllm")] = 0.3
    vllm_tensor_parallel: Annotated[int, Meta(ge=1, description="GPUs per vllm (tensor parallel)")] = 1
    vllm_url: Annotated[str, Meta(description="address of vllm_server")] = "http://127.0.0.1:8000"
    attention: Annotated[
        str | None,
        Meta(
            description="attention implementation of transformers: sdpa, eager, flash_attention_2; none = "
            "chosen by transformers"
        ),
    ] = None

    quantization: Annotated[
        Literal["none", "nf4"],
        Meta(description="frozen weights in 4 bits (https://arxiv.org/abs/2305.14314); needs bitsandbytes"),
    ] = "none"

    def changed_keys(self) -> list[str]:
        """Return the keys that differ from their defaults."""
        usual = TrlSettings()
        return [
            f"trainer.trl.{name}" for name in self.__struct_fields__ if getattr(self, name) != getattr(usual, name)
        ]


def chosen_sampler(trl: TrlSettings, *, gpu: bool) -> TrlSettings:
    """Return the settings with a sampler in place of `auto`."""
    if trl.sampler != "auto":
        return trl
    if trl.staleness:
        return replace(trl, sampler="vllm_server")
    can_vllm = gpu and find_spec("vllm") is not None
    return replace(trl, sampler="vllm" if can_vllm else "transformers")


NEEDS_GPU = ("vllm", "vllm_server")
SERVE = (
    "VLLM_SERVER_DEV_MODE=1 VLLM_ALLOW_RUNTIME_LORA_UPDATING=1 vllm serve MODEL --logprobs-mode processed_logprobs "
    "--enable-lora --max-lora-rank 16 --max-loras 6"
)
"""How the server of `staleness` starts for LoRA pairs."""


def cannot_quantise() -> str | None:
    """Return why frozen weights cannot be quantised on this machine; None: they can."""
    if find_spec("bitsandbytes") is None:
        return "bitsandbytes is not installed (pip install bitsandbytes)"
    return None
