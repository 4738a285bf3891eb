# SPDX-License-Identifier: Apache-2.0
"""Messages of the Tinker API that are protocol buffers, as far as this service reads and writes them.

Numbers and types are those of `tinker_public.proto` in the public client (PyPI: tinker), as a test compares. They are
described here rather than generated: generated code works with few major versions of protobuf, and that of the client
would bring the client. All fields that are not repeated have presence, because this service also sends what is 0 or
empty; integers have 64 bits here, so that a number that is too large is refused and not cut.
"""

from __future__ import annotations

from typing import Any

from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from newskills.base.errors import DataError

STRING, BYTES, INTEGER, DOUBLE, BOOL = "TYPE_STRING", "TYPE_BYTES", "TYPE_INT64", "TYPE_DOUBLE", "TYPE_BOOL"
PACKAGE = "newskills_tinker"

FieldType = str | list[str] | dict[str, str]
"""A type or the name of a message; in a list: repeated; in a mapping: a map with keys that are text."""

MESSAGES: dict[str, dict[str, tuple[int, FieldType]]] = {
    "SparseCsr": {"values": (1, BYTES), "crow_indices": (2, BYTES), "col_indices": (3, BYTES)},
    "Tensor": {
        "dense": (1, BYTES),
        "sparse_csr": (2, "SparseCsr"),
        "dtype": (3, INTEGER),
        "shape": (4, [INTEGER]),
    },
    "EncodedText": {"tokens": (1, BYTES)},
    "Chunk": {"encoded_text": (1, "EncodedText")},
    "Datum": {"model_input": (1, ["Chunk"]), "loss_fn_inputs": (2, {STRING: "Tensor"})},
    "LossSetting": {"number": (1, DOUBLE), "text": (2, STRING)},
    "ForwardBackwardRequest": {
        "model_id": (1, STRING),
        "seq_id": (2, INTEGER),
        "data": (3, ["Datum"]),
        "loss_fn": (4, STRING),
        "loss_fn_config": (5, {STRING: DOUBLE}),
        "forward_only": (6, BOOL),
        "loss_fn_config_v2": (7, {STRING: "LossSetting"}),
    },
    "BatchedTensor": {"data": (1, BYTES), "offsets": (2, BYTES), "dtype": (3, INTEGER)},
    "ArrayRecord": {"type_tag": (1, STRING), "fields": (2, {STRING: "BatchedTensor"}), "num_datums": (3, INTEGER)},
    "ForwardBackwardOutput": {
        "loss_fn_output_type": (1, STRING),
        "loss_fn_outputs": (2, ["ArrayRecord"]),
        "metrics": (3, {STRING: DOUBLE}),
    },
    "SampledSequence": {"stop_reason": (1, INTEGER), "tokens": (2, BYTES), "logprobs": (3, BYTES)},
    "SampleResponse": {"sequences": (1, ["SampledSequence"]), "prompt_logprobs": (2, BYTES)},
}
"""Message → field → (number, type)."""


def parse_request(body: bytes) -> Any:
    """Return the ForwardBackwardRequest in `body`. Raises DataError where the bytes are no such message."""
    try:
        return ForwardBackwardRequest.FromString(body)
    except DecodeError as error:
        raise DataError("The message is truncated or damaged, or it is not a ForwardBackwardRequest.") from error


def _describe_messages() -> FileDescriptorProto:
    file = FileDescriptorProto(name=f"{PACKAGE}.proto", package=PACKAGE, syntax="proto3")
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for field_name, (number, kind) in fields.items():
            _describe_field(message, message.field.add(name=field_name, number=number), kind)
    return file


def _describe_field(message: Any, field: Any, kind: FieldType) -> None:
    if isinstance(kind, dict):
        ((key, value),) = kind.items()
        entry = message.nested_type.add(name=f"{field.name.title().replace('_', '')}Entry")
        entry.options.map_entry = True
        _set_type(entry.field.add(name="key", number=1), key)
        _set_type(entry.field.add(name="value", number=2), value)
        _set_type(field, f"{message.name}.{entry.name}")
        field.label = FieldDescriptorProto.LABEL_REPEATED
    elif isinstance(kind, list):
        _set_type(field, kind[0])
        field.label = FieldDescriptorProto.LABEL_REPEATED
    else:
        _set_type(field, kind)
        field.proto3_optional = True  # which is a oneof of its own
        field.oneof_index = len(message.oneof_decl)
        message.oneof_decl.add(name=f"_{field.name}")


def _set_type(field: Any, kind: str) -> None:
    field.label = FieldDescriptorProto.LABEL_OPTIONAL
    if kind.startswith("TYPE_"):
        field.type = FieldDescriptorProto.Type.Value(kind)
    else:
        field.type, field.type_name = FieldDescriptorProto.TYPE_MESSAGE, f".{PACKAGE}.{kind}"


_POOL = DescriptorPool()
"""Of its own: the client, which may be in the same process, describes these messages in the common one."""
_POOL.Add(_describe_messages())


def message_class(name: str) -> Any:
    """Return the class of a message of `MESSAGES`."""
    return GetMessageClass(_POOL.FindMessageTypeByName(f"{PACKAGE}.{name}"))


ForwardBackwardRequest = message_class("ForwardBackwardRequest")
ForwardBackwardOutput = message_class("ForwardBackwardOutput")
SampleResponse = message_class("SampleResponse")
