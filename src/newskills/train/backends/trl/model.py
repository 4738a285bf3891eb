# SPDX-License-Identifier: Apache-2.0
"""A model folder as TRL takes it: weights, tokenizer, LoRA pairs, arguments common to SFT and GRPO."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from msgspec import Struct

from newskills.base.errors import ConfigError, DataError
from newskills.train.backends.trl.processes import (
    data_parallel_size,
    on_cpu,
    process_count,
    saves_zero3,
    sharding_strategy,
)
from newskills.train.backends.trl.settings import NEEDS_GPU, cannot_quantise
from newskills.train.convert.merge import HEAD
from newskills.train.loops.folder import TrainingFolder
from newskills.train.loops.stepping import Hooks, Steps
from newskills.train.settings import LoraSettings, TrainerSettings
from newskills.train.tensors import check_base


class TrainingTask(Struct, frozen=True):
    """A training of the model in `base`."""

    base: Path
    settings: TrainerSettings
    folder: TrainingFolder
    hooks: Hooks


FSDP_NEEDS = {"FSDP_VERSION": "2", "FSDP_STATE_DICT_TYPE": "FULL_STATE_DICT"}
"""Variables and values without which FSDP writes no file that holds the model."""
FP8_CAPABILITY = (8, 9)
"""Of the first GPUs that multiply 8-bit floats."""


def check_trl_settings(settings: TrainerSettings) -> None:
    """Raise ConfigError for an option that needs a GPU where there is none, a package that is missing, or weights that
    are split over processes in a way from which no model can be saved."""
    import torch

    _check_gathered()
    if sharding_strategy() == "fsdp":
        _check_fsdp()
    if sharding_strategy() in ("fsdp", "zero3"):
        _check_divided(settings)
    if settings.trl.context_parallel > 1:
        _check_context_parallel(settings)
    if settings.trl.fp8:
        _check_fp8(settings)
    if settings.trl.offload and sharding_strategy() == "none":
        raise ConfigError(
            "++trainer.trl.offload needs weights or an optimizer that are divided.",
            hint="Set ++trainer.trl.split=fsdp or zero3 (weights and optimizer) or zero2 (optimizer) with it.",
        )
    if settings.trl.split != "none" and sharding_strategy() == "none":
        raise ConfigError(
            f"++trainer.trl.split={settings.trl.split} divides nothing: these processes were started without it.",
            hint="Run ns itself, which starts them (++trainer.trl.processes), or set it in your file for accelerate.",
        )
    if settings.trl.split.startswith("zero") and find_spec("deepspeed") is None:
        raise ConfigError(
            f"++trainer.trl.split={settings.trl.split} needs deepspeed.", hint="Run: pip install deepspeed"
        )
    if settings.trl.quantization != "none":
        if settings.weights == "full":
            raise ConfigError(
                "Quantised weights cannot be trained.",
                hint="Leave out ++trainer.weights=full: LoRA pairs can be trained on quantised weights.",
            )
        if (why := cannot_quantise()) is not None:
            raise ConfigError(
                f"++trainer.trl.quantization={settings.trl.quantization} cannot be used here: {why}.",
                hint="Leave it out: the frozen weights keep their precision.",
            )
    if settings.trl.liger and (not torch.cuda.is_available() or find_spec("liger_kernel") is None):
        raise ConfigError(
            "++trainer.trl.liger needs a GPU and the package liger-kernel.",
            hint="Run: pip install liger-kernel; without a GPU leave it out.",
        )
    sampler = settings.trl.sampler
    if sampler in NEEDS_GPU and not torch.cuda.is_available():
        raise ConfigError(
            f"++trainer.trl.sampler={sampler} needs a GPU, but torch finds none here.",
            hint="Leave it out: transformers samples on a CPU.",
        )
    if sampler.startswith("vllm") and find_spec("vllm") is None:
        raise ConfigError(f"++trainer.trl.sampler={sampler} needs vllm.", hint="Run: pip install 'trl[vllm]'")


def _check_gathered() -> None:
    """Raise ConfigError where weights are divided in a way that measuring and checkpoints here cannot gather."""
    if os.environ.get("ACCELERATE_USE_MEGATRON_LM", "").lower() == "true":
        raise ConfigError(
            "accelerate is set to split the weights over the processes (Megatron-LM): "
            "the trl trainer cannot evaluate and save such weights.",
            hint="Launch it without that setting and let ns divide the weights: ++trainer.trl.split=fsdp.",
        )
    if sharding_strategy() == "zero3" and not saves_zero3():
        raise ConfigError(
            "accelerate is set to split the weights over the processes (DeepSpeed ZeRO-3) without gathering them in "
            "checkpoints.",
            hint="Set zero3_save_16bit_model: true in your file for accelerate, or "
            "stage3_gather_16bit_weights_on_model_save in one for DeepSpeed; or leave the file out and set "
            "++trainer.trl.split=zero3.",
        )


def _check_fsdp() -> None:
    """Raise ConfigError for a way of FSDP that saves no model."""
    for name, value in FSDP_NEEDS.items():
        if (actual := os.environ.get(name, "not set")) != value:
            raise ConfigError(
                f"accelerate is set to FSDP with {name}={actual}; the trl trainer needs {value}.",
                hint=f"Set {name.lower()}: {value} in your file for accelerate, or leave the file out and set "
                "++trainer.trl.split=fsdp.",
            )


def _check_divided(settings: TrainerSettings) -> None:
    """Raise ConfigError for what cannot be done with a part of the weights."""
    if settings.trl.quantization != "none":
        raise ConfigError(
            "Weights in 4 bits cannot be divided among the processes.",
            hint=f"Leave out ++trainer.trl.quantization or ++trainer.trl.split={sharding_strategy()}.",
        )
    if settings.trl.sampler == "paged":
        raise ConfigError(
            "++trainer.trl.sampler=paged needs all weights in each process.",
            hint=f"Use transformers (the default), vllm or vllm_server with ++trainer.trl.split={sharding_strategy()}.",
        )


def _check_context_parallel(settings: TrainerSettings) -> None:
    """Raise ConfigError for what does not go with sequences that several processes share."""
    shared, trl = settings.trl.context_parallel, settings.trl
    if trl.split != "fsdp":
        raise ConfigError(
            f"++trainer.trl.context_parallel={shared} needs weights that are divided.",
            hint="Set ++trainer.trl.split=fsdp with it.",
        )
    wrong = {
        "++trainer.trl.packing": trl.packing,
        f"++trainer.trl.attention={trl.attention}": trl.attention not in (None, "sdpa"),
    }
    if refused := [name for name, is_set in wrong.items() if is_set]:
        raise ConfigError(
            f"{refused[0]} does not go with ++trainer.trl.context_parallel={shared}.",
            hint="Leave one of them out.",
        )
    if (here := int(os.environ.get("PARALLELISM_CONFIG_CP_SIZE", "1"))) != shared or process_count() % shared:
        raise ConfigError(
            f"++trainer.trl.context_parallel={shared}, but {process_count()} processes were started of which {here} "
            "share a sequence.",
            hint="Run ns itself, which starts them, with ++trainer.trl.processes that it divides.",
        )


def _check_fp8(settings: TrainerSettings) -> None:
    """Raise ConfigError where 8-bit floats cannot be multiplied."""
    import torch

    if settings.weights == "lora":
        raise ConfigError("++trainer.trl.fp8 trains all weights.", hint="Set ++trainer.weights=full with it.")
    if not torch.cuda.is_available() or torch.cuda.get_device_capability() < FP8_CAPABILITY:
        raise ConfigError(
            "++trainer.trl.fp8 needs a GPU that multiplies 8-bit floats (Ada, Hopper or later).",
            hint="Leave it out: products are in bfloat16.",
        )
    if find_spec("torchao") is None:
        raise ConfigError("++trainer.trl.fp8 needs torchao.", hint="Run: pip install torchao")


def precision_of(settings: TrainerSettings) -> Any:
    """Return the torch.dtype in which products are computed: `auto` takes bfloat16 where the hardware has it."""
    import torch

    from newskills.train.backends.cpu.trainer import dtype_of

    if settings.dtype == "auto" and torch.cuda.is_available():
        if torch.cuda.is_bf16_supported():
            return torch.bfloat16
        return torch.float32
    return dtype_of(settings.dtype)


def load_model(base: Path, settings: TrainerSettings, kind: Any = None, *, early: bool = False) -> Any:
    """Load the causal model of `base`: frozen weights on a GPU in the type that multiplies, all others in float32.

    `kind`: another class of transformers, whose model has one label and a new head. `early`: it computes before FSDP
    has divided it, so that every process reads it.
    A CPU samples many times slower with weights in bfloat16; autocast multiplies in it all the same.

    Raises DataError for weights of another model than config.json says, ConfigError for an attention that is not here.
    """
    import torch
    from transformers import AutoModelForCausalLM

    frozen = settings.weights == "lora" and torch.cuda.is_available()
    if not early and not reads_weights():
        return _room_for(base, precision_of(settings) if frozen else torch.float32, settings, kind)
    try:
        load: Any = (kind or AutoModelForCausalLM).from_pretrained
        model, report = load(
            base,
            dtype=precision_of(settings) if frozen else torch.float32,
            attn_implementation=settings.trl.attention,
            local_files_only=True,
            ignore_mismatched_sizes=True,
            output_loading_info=True,
            **({"num_labels": 1} if kind else {}),
            **quantization_arguments(settings),
        )
    except ImportError as error:
        raise ConfigError(
            f"++trainer.trl.attention={settings.trl.attention} cannot be used here: {str(error).splitlines()[0]}",
            hint="Leave it out: transformers chooses one that works here.",
        ) from error
    except (OSError, ValueError, KeyError) as error:
        raise DataError(f"{base} cannot be loaded as a causal language model: {error}.") from error
    # transformers would fill both with random numbers and go on.
    missing = {name for name in report["missing_keys"] if kind is None or name != HEAD}
    if wrong := sorted({*missing, *(name for name, *_ in report["mismatched_keys"])}):
        raise DataError(
            f"The weights in {base} belong to another model than its config.json: {wrong[0]} (of {len(wrong)} "
            "tensors) is missing or has another size.",
            hint="Copy config.json and *.safetensors from the same checkpoint.",
        )
    check_base(dict(model.named_parameters()), base)
    if settings.trl.quantization != "none":
        from peft import prepare_model_for_kbit_training

        model = prepare_model_for_kbit_training(
            model, use_gradient_checkpointing=settings.trl.gradient_checkpointing
        )
    return model


def reads_weights() -> bool:
    """Return whether this process reads the weights of the model: with FSDP only the first one of all does."""
    if sharding_strategy() != "fsdp" or os.environ.get("FSDP_CPU_RAM_EFFICIENT_LOADING", "").lower() != "true":
        return True
    return os.environ.get("RANK", "0") == "0"


def _room_for(base: Path, dtype: Any, settings: TrainerSettings, kind: Any) -> Any:
    """Make the model of `base` with room for weights that nobody has written into: the operating system gives memory
    only to what is written. FSDP fills in this process's part from the first process.

    transformers (5.24) would read all weights in each process.
    """
    import torch
    from accelerate import init_empty_weights
    from transformers import AutoConfig, AutoModelForCausalLM, GenerationConfig

    config = AutoConfig.from_pretrained(base, local_files_only=True, **({"num_labels": 1} if kind else {}))
    with init_empty_weights(include_buffers=False):
        model = (kind or AutoModelForCausalLM).from_config(
            config, dtype=dtype, attn_implementation=settings.trl.attention
        )
    for module in model.modules():
        for name, value in module.named_parameters(recurse=False):
            room = torch.empty(value.shape, dtype=value.dtype)
            module._parameters[name] = torch.nn.Parameter(room, requires_grad=value.requires_grad)
    model.tie_weights()
    if (base / "generation_config.json").exists():
        model.generation_config = GenerationConfig.from_pretrained(base, local_files_only=True)
    return model.eval()


def quantization_arguments(settings: TrainerSettings) -> dict[str, Any]:
    """Return the arguments of `from_pretrained` for weights in 4 bits: normal floats, products in bfloat16."""
    if settings.trl.quantization == "none":
        return {}
    from transformers import BitsAndBytesConfig

    make: Any = BitsAndBytesConfig
    how = make(
        load_in_4bit=True,
        bnb_4bit_quant_type=settings.trl.quantization,
        bnb_4bit_compute_dtype=precision_of(settings),
    )
    return {"quantization_config": how}


def load_tokenizer(base: Path, stops: list[int] | None = None) -> Any:
    """Load the tokenizer for its special tokens and its decoder only: texts reach TRL as token ids.

    Raises ConfigError where it names neither a pad nor an end token.
    """
    from transformers import PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast.from_pretrained(base)
    if tokenizer.eos_token_id is None and stops:
        tokenizer.eos_token = tokenizer.convert_ids_to_tokens(stops[0])
    if tokenizer.pad_token_id is None:
        if tokenizer.eos_token_id is None:
            raise ConfigError(f"The tokenizer of {base} has neither a pad token nor an end token.")
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def context_of(model: Any) -> int | None:
    """Return how many positions the model has."""
    window: int | None = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    return window


def check_lengths(lengths: Sequence[int], model: Any, what: str) -> None:
    """Raise DataError for sequences of more tokens than the model's context; `what` they are, in the plural."""
    context = context_of(model)
    if context and max(lengths) > context:
        longer = sum(length > context for length in lengths)
        raise DataError(
            f"{longer} of {len(lengths)} {what} are longer than the model's context of {context} tokens; the longest "
            f"has {max(lengths)}.",
            hint="Set ++too_long=drop.",
        )


