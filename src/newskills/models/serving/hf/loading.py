# SPDX-License-Identifier: Apache-2.0
"""A model of transformers with its tokenizer, adapter and device, or one sentence about what is wrong with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from msgspec import Struct

from newskills.base.errors import ConfigError, DataError
from newskills.models.serving.hf.options import ServerOptions, check_adapter, folder_of
from newskills_sandbox.memory import memory_left

PREFIX = 5
"""Tokens in front of a token that are decoded with it: alone, some tokenizers take off its blank."""


class LoadedModel(Struct, kw_only=True):
    """The model with what speaks to it.

    processor   of a vision-language model; None: it takes no images
    context     tokens of prompt and reply together, at most
    ends        ids of the tokens that end a reply
    """

    model: Any
    tokenizer: Any
    processor: Any = None
    context: int
    vocabulary: int
    ends: frozenset[int]

    def decode(self, ids: Sequence[int], *, skip_special: bool = False) -> str:
        text: str = self.tokenizer.decode(
            list(ids), skip_special_tokens=skip_special, clean_up_tokenization_spaces=False
        )
        return text

    def pieces(self, ids: Sequence[int], first: int = 0) -> list[str]:
        """Return the text of each token from the place `first` on, with the blank before it."""
        texts = []
        for place in range(first, len(ids)):
            start = max(0, place - PREFIX)
            before = self.decode(ids[start:place])
            texts.append(self.decode(ids[start : place + 1])[len(before) :])
        return texts


def load_served_model(options: ServerOptions) -> LoadedModel:
    """Load the model. Raises ConfigError for what does not fit the machine or the options, DataError for files."""
    import transformers

    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    where: dict[str, Any] = {
        "revision": options.revision or "main",
        "trust_remote_code": options.trust_remote_code,
    }
    config = _load_or_refuse(options, "no readable configuration", transformers.AutoConfig.from_pretrained, where)
    tokenizer = _load_or_refuse(
        options, "no tokenizer that can be loaded", transformers.AutoTokenizer.from_pretrained, where
    )
    sees = type(config) in transformers.AutoModelForImageTextToText._model_mapping
    writes = sees or type(config) in transformers.AutoModelForCausalLM._model_mapping
    if not writes and not options.trust_remote_code:
        raise ConfigError(
            f"{options.model} is no causal or vision-language model for transformers {transformers.__version__} "
            f"(model_type {config.model_type}).",
            hint="A model with code of its own needs --server_args=--trust-remote-code.",
        )
    kind = transformers.AutoModelForImageTextToText if sees else transformers.AutoModelForCausalLM
    model, report = _load_or_refuse(
        options,
        "no weights that can be loaded",
        kind.from_pretrained,
        {
            **where,
            **_placement_arguments(options, config),
            "output_loading_info": True,
            "ignore_mismatched_sizes": True,
        },
    )
    if wrong := sorted({*report["missing_keys"], *(name for name, *_ in report["mismatched_keys"])}):
        raise DataError(
            f"The weights of {options.model} belong to another model than its config.json: {wrong[0]} (of {len(wrong)} "
            "tensors) is missing or has another size.",
            hint="Copy config.json and *.safetensors from the same checkpoint.",
        )
    if options.adapter:
        model = _with_adapter(model, options)
    processor = None
    if sees:
        processor = _load_or_refuse(
            options, "no image processor", transformers.AutoProcessor.from_pretrained, where
        )
    text = config.get_text_config()
    return LoadedModel(
        model=model.eval(),
        tokenizer=tokenizer,
        processor=processor,
        context=options.context or getattr(text, "max_position_embeddings", None) or 1 << 20,
        vocabulary=model.get_input_embeddings().weight.shape[0],
        ends=_end_tokens(model, tokenizer),
    )


def _load_or_refuse(options: ServerOptions, what: str, load_part: Any, settings: dict[str, Any]) -> Any:
    """Load a part of the model. Raises DataError with the first sentence of whatever goes wrong."""
    try:
        return load_part(options.model, **settings)
    except (ConfigError, torch.OutOfMemoryError):
        raise
    except Exception as error:  # the libraries raise a dozen kinds for files that are not there or are broken
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise DataError(f"{options.model} has {what}: {lines[0] if lines else type(error).__name__}") from error


def _placement_arguments(options: ServerOptions, config: Any) -> dict[str, Any]:
    """Return the arguments of `from_pretrained` for dtype, bits and devices. Raises ConfigError for GPUs
    that are not there."""
    on_gpu = options.gpus > 0
    if on_gpu and not torch.cuda.is_available():
        raise ConfigError(
            f"--server_gpus={options.gpus}, but PyTorch {torch.__version__} sees no GPU here.",
            hint="Install a build of PyTorch for your GPU, or use --server_gpus=0.",
        )
    if on_gpu and torch.cuda.device_count() < options.gpus:
        raise ConfigError(
            f"--server_gpus={options.gpus}, but this machine has {torch.cuda.device_count()} for it."
        )
    dtype: Any = options.dtype if options.dtype == "auto" else getattr(torch, options.dtype)
    if options.dtype == "auto" and not on_gpu:
        dtype = torch.float32
    if not on_gpu:
        _check_memory(options, config, dtype)
    settings: dict[str, Any] = {"dtype": dtype}
    if options.quantization != "none":
        from transformers import BitsAndBytesConfig

        four = options.quantization == "4bit"
        make: Any = BitsAndBytesConfig
        settings["quantization_config"] = make(
            load_in_4bit=four,
            load_in_8bit=not four,
            bnb_4bit_quant_type="nf4",
            bnb_4bit_compute_dtype=torch.bfloat16,
        )
    if options.gpus == 1:
        settings["device_map"] = {"": 0}
    elif options.gpus > 1:
        settings |= {
            "device_map": "auto",
            "max_memory": {n: torch.cuda.mem_get_info(n)[0] for n in range(options.gpus)},
        }
    return settings


def _check_memory(options: ServerOptions, config: Any, dtype: Any) -> None:
    """Raise ConfigError where the weights of a folder are larger than what is free: the system would kill us."""
    folder = folder_of(options.model)
    if folder is None:
        stored_bytes = 0
    else:
        stored_bytes = sum(file.stat().st_size for file in folder.glob("*.safetensors"))
    stored_dtype = config.dtype or torch.float32
    needed = stored_bytes * dtype.itemsize // stored_dtype.itemsize
    free, _ = memory_left()
    if needed > free:
        raise ConfigError(
            f"{options.model} takes {needed / 1e9:.1f} GB of memory in {dtype}; {free / 1e9:.1f} GB are free here.",
            hint="Use --dtype=bfloat16, GPUs, or quantised weights with --server_type=llamacpp.",
        )


def _with_adapter(model: Any, options: ServerOptions) -> Any:
    """Return the model with the adapter. Raises DataError for an adapter that belongs to another model."""
    from peft import PeftConfig, PeftModel

    adapter = options.adapter
    check_adapter(adapter)
    try:
        config: Any = PeftConfig.from_pretrained(adapter)
        if config.is_prompt_learning:
            raise ConfigError(
                f"{adapter} is an adapter of the type {config.peft_type.value}, which is not served here."
            )
        adapted = PeftModel(model, config)
        report = adapted.load_adapter(adapter, "default", is_trainable=False)
    except (RuntimeError, ValueError, OSError, KeyError) as error:
        first = next(iter(str(error).strip().splitlines()), type(error).__name__).rstrip(".")
        raise DataError(
            f"The adapter {adapter} does not fit {options.model}: {first}.", hint=_made_for(adapter)
        ) from error
    missing = [name for name in report.missing_keys if "lora" in name.lower()]
    if missing or report.unexpected_keys:
        name = (missing or report.unexpected_keys)[0]
        raise DataError(
            f"The adapter {adapter} does not fit {options.model}: {name} is in only one of them.",
            hint=_made_for(adapter),
        )
    if options.quantization == "none":
        return adapted.merge_and_unload()
    return adapted.get_base_model()


def _made_for(adapter: str) -> str:
    from peft import PeftConfig

    try:
        base: Any = PeftConfig.from_pretrained(adapter).base_model_name_or_path
    except (ValueError, OSError, TypeError):
        return ""
    if base:
        return f"It was made for {base}."
    return ""


def _end_tokens(model: Any, tokenizer: Any) -> frozenset[int]:
    stated = getattr(model.generation_config, "eos_token_id", None)
    listed = stated if isinstance(stated, list) else [stated]
    return frozenset(number for number in (*listed, tokenizer.eos_token_id) if number is not None)
