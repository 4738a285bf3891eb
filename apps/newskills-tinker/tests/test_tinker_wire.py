# SPDX-License-Identifier: Apache-2.0
"""Bodies of the Tinker API; what is sent, and what has to come back, is encoded by hand here
(https://protobuf.dev/programming-guides/encoding), without the library that the service uses."""

import struct
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pytest
from google.protobuf.descriptor_pb2 import FieldDescriptorProto
from hypothesis import given, settings
from hypothesis import strategies as st

from newskills.base.errors import DataError
from newskills.train.verbs import Datum, LossOutput, Sampled
from newskills_tinker.server import messages, wire

FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)
VARINT, FIXED64, LENGTH = 0, 1, 2


def number_field(number: int, value: int) -> bytes:
    """Encode a varint field; negative numbers take ten bytes, as for int32 and int64."""
    return _encoded(number << 3 | VARINT) + _encoded(value & ((1 << 64) - 1))


def double_field(number: int, value: float) -> bytes:
    return _encoded(number << 3 | FIXED64) + struct.pack("<d", value)


def bytes_field(number: int, value: bytes) -> bytes:
    """Encode bytes, text in UTF-8, or an embedded message."""
    return b"".join((_encoded(number << 3 | LENGTH), _encoded(len(value)), value))


def entry_field(number: int, key: str, value: bytes) -> bytes:
    """Encode an entry of a map; `value` is its encoded field 2."""
    return bytes_field(number, bytes_field(1, key.encode()) + value)