def adapter_config(settings: TrainerSettings, head: str | None = None) -> Any:
    """Return PEFT's settings, None where all weights are trained; `head` is a module that is trained whole, beside the
    pairs."""
    if settings.weights != "lora":
        return None
    from peft import LoraConfig

    lora = settings.lora
    return LoraConfig(
        r=lora.rank,
        lora_alpha=lora.alpha,
        lora_dropout=lora.dropout,
        target_modules=list(lora.targets),
        task_type="SEQ_CLS" if head else "CAUSAL_LM",
        modules_to_save=[head] if head else None,
    )


def seed_pairs(model: Any, lora: LoraSettings) -> None:
    """Draw the first values of the pairs from their own seed, whatever has drawn numbers before; in float32, which TRL
    leaves for weights in 4 bits: a run that resumes goes on in float32.
    """
    import torch
    from peft.tuners.lora import LoraLayer

    for parameter in model.parameters():
        if parameter.requires_grad:
            parameter.data = parameter.data.float()

    with torch.random.fork_rng():
        torch.manual_seed(lora.seed)
        for module in model.modules():
            if isinstance(module, LoraLayer):
                module.reset_lora_parameters("default", init_lora_weights=True)


def training_arguments(
    config: Steps, settings: TrainerSettings, sequences: int, *, output: Path, updates: int
) -> dict[str, Any]:
    """Return the arguments of TrainingArguments for `updates` updates of the weights with `sequences` each.

    Raises ConfigError where `sequences` cannot be shared out evenly.
    """
    import torch

    share = data_parallel_size()
    micro = settings.trl.micro_batch_size or sequences // share
    if micro == 0 or sequences % (micro * share):
        raise ConfigError(
            f"{sequences} sequences per step cannot be split evenly: {share} processes × "
            f"++trainer.trl.micro_batch_size={micro} does not divide them.",
        )
    half = precision_of(settings) == torch.bfloat16
    return {
        "output_dir": str(output),
        "per_device_train_batch_size": micro,
        "gradient_accumulation_steps": sequences // (micro * share),
        "max_steps": updates,
        "learning_rate": config.learning_rate,
        "weight_decay": config.weight_decay,
        "max_grad_norm": config.max_grad_norm,
        "seed": config.seed,
        "bf16": half and not settings.trl.fp8,
        "gradient_checkpointing": settings.trl.gradient_checkpointing,
        "use_cpu": on_cpu(),
        "dataloader_pin_memory": torch.cuda.is_available(),
        "logging_nan_inf_filter": False,
        "logging_strategy": "no",
        "save_strategy": "no",
        "report_to": [],
        "disable_tqdm": True,
        **({"use_liger_kernel": True} if settings.trl.liger else {}),
    }


def router_arguments(settings: TrainerSettings, model: Any) -> dict[str, Any]:
    """Return the argument of TRL's configurations for the loss that balances experts. Raises ConfigError for a model
    without experts."""
    weight = settings.trl.router_loss
    if weight is None:
        return {}
    if not hasattr(model.config.get_text_config(), "output_router_logits"):
        raise ConfigError(
            f"++trainer.trl.router_loss={weight}, but {model.config.model_type} has no experts that a router chooses.",
            hint="Leave it out.",
        )
    return {"router_aux_loss_coef": weight}
