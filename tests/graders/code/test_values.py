# SPDX-License-Identifier: Apache-2.0
"""What crosses the pipe: plain values exactly, everything else as a number, rubbish as an error."""

from __future__ import annotations

import enum
import math
import os
from collections import Counter, OrderedDict, deque, namedtuple
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from newskills.graders.code.inside.values import LONGEST, decode, encode, receive, send


def refuse(value: Any) -> int:
    raise AssertionError(f"{value!r} does not travel")


def cross(value: Any) -> Any:
    return decode(encode(value, refuse), lambda number: ("ref", number))


HASHABLE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=()))
    | st.binary()
    | st.complex_numbers(allow_nan=False)
    | st.decimals(allow_nan=False)
    | st.fractions(),
    lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3),
    max_leaves=6,
)
VALUES = st.recursive(
    HASHABLE | st.binary().map(bytearray) | st.sampled_from([int, str, type, ValueError, range(1, 9, 2)]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner)
        | st.sets(HASHABLE, max_size=4)
        | st.dictionaries(HASHABLE, inner, max_size=4)
        | st.lists(inner, max_size=3).map(deque)
    ),
    max_leaves=12,
)


@given(VALUES)
def test_plain_values_arrive_as_they_were(value: Any) -> None:
    found = cross(value)
    assert found == value
    assert type(found) is type(value)
    assert repr(found) == repr(value) or isinstance(value, set | frozenset | dict | tuple | list | deque)


def test_integers_have_no_longest() -> None:
    assert cross([10**5000, -(7**9000)]) == [10**5000, -(7**9000)]


@pytest.mark.parametrize("value", [-0.0, math.inf, "\ud800", {1: {2: [(), {}]}}])
def test_extremes(value: Any) -> None:
    assert repr(cross(value)) == repr(value)


def test_not_a_number() -> None:
    assert math.isnan(cross(math.nan))


class Sly(int):
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = int.__hash__


class SlyText(str):
    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = str.__hash__


class Colour(enum.StrEnum):
    RED = "red"


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (Sly(3), 3),
        (SlyText("a"), "a"),
        (Colour.RED, "red"),
        (Counter("aab"), {"a": 2, "b": 1}),
        (OrderedDict(x=1), {"x": 1}),
        (namedtuple("P", "x y")(1, 2), (1, 2)),  # type: ignore[call-arg]
        (numpy.float64(1.5), 1.5),
        (numpy.int64(3), 3),
        (numpy.bool_(True), True),
        (numpy.str_("a"), "a"),
    ],
)
def test_derived_classes_lose_what_they_add(value: Any, plain: Any) -> None:
    found = cross(value)
    assert type(found) is type(plain)
    assert plain.__eq__(found) is True


@pytest.mark.parametrize("value", [object(), lambda: 1, iter([]), numpy.array([1]), {1: 2}.keys(), Sly, math])
def test_all_else_is_a_number(value: Any) -> None:
    assert decode(encode([value, value], lambda _: 7), lambda number: ("ref", number)) == [("ref", 7)] * 2


@given(st.binary(max_size=40) | st.text(alphabet="NTFi0f1;:sbaydDQltSZqcrR-9e", max_size=30).map(str.encode))
def test_rubbish_is_refused(data: bytes) -> None:
    try:
        decode(data, lambda number: number)
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError):
        return
    encode(decode(data, lambda number: number), refuse)


def test_depth_is_refused() -> None:
    with pytest.raises(RecursionError):
        decode(b"l1:" * 100_000 + b"N", lambda number: number)


@pytest.mark.parametrize(
    "data", [b"s9:abc", b"s-1:abc", b"NN", b"", b"l3:NN", b"d1:N", b"yprint", b"y5:print", b"x1:N"]
)
def test_what_is_cut_off_or_unknown(data: bytes) -> None:
    with pytest.raises((ValueError, LookupError, TypeError)):
        decode(data, lambda number: number)


def test_messages_through_a_pipe() -> None:
    out, into = os.pipe()
    send(into, b"abc")
    send(into, b"")
    os.write(into, (5).to_bytes(4, "big") + b"ab")
    os.close(into)
    assert [receive(out), receive(out), receive(out), receive(out)] == [b"abc", b"", None, None]
    os.close(out)


def test_lengths_are_bounded() -> None:
    out, into = os.pipe()
    with pytest.raises(ValueError, match="too large"):
        send(into, b"x" * (LONGEST + 1))
    os.write(into, (LONGEST + 1).to_bytes(4, "big"))
    with pytest.raises(ValueError, match="too long"):
        receive(out)
    os.close(into)
    os.close(out)


def test_exact_numbers() -> None:
    assert cross([Decimal("1.10"), Fraction(1, 3)]) == [Decimal("1.10"), Fraction(1, 3)]