def _encoded(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def packed_field(number: int, values: Iterable[int]) -> bytes:
    """Varints without a tag of their own: what follows the tag of a field of one."""
    return bytes_field(number, b"".join(number_field(1, value)[1:] for value in values))


def tensor(values: Sequence[float], dtype: str, kind: int, shape: list[int] | None = None) -> bytes:
    array = np.array(values, dtype)
    shaped = packed_field(4, shape or [len(values)])
    return bytes_field(1, array.tobytes()) + number_field(3, kind) + shaped


def datum(tokens: Sequence[int], inputs: dict[str, bytes]) -> bytes:
    chunk = bytes_field(1, bytes_field(1, np.array(tokens, "<i4").tobytes()))
    return bytes_field(1, chunk) + b"".join(
        entry_field(2, name, bytes_field(2, one)) for name, one in inputs.items()
    )


def request(*data: bytes, loss: str = "cross_entropy") -> bytes:
    return (
        bytes_field(1, b"m")
        + number_field(2, 7)
        + b"".join(bytes_field(3, one) for one in data)
        + bytes_field(4, loss.encode())
    )


def refusal(body: bytes) -> str:
    """The sentence; a full stop where there is none."""
    try:
        wire.read_pass(body)
    except DataError as error:
        return str(error)
    return "."


@pytest.mark.parametrize("packed", [True, False])
def test_repeated_numbers_are_read_packed_or_one_by_one(packed: bool) -> None:
    shape = packed_field(4, [2, 1]) if packed else number_field(4, 2) + number_field(4, 1)
    targets = bytes_field(1, np.array([7, 8], "<i8").tobytes()) + number_field(3, 2) + shape
    assert wire.read_pass(request(datum([1, 2], {"target_tokens": targets}))).data[0].targets == [7, 8]
    wide = bytes_field(1, np.zeros(4, "<i8").tobytes()) + number_field(3, 2) + shape + number_field(4, 2)
    with pytest.raises(DataError, match=r"has the shape \[2, 1, 2\]"):
        wire.read_pass(request(datum([1, 2], {"target_tokens": wide})))


@pytest.mark.parametrize(("wire_value", "value"), [(7, 7), (-1, -1), (1 << 40, 1 << 40)])
def test_numbers_are_read_whole(wire_value: int, value: int) -> None:
    assert wire.read_pass(number_field(2, wire_value)).seq_id == value
    with pytest.raises(DataError, match=f"unknown number type {value}"):
        wire.read_pass(request(datum([1], {"target_tokens": number_field(3, wire_value)})))


@given(loss=st.floats(allow_nan=False), logprobs=st.lists(st.lists(FLOATS)))
def test_answers_of_passes_byte_for_byte(loss: float, logprobs: list[list[float]]) -> None:
    values = np.array([value for part in logprobs for value in part], "<f4").tobytes()
    ends = (np.cumsum([0, *map(len, logprobs)], dtype="<i8") * 4).tobytes()
    batched = bytes_field(1, values) + bytes_field(2, ends) + number_field(3, 1)
    record = entry_field(2, "logprobs", bytes_field(2, batched)) + number_field(3, len(logprobs))
    wanted = (
        bytes_field(1, b"ArrayRecord")
        + bytes_field(2, bytes_field(1, b"ArrayRecord") + record)
        + entry_field(3, "loss:sum", double_field(2, loss))
    )
    assert wire.pass_answer(LossOutput(loss=loss, logprobs=logprobs)) == wanted


@given(
    samples=st.lists(st.tuples(st.booleans(), st.lists(st.tuples(st.integers(0, 2**31 - 1), FLOATS)))),
    prompt=st.none() | st.lists(st.none() | FLOATS),
)
def test_answers_of_samples_byte_for_byte(
    samples: list[tuple[bool, list[tuple[int, float]]]], prompt: list[float | None] | None
) -> None:
    drawn = [
        Sampled(
            tokens=[token for token, _ in pairs],
            logprobs=[logprob for _, logprob in pairs],
            stop_reason="stop" if stopped else "length",
        )
        for stopped, pairs in samples
    ]
    wanted = b""
    for sample, (stopped, _) in zip(drawn, samples, strict=True):
        tokens, logprobs = np.array(sample.tokens, "<i4"), np.array(sample.logprobs, "<f4")
        reason = number_field(1, 0 if stopped else 1)
        wanted += bytes_field(1, reason + bytes_field(2, tokens.tobytes()) + bytes_field(3, logprobs.tobytes()))
    if prompt is not None:
        numbers = np.array([np.nan if value is None else value for value in prompt], "<f4")
        wanted += bytes_field(2, numbers.tobytes())
    assert wire.sample_answer(drawn, prompt) == wanted


THEIR_NAMES = {"EncodedText": "EncodedTextChunk", "LossSetting": "LossConfigValue"}
SAME_ON_THE_WIRE = {"int32": "int64", "enum": "int64"}


def described(message: Any) -> dict[str, tuple[int, str, bool]]:
    """Field → (number, type on the wire, whether it is repeated); maps are repeated messages of a key and a value."""
    types = {number: name for name, number in FieldDescriptorProto.Type.items()}
    fields = {}
    for field in message.fields:
        kind = types[field.type].removeprefix("TYPE_").lower()
        fields[field.name] = (field.number, SAME_ON_THE_WIRE.get(kind, kind), field.is_repeated)
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            pair = described(field.message_type)
            fields |= {f"{field.name}[{name}]": of for name, of in pair.items()}
    return fields


@pytest.mark.parametrize("name", messages.MESSAGES)
def test_messages_are_those_of_the_client(name: str) -> None:
    theirs = pytest.importorskip("tinker.proto.tinker_public_pb2", reason="needs newskills[tinker]")
    of_client = theirs.DESCRIPTOR.message_types_by_name[THEIR_NAMES.get(name, name)]
    ours = described(messages.message_class(name).DESCRIPTOR)
    assert ours
    assert ours.items() <= described(of_client).items()


@given(rows=st.lists(st.tuples(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60), FLOATS), min_size=1))))
def test_data_come_back(rows: list[tuple[list[tuple[int, int, float]]]]) -> None:
    data = []
    for (row,) in rows:
        tokens, targets, weights = zip(*row, strict=True)
        inputs = {"target_tokens": tensor(targets, "<i8", 2), "weights": tensor(weights, "<f4", 1)}
        data.append((list(tokens), list(targets), list(weights), datum(tokens, inputs)))
    found = wire.read_pass(request(*[one[3] for one in data]))
    assert (found.model_id, found.seq_id, found.loss_fn, found.forward_only) == ("m", 7, "cross_entropy", False)
    assert [(one.tokens, one.targets, one.weights) for one in found.data] == [one[:3] for one in data]


def test_sparse_tensors_are_spread_out() -> None:
    sparse = (
        bytes_field(1, np.array([5, 6], "<i8").tobytes())
        + bytes_field(2, np.array([0, 1, 1, 2], "<i8").tobytes())
        + bytes_field(3, np.array([0, 0], "<i8").tobytes())
    )
    one = datum(
        [1, 2, 3],
        {"target_tokens": bytes_field(2, sparse) + number_field(3, 2) + packed_field(4, [3, 1])},
    )
    assert wire.read_pass(request(one)).data == (Datum(tokens=[1, 2, 3], targets=[5, 0, 6]),)


@settings(max_examples=300)
@given(body=st.binary(max_size=200))
def test_any_bytes_are_read_or_refused_with_a_sentence(body: bytes) -> None:
    assert refusal(body).endswith(".")


