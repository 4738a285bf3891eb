# SPDX-License-Identifier: Apache-2.0
"""Values of Java and JavaScript, type by type; what is no literal of its type stays the text that it is."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.graders.plain import plain_grader

from newskills.graders.tool_calls.calls import LONGEST, ParsedCall, written_calls
from newskills.graders.tool_calls.literals import JAVA_TYPES, JAVASCRIPT_TYPES, value_of

JAVA: list[tuple[str, str, str | None, Any]] = [
    ("7", "integer", None, 7),
    (" -7 ", "short", None, -7),
    ("7.0", "byte", None, "7.0"),
    ("7L", "long", None, 7),
    ("7l", "long", None, 7),
    ("7", "long", None, "7"),
    ("2.5f", "float", None, 2.5),
    ("2F", "float", None, 2.0),
    ("2.5", "float", None, "2.5"),
    ("-2.5e-3", "double", None, -0.0025),
    ("2", "double", None, 2.0),
    ("2.", "double", None, "2."),
    ("true", "boolean", None, True),
    ("false", "boolean", None, False),
    ("True", "boolean", None, "True"),
    ("'x'", "char", None, "'x'"),
    ('"x"', "String", None, '"x"'),
    ("new int[]{1, 2}", "Array", "integer", [1, 2]),
    ("new  String [ ] {\"a, b\", 'c'}", "Array", "String", ["a, b", "c"]),
    ("new int[]{}", "Array", "integer", []),
    ("new int[]{1, 2", "Array", "integer", "new int[]{1, 2"),
    ("[1, 2]", "Array", "integer", "[1, 2]"),
    ("new ArrayList<>(Arrays.asList(1L, 2L))", "ArrayList", "long", [1, 2]),
    ('new ArrayList<String>() {{ add("a"); add("(b"); }}', "ArrayList", "String", ["a", "(b"]),
    ('new ArrayList<String>() {{ add("a"); add("b }}', "ArrayList", "String", ["a"]),
    ("new ArrayList<Integer>()", "ArrayList", "integer", []),
    ("new LinkedList<Integer>()", "ArrayList", "integer", "new LinkedList<Integer>()"),
    ('new HashMap<String, Integer>() {{ put("a", 1); put("b", 2.5f); put("c"); }}', "HashMap", None, {
        "a": 1, "b": 2.5,
    }),
    ("new TreeMap<>()", "HashMap", None, "new TreeMap<>()"),
    ("new Queue", "Queue", None, "new Queue"),
    ("new X[]{1, 2.5, 3f, 4L, 5e1, true, false, 'x', \"y\", z}", "Array", None, [
        1, 2.5, 3.0, 4, 50.0, True, False, "x", "y", "z",
    ]),
]  # fmt: skip
JAVASCRIPT: list[tuple[str, str, str | None, Any]] = [
    ("7", "integer", None, 7),
    ("7n", "Bigint", None, 7),
    ("7", "Bigint", None, "7"),
    ("7.5", "float", None, 7.5),
    ("7e2", "float", None, "7e2"),
    ("true", "Boolean", None, True),
    ("'x'", "String", None, "x"),
    ('"x', "String", None, '"x'),
    ('"', "String", None, '"'),
    ("x", "any", None, "x"),
    ("[1, 'a, b', [2, 3], {k: 4}]", "array", None, [1, "a, b", [2, 3], {"k": 4}]),
    ("[[1, 2], [3]]", "array", "array", [[1, 2], [3]]),
    ("new Array(1, 2)", "array", "integer", [1, 2]),
    ("[1, , 2,]", "array", "integer", [1, 2]),
    ("[1, 2", "array", "integer", "[1, 2"),
    ("{a: 1, 'b:c': \"d:e\", f}", "dict", None, {"a": 1, "b:c": "d:e"}),
    ("{a: 1", "dict", None, "{a: 1"),
    ("a: 1", "dict", None, "a: 1"),
    (r"['it\'s', 'ok']", "array", "String", [r"it\'s", "ok"]),
    (r"['\\', 'ok']", "array", "String", [r"\\", "ok"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "kind", "item", "value"), JAVA)
def test_java(text: str, kind: str, item: str | None, value: Any) -> None:
    found = value_of(text, kind, item, "java")
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(("text", "kind", "item", "value"), JAVASCRIPT)
def test_javascript(text: str, kind: str, item: str | None, value: Any) -> None:
    found = value_of(text, kind, item, "javascript")
    assert (found, type(found)) == (value, type(value))


def test_numbers_of_four_hundred_digits_are_read() -> None:
    assert value_of("9" * 400, "integer", None, "java") == int("9" * 400)
    assert value_of("9" * 401, "integer", None, "java") == "9" * 401
    assert value_of("[" + "9" * 401 + "]", "array", None, "javascript") == ["9" * 401]
    assert value_of("[" + "9" * 400 + "]", "array", None, "javascript") == [int("9" * 400)]


def nested(depth: int) -> list[Any]:
    inner: list[Any] = []
    for _ in range(depth - 1):
        inner = [inner]
    return inner


@pytest.mark.parametrize(("kind", "head"), [("array", ""), ("dict", "{a: "), ("array", "[")])
def test_a_hundred_brackets_within_each_other_are_read_and_no_more(kind: str, head: str) -> None:
    """Whoever nests more deeply gets a wrong answer, not one that could not be graded."""
    for depth in (100, 101, 150):
        inner = depth - len(head[:1])
        text = head + "[" * inner + "]" * inner + ("}" if kind == "dict" else "]" * len(head))
        value: Any = {"a": nested(inner)} if kind == "dict" else nested(depth)
        assert value_of(text, kind, None, "javascript") == (value if depth <= 100 else text)
    flat = "[" + "[], " * 299 + "]"
    assert value_of(flat, "array", None, "javascript") == [[]] * 299
    assert value_of("[" + "[], " * 300 + "]", "array", None, "javascript") == "[" + "[], " * 300 + "]"


@pytest.mark.parametrize("depth", [99, 250, 290])
def test_a_call_of_deep_brackets_is_wrong_and_not_ungraded(depth: int) -> None:
    function = {"name": "find", "parameters": {"type": "dict", "properties": {"conf": {"type": "dict"}}}}
    call = {"name": "find", "arguments": json.dumps({"conf": "{a: " + "[" * depth + "]" * depth + "}"})}
    record = {
        "check": "calls",
        "language": "javascript",
        "function": [function],
        "ground_truth": [{"find": {"conf": [{"a": [1]}]}}],
        "tool_calls": [{"id": "c", "type": "function", "function": call}],
        "generation": "",
    }
    assert plain_grader("bfcl", {}).grade(record).outcome == "wrong"


VALUES = st.recursive(
    st.integers()
    | st.booleans()
    | st.text("ab ,:[]{}()", max_size=6)
    | st.floats(-1e9, 1e9).map(lambda x: round(x, 3)),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text("ab:,", min_size=1, max_size=3), inner, max_size=3)
    ),
    max_leaves=12,
)


def written(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f"'{value}'"
    if isinstance(value, list):
        return f"[{', '.join(map(written, value))}]"
    if isinstance(value, dict):
        return "{" + ",".join(f'"{key}": {written(inner)}' for key, inner in value.items()) + "}"
    return repr(value)


@given(st.lists(VALUES, max_size=4))
def test_any_value_is_read_as_it_was_written(values: list[Any]) -> None:
    assert value_of(written(values), "array", None, "javascript") == values


def test_every_type_has_its_class() -> None:
    assert {kind for kind, made in JAVA_TYPES.items() if made is list} == {"Array", "ArrayList", "Queue", "Stack"}
    assert {kind for kind, made in JAVA_TYPES.items() if made is dict} == {"HashMap", "Hashtable"}
    assert {kind for kind, made in JAVA_TYPES.items() if made is int} == {"byte", "short", "integer", "long"}
    assert {kind for kind, made in JAVA_TYPES.items() if made is float} == {"float", "double"}
    assert JAVA_TYPES["boolean"] is JAVASCRIPT_TYPES["Boolean"] is bool
    assert {kind for kind, made in JAVASCRIPT_TYPES.items() if made is int} == {"integer", "Bigint"}
    assert (JAVASCRIPT_TYPES["dict"], JAVASCRIPT_TYPES["array"], JAVASCRIPT_TYPES["float"]) == (dict, list, float)


def test_calls_of_fifty_thousand_characters_are_read() -> None:
    assert LONGEST == 50_000
    text = f"f(a='{'x' * (LONGEST - 7)}')"
    assert len(text) == LONGEST
    assert written_calls(text) == [ParsedCall("f", {"a": "x" * (LONGEST - 7)})]
    assert written_calls(text.replace("x", "xx", 1)) is None
