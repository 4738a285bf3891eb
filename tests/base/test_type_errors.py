# SPDX-License-Identifier: Apache-2.0
"""Type errors in plain words."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import pytest

from newskills.base.type_errors import type_fault


class Part(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    many: list[int] = []


class Whole(msgspec.Struct):
    temperature: float = 0.0
    count: Annotated[int, msgspec.Meta(ge=1)] | None = None
    parts: list[Part] = []
    by_name: dict[str, int] = {}


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ({"temperature": "hot"}, "temperature: expected a number, got 'hot'"),
        ({"temperature": True}, "temperature: expected a number, got true"),
        ({"temperature": [1]}, "temperature: expected a number, got a list"),
        ({"temperature": None}, "temperature: expected a number, got nothing"),
        ({"temperature": "x" * 100}, "temperature: expected a number, got text"),
        ({"count": 0}, "count: expected a whole number >= 1, got 0"),
        ({"parts": [{"name": 3}]}, "parts[0].name: expected text, got 3"),
        ({"parts": [{"name": "a", "many": [1, "b"]}]}, "parts[0].many[1]: expected a whole number, got 'b'"),
        ({"parts": [{"nam": "a"}]}, "parts[0]: object contains unknown field 'nam'"),
        ({"by_name": {"a": "b"}}, "by_name[...]: expected a whole number, got text"),
        ("x", "expected an object, got 'x'"),
    ],
)
def test_what_was_expected_and_what_was_given(value: Any, sentence: str) -> None:
    with pytest.raises(msgspec.ValidationError) as raised:
        msgspec.convert(value, Whole)
    assert type_fault(raised.value, value) == sentence


def test_without_the_value_its_type_is_named() -> None:
    with pytest.raises(msgspec.ValidationError) as raised:
        msgspec.json.decode(b'{"temperature": "hot"}', type=Whole)
    assert type_fault(raised.value) == "temperature: expected a number, got text"
