# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newskills.base.errors import ToolError
from newskills.tools.arguments import check_arguments

SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer"},
        "unit": {"type": "string", "enum": ["C", "F"]},
        "limit": {"anyOf": [{"type": "number"}, {"type": "null"}]},
        "tags": {"type": ["array", "null"]},
        "more": {"type": "object"},
        "any": {},
    },
    "required": ["city"],
}


def test_what_fits_passes_and_whole_floats_become_integers() -> None:
    given_ = {"city": "Rome", "days": 3.0, "unit": "C", "limit": None, "tags": [1], "more": {"a": 1}, "any": 7}
    checked = check_arguments(SCHEMA, given_)
    assert checked == given_
    assert type(checked["days"]) is int


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "'city' is missing"),
        ({"city": 3}, "'city' must be of type string, not 3"),
        ({"city": "x", "days": "3"}, "'days' must be of type integer, not '3'"),
        ({"city": "x", "days": True}, "'days' must be of type integer, not True"),
        ({"city": "x", "days": 2.5}, "'days' must be of type integer"),
        ({"city": "x", "days": float("inf")}, "'days' must be of type integer"),
        ({"city": "x", "unit": "K"}, "'unit' must be one of 'C', 'F'"),
        ({"city": "x", "limit": "no"}, "'limit' must be of type number or of type null"),
        ({"city": "x", "tags": {}}, "'tags' must be of type array or of type null"),
        ({"city": "x", "dayz": 2}, "there is no 'dayz'; did you mean 'days'"),
        ({"days": "x" * 10_000}, "'city' is missing; 'days' must be"),
    ],
)
def test_what_does_not_fit_is_told(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(ToolError) as caught:
        check_arguments(SCHEMA, arguments)
    assert words in str(caught.value)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "object"},
        {"type": "object", "properties": {}, "additionalProperties": True},
        {"type": "object", "properties": {}, "patternProperties": {"^x": {}}},
        {"properties": {"x": True}},
        {"properties": {"x": {"type": "no such type"}}},
        {"properties": {"x": {"type": ["string", "no such type", "integer"]}}},
    ],
)
def test_open_and_strange_schemas_ask_for_nothing(schema: dict[str, Any]) -> None:
    assert check_arguments(schema, {"x": 1}) == {"x": 1}


@given(st.dictionaries(st.text(), st.recursive(st.none() | st.floats() | st.text(), st.lists), max_size=4))
def test_nothing_but_a_tool_error_ever_comes_out(arguments: dict[str, Any]) -> None:
    try:
        check_arguments(SCHEMA, arguments)
    except ToolError:
        return
    assert "city" in arguments
