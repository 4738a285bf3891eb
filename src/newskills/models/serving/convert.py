# SPDX-License-Identifier: Apache-2.0
"""A quantised GGUF file → the same model in F16; metadata, tokenizer and chat template are carried over.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. One tensor is in memory at a time.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from newskills.base.errors import DataError

MOSTLY_F16 = 1
"""`general.file_type` of a file whose matrices are F16."""


def to_f16(source: Path, target: Path) -> None:
    """Convert matrices to F16 and vectors to F32 (as llama.cpp's own converter leaves norms).

    Raises DataError for a file that is no GGUF, OSError.
    """
    import gguf

    try:
        reader = gguf.GGUFReader(source)
    except ValueError as error:
        raise DataError(f"{source.name} is not a GGUF file that can be read: {error}.") from error
    writer = gguf.GGUFWriter(target, reader.fields["general.architecture"].contents())
    try:
        _copy_metadata(gguf, reader, writer)
        _copy_tensors(gguf, reader, writer)
    finally:
        writer.close()


def _copy_metadata(gguf: Any, reader: Any, writer: Any) -> None:
    for key, field in reader.fields.items():
        if key.startswith("GGUF.") or key == "general.architecture":
            continue
        value = MOSTLY_F16 if key == "general.file_type" else field.contents()
        is_list = field.types[0] == gguf.GGUFValueType.ARRAY
        writer.add_key_value(key, value, field.types[0], sub_type=field.types[-1] if is_list else None)


def _copy_tensors(gguf: Any, reader: Any, writer: Any) -> None:
    import numpy as np

    def kind(tensor: Any) -> Any:
        return np.dtype(np.float32 if len(tensor.shape) == 1 else np.float16)

    for tensor in reader.tensors:
        shape = [int(length) for length in reversed(tensor.shape)]
        writer.add_tensor_info(tensor.name, shape, kind(tensor), int(tensor.n_elements) * kind(tensor).itemsize)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    for tensor in reader.tensors:
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        writer.write_tensor_data(values.astype(kind(tensor)))
