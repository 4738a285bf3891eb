# SPDX-License-Identifier: Apache-2.0
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from newskills.base.errors import DataError
from newskills.train.backends.tinker.server import protobuf, wire
from newskills.train.backends.tinker.server.protobuf import bytes_field, double_field, entry_field, number_field
from newskills.train.verbs import Datum, LossOutput, Sampled

INTEGERS = st.integers(-(2**63), 2**63 - 1)
FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)


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


@given(number=st.integers(1, 2**20), value=INTEGERS)
def test_numbers_come_back(number: int, value: int) -> None:
    (found,) = protobuf.fields(number_field(number, value))
    assert (found.number, found.integer()) == (number, value)


@given(values=st.lists(INTEGERS), single=st.booleans())
def test_repeated_numbers_come_back_packed_or_not(values: list[int], single: bool) -> None:
    message = b"".join(number_field(4, value) for value in values) if single else packed_field(4, values)
    assert [value for one in protobuf.fields(message) for value in one.integers()] == values


@given(text=st.text(), number=st.floats(allow_nan=False))
def test_entries_of_maps_come_back(text: str, number: float) -> None:
    (found,) = protobuf.fields(entry_field(5, text, double_field(2, number)))
    key, value = protobuf.entry(found.message())
    assert (key, value.double()) == (text, number)


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
