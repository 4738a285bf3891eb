# SPDX-License-Identifier: Apache-2.0
"""A real model with most of its blocks left out: it is served, trained and saved like the whole one, only faster."""

from __future__ import annotations

from pathlib import Path

BLOCKS = 3


def cut_model(whole: Path, path: Path) -> Path:
    """A GGUF file of the first blocks of `whole`; vocabulary, tokenizer and chat template are those of `whole`."""
    import gguf

    reader = gguf.GGUFReader(whole)
    architecture = reader.fields["general.architecture"].contents()
    writer = gguf.GGUFWriter(path, architecture)
    for name, field in reader.fields.items():
        if not name.startswith(("GGUF.", "general.architecture")):
            value = BLOCKS if name == f"{architecture}.block_count" else field.contents()
            inner = field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
            writer.add_key_value(name, value, field.types[0], inner)
    for tensor in reader.tensors:
        parts = tensor.name.split(".")
        if parts[0] != "blk" or int(parts[1]) < BLOCKS:
            writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
