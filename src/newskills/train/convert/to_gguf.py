# SPDX-License-Identifier: Apache-2.0
"""A Hugging Face folder of a Llama model → one GGUF file that llama.cpp serves: matrices F16, vectors F32."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from newskills.base.errors import ConfigError, DataError
from newskills.base.store import atomic_write
from newskills.train.convert.names import PRE_TOKENIZERS, SIZES, gguf_name, rotated_heads
from newskills.train.tensors import as_stored

NORMAL, CONTROL = 1, 3
"""`tokenizer.ggml.token_type`"""


def hf_to_gguf(source: Path, target: Path) -> None:
    """Write `target`, whole or not at all.

    Raises DataError for a folder that lacks a file, ConfigError for another architecture or tokenizer.
    """
    import gguf

    config, tokenizer = _read_json(source / "config.json"), _read_json(source / "tokenizer.json")
    if (kinds := config.get("architectures")) != ["LlamaForCausalLM"]:
        raise ConfigError(
            f"{source} has a model of the architecture {kinds}; only LlamaForCausalLM can be converted."
        )
    with atomic_write(target) as file:
        writer = gguf.GGUFWriter(file.name, "llama")
        try:
            _add_metadata(gguf, writer, config, source)
            _add_tokenizer(writer, config, tokenizer)
            template = source / "chat_template.jinja"
            if template.is_file():
                writer.add_chat_template(template.read_text(encoding="utf-8"))
            _write_tensors(writer, source, config)
        finally:
            writer.close()


def _add_metadata(gguf: Any, writer: Any, config: dict[str, Any], source: Path) -> None:
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    if rope.get("rope_type", "default") != "default":
        raise ConfigError(
            f"{source} scales rotary positions ({rope['rope_type']}); such models cannot be converted."
        )
    config = {"rope_theta": 10000.0, **rope, "num_key_value_heads": config["num_attention_heads"], **config}
    writer.add_name(source.name)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    for theirs, ours in SIZES.items():
        if ours in ("rms_norm_eps", "rope_theta"):
            kind = gguf.GGUFValueType.FLOAT32
        else:
            kind = gguf.GGUFValueType.UINT32
        writer.add_key_value(f"llama.{theirs}", config[ours], kind)
    head = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    writer.add_rope_dimension_count(head)
    writer.add_key_length(head)
    writer.add_value_length(head)


def _add_tokenizer(writer: Any, config: dict[str, Any], tokenizer: dict[str, Any]) -> None:
    model, cuts = tokenizer["model"], tokenizer["pre_tokenizer"]
    names = [name for name, reference_cuts in PRE_TOKENIZERS.items() if _is_subset(reference_cuts, cuts)]
    if model.get("type") != "BPE" or not names:
        raise ConfigError(
            "The tokenizer splits text in a way that llama.cpp does not support.",
            hint=f"Known: {', '.join(PRE_TOKENIZERS)}.",
        )
    special = {token["id"]: token["content"] for token in tokenizer["added_tokens"]}
    vocabulary = {index: token for token, index in model["vocab"].items()} | special
    tokens = [vocabulary.get(index, f"[PAD{index}]") for index in range(config["vocab_size"])]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(names[0])
    writer.add_token_list(tokens)
    writer.add_token_types([CONTROL if index in special else NORMAL for index in range(len(tokens))])
    writer.add_token_merges([merge if isinstance(merge, str) else " ".join(merge) for merge in model["merges"]])
    writer.add_add_bos_token(False)
    writer.add_add_space_prefix(False)
    for key, add in (
        ("bos_token_id", writer.add_bos_token_id),
        ("eos_token_id", writer.add_eos_token_id),
        ("pad_token_id", writer.add_pad_token_id),
    ):
        value = config.get(key)
        if isinstance(value, list):
            value = value[0]
        if value is not None:
            add(value)


def _is_subset(left: Any, right: Any) -> bool:
    """Return whether `right` has all that `left` has."""
    if isinstance(left, dict) and isinstance(right, dict):
        return all(key in right and _is_subset(value, right[key]) for key, value in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(_is_subset(a, b) for a, b in zip(left, right, strict=True))
    return bool(left == right)


def _write_tensors(writer: Any, source: Path, config: dict[str, Any]) -> None:
    import numpy as np
    from safetensors import SafetensorError, safe_open

    files = sorted(source.glob("*.safetensors"))
    if not files:
        raise DataError(f"{source} has no *.safetensors.")
    places: dict[str, Path] = {}
    shapes: dict[str, list[int]] = {}
    try:
        for path in files:
            with safe_open(path, "pt") as file:
                for name in file.keys():  # noqa: SIM118 - not a dict
                    places[name], shapes[name] = path, file.get_slice(name).get_shape()
    except (SafetensorError, OSError) as error:
        raise DataError(f"{source} cannot be read: {error}.") from error
    if config.get("tie_word_embeddings"):
        places.pop("lm_head.weight", None)
    for name in places:
        kind = np.dtype(np.float32 if len(shapes[name]) == 1 else np.float16)
        writer.add_tensor_info(gguf_name(name), shapes[name], kind, int(np.prod(shapes[name])) * kind.itemsize)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    for name, path in places.items():
        with safe_open(path, "pt") as file:
            array = file.get_tensor(name).float().numpy()
        if (heads := rotated_heads(name, config)) is not None:
            array = array.reshape(heads, 2, -1, array.shape[1]).swapaxes(1, 2).reshape(array.shape)
        kind = np.dtype(np.float32 if array.ndim == 1 else np.float16)
        writer.write_tensor_data(np.ascontiguousarray(as_stored(array, kind, name)))


def _read_json(path: Path) -> dict[str, Any]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except (OSError, msgspec.DecodeError) as error:
        raise DataError(f"{path} cannot be read: {error}.") from error