WHOLE = request(
    datum([1, 2, 3], {"target_tokens": tensor([2, 3, 4], "<i8", 2), "weights": tensor([0, 1, 1], "<f4", 1)})
) + entry_field(7, "clip_low_threshold", bytes_field(2, double_field(1, 0.5)))


@settings(max_examples=500)
@given(at=st.integers(0, len(WHOLE) - 1), byte=st.integers(0, 255), length=st.integers(1, len(WHOLE)))
def test_damaged_requests_are_read_or_refused_with_a_sentence(at: int, byte: int, length: int) -> None:
    body = bytearray(WHOLE)
    body[at] = byte
    assert refusal(bytes(body[:length])).endswith(".")


@pytest.mark.parametrize(
    ("sparse", "shape"),
    [
        ([[5], [0, 2**62], [0]], [1, 1]),
        ([[5], [0, 1], [9]], [1, 1]),
        ([[5], [0, 1], [-1]], [1, 1]),
        ([[5, 5], [2, 0, 2], [0, 0]], [2, 1]),
        ([[], [0] * 2, []], [1, 2**40]),
        ([[5], [0, 1], [0]], [1, 1, 1]),
    ],
)
def test_sparse_tensors_that_cannot_be(sparse: list[list[Any]], shape: list[int]) -> None:
    parts = b"".join(bytes_field(at, np.array(part, "<i8").tobytes()) for at, part in enumerate(sparse, 1))
    one = datum([1], {"target_tokens": bytes_field(2, parts) + number_field(3, 2) + packed_field(4, shape)})
    with pytest.raises(DataError, match="not a sparse tensor"):
        wire.read_pass(request(one))


@pytest.mark.parametrize(
    ("one", "sentence"),
    [
        (datum([1], {}), "Datum 0 has no target_tokens"),
        (datum([1], {"target_tokens": tensor([1], "<i8", 9)}), "unknown number type 9"),
        (
            datum([1], {"target_tokens": bytes_field(1, b"123") + number_field(3, 2)}),
            "3 bytes are not a multiple",
        ),
        (datum([1], {"target_tokens": tensor([1] * 4, "<i8", 2, [2, 2])}), r"has the shape \[2, 2\]"),
        (datum([1], {"target_tokens": tensor([float("nan")], "<f4", 1)}), "contains a value that is not a number"),
        (bytes_field(1, bytes_field(2, b"png")), "a part that is not text"),
    ],
)
def test_data_that_do_not_fit(one: bytes, sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        wire.read_pass(request(one))


def test_the_client_reads_our_answers_and_we_its_requests() -> None:
    pytest.importorskip("tinker", reason="needs newskills[tinker]")
    from tinker import types
    from tinker.proto.request_conv import forward_backward_request_to_proto
    from tinker.proto.response_conv import deserialize_forward_backward_output, deserialize_sample_response

    theirs = types.ForwardBackwardRequest(
        forward_backward_input=types.ForwardBackwardInput(
            data=[
                types.Datum(
                    model_input=types.ModelInput.from_ints([1, 2]).append_int(3),
                    loss_fn_inputs={
                        "target_tokens": [2, 3, 4],
                        "logprobs": [0.0, -1.5, 0.0],
                        "advantages": [0.0, 1, 2],
                    },
                )
            ],
            loss_fn="ppo",
            loss_fn_config={"clip_low_threshold": 0.5},
        ),
        model_id="a:train:0",
        seq_id=3,
    )
    found = wire.read_pass(forward_backward_request_to_proto(theirs).SerializeToString())
    assert found == wire.PassRequest(
        model_id="a:train:0",
        seq_id=3,
        loss_fn="ppo",
        data=(Datum(tokens=[1, 2, 3], targets=[2, 3, 4], logprobs=[0, -1.5, 0], advantages=[0, 1, 2]),),
        config={"clip_low_threshold": 0.5},
        forward_only=False,
    )
    output = deserialize_forward_backward_output(
        wire.pass_answer(LossOutput(loss=2.5, logprobs=[[-1.0, -2.0], [-3.0]]))
    )
    assert output.metrics == {"loss:sum": 2.5}
    assert [one["logprobs"].data for one in output.loss_fn_outputs] == [[-1.0, -2.0], [-3.0]]
    samples = [Sampled(tokens=[5, 6], logprobs=[-0.5, -1.0], stop_reason="stop")]
    response = deserialize_sample_response(wire.sample_answer(samples, [None, -2.0]))
    assert response.sequences[0].tokens == [5, 6]
    assert response.sequences[0].logprobs == [-0.5, -1.0]
    assert response.sequences[0].stop_reason == "stop"
    assert response.prompt_logprobs == [None, -2.0]
