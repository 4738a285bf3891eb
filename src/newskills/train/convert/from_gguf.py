# SPDX-License-Identifier: Apache-2.0
"""A GGUF file of a Llama model → a Hugging Face folder: float16 tensors, tokenizer and chat template."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from newskills.base.errors import ConfigError, DataError
from newskills.base.store import atomic_folder
from newskills.train.convert.names import PRE_TOKENIZERS, ROPE_FREQUENCIES, SIZES, hf_name, rotated_heads
from newskills.train.tensors import as_stored, translate_write_errors

CONTROL = 3
"""`tokenizer.ggml.token_type` of tokens that are never text."""


def gguf_to_hf(source: Path, target: Path) -> None:
    """Write the folder `target`, whole or not at all.

    Raises DataError for a file that is no GGUF or is cut off, ConfigError for another architecture or tokenizer.
    """
    tensors, fields = _read_gguf(source)
    with atomic_folder(target) as folder:
        config = _write_settings(folder, tensors, fields)
        _write_tensors(folder / "model.safetensors", tensors, config)


def gguf_tokenizer(source: Path, folder: Path) -> None:
    """Write the configuration and the tokenizer of the model into an existing folder. Raises as `gguf_to_hf`."""
    _write_settings(folder, *_read_gguf(source))


def _read_gguf(source: Path) -> tuple[Any, dict[str, Any]]:
    """Return the tensors and the fields of the file. Raises DataError, ConfigError."""
    import gguf

    try:
        reader = gguf.GGUFReader(source)
    except (ValueError, IndexError) as error:
        raise DataError(f"{source} is not a readable GGUF file: {error}.") from error
    fields = {key: field.contents() for key, field in reader.fields.items()}
    if (kind := fields.get("general.architecture")) != "llama":
        raise ConfigError(f"{source} has a model of the architecture {kind}; only llama can be converted.")
    return reader.tensors, fields


def _write_settings(folder: Path, tensors: Any, fields: dict[str, Any]) -> dict[str, Any]:
    """Write config.json and the tokenizer; return the former."""
    config = _model_config(fields, tied=all(tensor.name != "output.weight" for tensor in tensors))
    _write_json(folder / "config.json", config)
    _write_tokenizer(folder, fields)
    return config


def _model_config(fields: dict[str, Any], *, tied: bool) -> dict[str, Any]:
    sizes = {ours: fields[f"llama.{theirs}"] for theirs, ours in SIZES.items() if f"llama.{theirs}" in fields}
    special = {
        f"{name}_token_id": fields[key]
        for name in ("bos", "eos", "padding")
        if (key := f"tokenizer.ggml.{name}_token_id") in fields
    }
    if "padding_token_id" in special:
        special["pad_token_id"] = special.pop("padding_token_id")
    sizes.setdefault("vocab_size", len(fields["tokenizer.ggml.tokens"]))
    fixed = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": tied,
        "torch_dtype": "float16",
    }
    return {**fixed, **sizes, **special}


def _write_tokenizer(folder: Path, fields: dict[str, Any]) -> None:
    """Write tokenizer.json as `tokenizers` reads it, and the settings that transformers expects beside it."""
    kind, pre = fields.get("tokenizer.ggml.model"), fields.get("tokenizer.ggml.pre")
    if kind != "gpt2" or pre not in PRE_TOKENIZERS:
        raise ConfigError(
            f"The tokenizer ({kind}, {pre}) of this GGUF file cannot be converted.",
            hint=f"Supported: gpt2 with {', '.join(PRE_TOKENIZERS)}.",
        )
    tokens: list[str] = fields["tokenizer.ggml.tokens"]
    types: list[int] = fields["tokenizer.ggml.token_type"]
    added = [
        {
            "id": index,
            "content": tokens[index],
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for index, type_ in enumerate(types)
        if type_ == CONTROL
    ]
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": PRE_TOKENIZERS[pre],
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {token: index for index, token in enumerate(tokens)},
            "merges": [merge.split(" ", 1) for merge in fields["tokenizer.ggml.merges"]],
        },
    }
    _write_json(folder / "tokenizer.json", tokenizer)
    names = {"bos": "bos", "eos": "eos", "pad": "padding", "unk": "unknown"}
    special = {
        f"{ours}_token": tokens[fields[f"tokenizer.ggml.{theirs}_token_id"]]
        for ours, theirs in names.items()
        if f"tokenizer.ggml.{theirs}_token_id" in fields
    }
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": fields.get("llama.context_length", 2048),
        "clean_up_tokenization_spaces": False,
        **special,
    }
    _write_json(folder / "tokenizer_config.json", settings)
    if template := fields.get("tokenizer.chat_template"):
        (folder / "chat_template.jinja").write_text(template, encoding="utf-8")
    generation = {f"{name}_token_id": fields.get(f"tokenizer.ggml.{name}_token_id") for name in ("bos", "eos")}
    _write_json(
        folder / "generation_config.json", {key: value for key, value in generation.items() if value is not None}
    )


def _write_tensors(path: Path, tensors: Any, config: dict[str, Any]) -> None:
    import numpy as np
    from gguf.quants import dequantize
    from safetensors.numpy import save_file

    arrays = {}
    for tensor in tensors:
        if tensor.name == ROPE_FREQUENCIES:
            raise ConfigError(
                "This GGUF file scales rotary positions (RoPE scaling); such models cannot be converted."
            )
        name = hf_name(tensor.name)
        array = as_stored(dequantize(tensor.data, tensor.tensor_type), np.dtype(np.float16), name)
        if (heads := rotated_heads(name, config)) is not None:
            array = array.reshape(heads, -1, 2, array.shape[1]).swapaxes(1, 2).reshape(array.shape)
        arrays[name] = np.ascontiguousarray(array)
    with translate_write_errors(path):
        save_file(arrays, path, metadata={"format": "pt"})


def _write_json(path: Path, value: Any) -> None:
    path.write_bytes(msgspec.json.format(msgspec.json.encode(value), indent=2))
