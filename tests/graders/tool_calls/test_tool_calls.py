# SPDX-License-Identifier: Apache-2.0
"""Function calls: what is read, what is accepted, what conversations lead to."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.graders.plain import plain_grader

from newskills.base.records import Row, Score
from newskills.base.store import read_rows
from newskills.benchmarks import get_benchmark
from newskills.benchmarks.data import prepare
from newskills.benchmarks.downloads.fetch import FetchOptions
from newskills.benchmarks.tool_calling.bfcl import CATEGORIES
from newskills.graders import cpu_seconds
from newskills.graders.tool_calls.calls import ParsedCall, answered_calls, read_calls, written_calls
from newskills.graders.tool_calls.literals import value_of
from newskills.graders.tool_calls.wanted import wanted_calls, wanted_turns

GRADER = plain_grader("bfcl", {})
FUNCTION: Row = {
    "name": "math.area",
    "parameters": {
        "type": "dict",
        "properties": {
            "base": {"type": "integer"},
            "height": {"type": "float"},
            "unit": {"type": "string"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "more": {"type": "dict"},
        },
        "required": ["base"],
    },
}
WANTED = {
    "base": [10],
    "height": [5.0, ""],
    "unit": ["sq. cm", "cm2", ""],
    "tags": [["Old", "New York"], ""],
    "more": [{"deep": [True], "far": [1, ""]}, ""],
}
RECORD: Row = {
    "check": "calls",
    "language": "python",
    "function": [FUNCTION],
    "ground_truth": [{"math.area": WANTED}],
    "generation": "",
}


def grade(**fields: Any) -> Score:
    return GRADER.grade({**RECORD, **fields})


def called(name: str = "math_area", /, **arguments: Any) -> list[Row]:
    return [{"name": name, "arguments": arguments}]


@pytest.mark.parametrize(
    "calls",
    [
        called(base=10),
        called("math.area", base=10),
        called(base=10, height=5),
        called(base=10, height=5.0, unit="SQ CM"),
        called(base=10, tags=["old", "new-york"]),
        called(base=10, more={"deep": True}),
        called(base=10, more={"far": 1, "deep": True}),
        [{"name": "math_area", "arguments": '{"base": 10}'}],
    ],
)
def test_accepted_calls(calls: list[Row]) -> None:
    assert grade(tool_calls=calls).outcome == "correct"


@pytest.mark.parametrize(
    "calls",
    [
        called(base=11),
        called(base="10"),
        called(base=10.0),
        called(base=True),
        called(base=None),
        called(height=5),
        called("area", base=10),
        called(base=10, height="5"),
        called(base=10, unit="m"),
        called(base=10, unit=None),
        called(base=10, other=1),
        called(base=10, tags=["New York", "old"]),
        called(base=10, tags=[1]),
        called(base=10, more={"far": 1}),
        called(base=10, more={"deep": True, "x": 1}),
        called(base=10, more=[]),
        [*called(base=10), *called(base=10)],
        [{"name": "math_area", "arguments": "{base"}],
        [{"name": "math_area", "arguments": "[10]"}],
        [{"name": None, "arguments": {}}],
        ["nonsense"],
    ],
)
def test_calls_that_are_not_accepted(calls: list[Any]) -> None:
    assert grade(tool_calls=calls).outcome == "wrong"


def test_settings_of_older_scripts_are_taken() -> None:
    made = plain_grader("bfcl", {"model": "gpt-4", "partial_eval": True, "timeout": 300})
    assert cpu_seconds(made) == 300
    assert cpu_seconds(GRADER) == 10


def test_parallel_calls_in_any_order() -> None:
    goals = [{"math.area": {"base": [1, 2]}}, {"math.area": {"base": [1]}}, {"math.area": {"base": [3]}}]
    calls = [*called(base=3), *called(base=1), *called(base=2)]
    assert grade(tool_calls=calls, ground_truth=goals).outcome == "correct"
    assert grade(tool_calls=calls[:2], ground_truth=goals).outcome == "wrong"
    assert grade(tool_calls=[*calls[:2], *called(base=3)], ground_truth=goals).outcome == "wrong"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[math.area(base=10, height=5)]", [ParsedCall("math.area", {"base": 10, "height": 5})]),
        ("f(a=[1, 'x'], b={'k': None})", [ParsedCall("f", {"a": [1, "x"], "b": {"k": None}})]),
        ("```python\n[f(), g(a=-1)]\n```", [ParsedCall("f", {}), ParsedCall("g", {"a": -1})]),
        ("[f(a=true, b=someVariable)]", [ParsedCall("f", {"a": True, "b": "someVariable"})]),
        ("[f(1)]", [ParsedCall("f", {}, (1,))]),
        ("[f(a=__import__('os').system('x'))]", None),
        ("[f(a=g(1))]", None),
        ("[f(**x)]", None),
        ("I cannot do this (sorry).", None),
        ("f(" * 5000, None),
        ("", None),
    ],
)
def test_calls_in_a_text(text: str, found: list[ParsedCall] | None) -> None:
    assert written_calls(text) == found


def test_calls_in_tags() -> None:
    text = '<think>[f(a=1)]</think><tool_call>\n{"name": "g", "arguments": {"a": 2}}\n</tool_call>'
    assert answered_calls({"generation": text}) == ([ParsedCall("g", {"a": 2})], True)
    assert answered_calls({"generation": "<tool_call>{</tool_call>"}) == ([], False)
    assert read_calls([{"name": "f", "arguments": ""}]) == ([ParsedCall("f", {})], True)


@settings(max_examples=200, database=None)
@given(st.text(max_size=60) | st.text(alphabet="f(a=1,'\"[]{}):-* \n<tol_c>", max_size=60))
def test_any_text_gets_a_verdict(text: str) -> None:
    for check in ("calls", "irrelevance", "relevance", "answer"):
        assert grade(check=check, generation=text).outcome in ("correct", "wrong", "no_answer", "unscored")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=200, database=None)
@given(st.dictionaries(st.sampled_from(list(WANTED)), JSON))
def test_any_arguments_get_a_verdict(arguments: Row) -> None:
    assert grade(tool_calls=called(**arguments)).outcome in ("correct", "wrong")


@pytest.mark.parametrize(
    ("check", "fields", "outcome"),
    [
        ("irrelevance", {"generation": "There is no function for this."}, "correct"),
        ("irrelevance", {"tool_calls": called(base=1)}, "wrong"),
        ("irrelevance", {"generation": "[f(a=1)]"}, "wrong"),
        ("irrelevance", {"tool_calls": [{"name": "f", "arguments": "{"}]}, "correct"),
        ("irrelevance", {"finish_reason": "length"}, "no_answer"),
        ("relevance", {"tool_calls": called(base=1)}, "correct"),
        ("relevance", {"generation": "No."}, "wrong"),
        ("relevance", {"generation": ""}, "no_answer"),
        ("answer", {"generation": "It is Paris.", "ground_truth": ["London", "paris"]}, "correct"),
        ("answer", {"generation": "Parisian", "ground_truth": ["Paris"]}, "wrong"),
        ("answer", {"generation": "", "ground_truth": ["Paris"]}, "no_answer"),
        ("calls", {"generation": "I would rather not."}, "wrong"),
        ("calls", {"generation": ""}, "no_answer"),
        ("calls", {"ground_truth": [{"unknown": {}}], "tool_calls": called(base=1)}, "unscored"),
        ("nonsense", {}, "unscored"),
    ],
)
def test_checks(check: str, fields: Row, outcome: str) -> None:
    score = grade(check=check, **{"generation": "", **fields})
    assert score.outcome == outcome
    assert score.fields["is_correct"] is (None if outcome == "unscored" else outcome == "correct")


@pytest.mark.parametrize(
    ("text", "kind", "item", "value"),
    [
        ("5", "integer", None, 5),
        ("5L", "long", None, 5),
        ("5", "long", None, "5"),
        ("2.5f", "float", None, 2.5),
        ("2.5", "float", None, "2.5"),
        ("1e3", "double", None, 1000.0),
        ("true", "boolean", None, True),
        ("True", "boolean", None, "True"),
        ("'c'", "char", None, "'c'"),
        ("any thing", "any", None, "any thing"),
        ("new int[]{1, 2}", "Array", "integer", [1, 2]),
        ('new String[] { "a, b", "c" }', "Array", "String", ["a, b", "c"]),
        ("new int[]{}", "Array", "integer", []),
        ("{1, 2}", "Array", "integer", "{1, 2}"),
        ("[1, 2]", "Array", "integer", "[1, 2]"),
        ('["a"]', "ArrayList", "String", '["a"]'),
        ("new int[]{1, 2}", "ArrayList", "integer", "new int[]{1, 2}"),
        ("new ArrayList<>(Arrays.asList(1L, 2L))", "ArrayList", "long", [1, 2]),
        ('new ArrayList<String>() {{ add("a"); add("b"); }}', "ArrayList", "String", ["a", "b"]),
        ("new ArrayList<>()", "ArrayList", "any", []),
        ('new HashMap<String, Object>() {{ put("a", 1); put("b", "x"); }}', "HashMap", None, {"a": 1, "b": "x"}),
        ("new HashMap<>()", "HashMap", None, {}),
        ("9" * 5000, "integer", None, "9" * 5000),
    ],
)
def test_java(text: str, kind: str, item: str | None, value: Any) -> None:
    assert value_of(text, kind, item, "java") == value


@pytest.mark.parametrize(
    ("text", "kind", "item", "value"),
    [
        ("'a'", "String", None, "a"),
        ("a", "String", None, "a"),
        ("7", "integer", None, 7),
        ("7.5", "float", None, 7.5),
        ("7n", "Bigint", None, 7),
        ("false", "Boolean", None, False),
        ("[1, 2]", "array", "integer", [1, 2]),
        ("new Array('a', 'b')", "array", "String", ["a", "b"]),
        ("[[1, 2], [3]]", "array", None, [[1, 2], [3]]),
        ("[]", "array", "String", []),
        ("{a: 1, 'b': \"x: y\", c: [1, {d: true}]}", "dict", None, {"a": 1, "b": "x: y", "c": [1, {"d": True}]}),
        ("{}", "dict", None, {}),
        ("[1", "array", "integer", "[1"),
        ("[" * 100_000, "array", None, "[" * 100_000),
        ('"' * 99_999, "dict", None, '"' * 99_999),
    ],
)
def test_javascript(text: str, kind: str, item: str | None, value: Any) -> None:
    assert value_of(text, kind, item, "javascript") == value


@pytest.fixture(scope="session")
def bfcl(mirror: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bfcl")
    for category in CATEGORIES:
        benchmark = get_benchmark(f"bfcl_v4.{category}")
        prepare(benchmark, data_dir=folder, options=FetchOptions(mirror=str(mirror), offline=True))
    return folder


@pytest.mark.mirror
@pytest.mark.parametrize("category", [name for name in CATEGORIES if not name.startswith("multi_turn")])
def test_real_rows(bfcl: Path, category: str) -> None:
    rows = list(read_rows(bfcl / "bfcl_v4" / category / "test.jsonl"))
    assert len(rows) == CATEGORIES[category]
    right, wrong = Counter[str](), Counter[str]()
    failed = {}
    for row in rows:
        assert row["messages"][-1]["role"] == "user"
        tool = row["tools"][0]["function"]["name"] if row["tools"] else "none"
        if row["check"] == "irrelevance":
            good: list[Row] = []
            bad: list[Any] = [{"name": tool, "arguments": {}}]
        elif row["check"] == "relevance":
            good, bad = [{"name": tool, "arguments": {}}], []
        else:
            good = wanted_calls(row)
            bad = [*good[:-1], {**good[-1], "arguments": {**good[-1]["arguments"], "unheard_of": 1}}]
        score = GRADER.grade({**row, "generation": "Hm.", "tool_calls": good})
        right[score.outcome] += 1
        if score.outcome != "correct":
            failed[row["id"]] = score.why
        wrong[GRADER.grade({**row, "generation": "Hm.", "tool_calls": bad}).outcome] += 1
    assert sum(not row["tools"] for row in rows) == (4 if category == "live_irrelevance" else 0)
    assert failed.keys() == get_benchmark(f"bfcl_v4.{category}").misprints.keys()
    assert wrong == {"wrong": len(rows)}


@pytest.mark.mirror
@pytest.mark.parametrize("category", [name for name in CATEGORIES if name.startswith("multi_turn")])
def test_real_conversations(bfcl: Path, category: str) -> None:
    pytest.importorskip("bfcl_eval", reason="needs the simulated services of bfcl-eval")
    rows = list(read_rows(bfcl / "bfcl_v4" / category / "test.jsonl"))
    assert len(rows) == CATEGORIES[category]
    for row in rows[::4]:
        turns = wanted_turns(row)
        score = GRADER.grade({**row, "tool_call_turns": turns})
        assert score.outcome == "correct", (row["id"], score.why)
        last = max(i for i, turn in enumerate(turns) if turn)
        for worse in (turns[:last], [*turns[:last], [], *turns[last + 1 :]], [*turns, []]):
            assert GRADER.grade({**row, "tool_call_turns": worse}).outcome == "wrong"
    assert {turn for row in rows for turn in row.get("late_tools", {})} == (
        {turn for row in rows for turn in row.get("missed_function", {})}
    )


FILES: Row = {
    "id": "multi_turn_base_x",
    "check": "conversation",
    "involved_classes": ["GorillaFileSystem", "MathAPI"],
    "initial_config": {"GorillaFileSystem": {"root": {"home": {"type": "directory", "contents": {}}}}},
    "ground_truth": [["mkdir(dir_name='a')"], [], ["cd(folder='a')", "pwd()"]],
}


def step(name: str, **arguments: Any) -> list[Row]:
    return [{"name": name, "arguments": arguments}]


@pytest.mark.parametrize(
    ("turns", "why"),
    [
        ([[step("mkdir", dir_name="a")], [], [step("cd", folder="a"), step("pwd")]], ""),
        ([[step("ls"), step("mkdir", dir_name="a")], [], [step("cd", folder="a"), step("pwd")]], ""),
        ([[step("mkdir", dir_name="b")], [], [step("cd", folder="a"), step("pwd")]], "turn 1: another state"),
        ([[step("mkdir", dir_name="a")], [], [step("cd", folder="a")]], "turn 3: an answer"),
        ([[step("mkdir", dir_name="a")], [], []], "turn 3: no call"),
        ([[step("mkdir", dir_name="a")], []], "ended after 2 of 3"),
        ([[step("__init__"), step("_load_scenario")], [], []], "turn 1"),
        ([[step("power", base=1e14, exponent=1e9)], [], []], "turn 1"),
        ([[step("square_root", number=2, precision=10**9)], [], []], "turn 1"),
    ],
)
def test_conversations(turns: list[Any], why: str) -> None:
    pytest.importorskip("bfcl_eval", reason="needs the simulated services of bfcl-eval")
    score = GRADER.grade({**FILES, "tool_call_turns": turns})
    assert score.outcome == ("wrong" if why else "correct")
    assert why in score.why


def verdicts(rows: list[Row]) -> tuple[Counter[str], Counter[str]]:
    """Outcomes of the wanted calls, and of the wanted calls with one more."""
    right = Counter(GRADER.grade({**row, "tool_calls": wanted_calls(row)}).outcome for row in rows)
    more = [{"name": "more", "arguments": {}}]
    wrong = Counter(GRADER.grade({**row, "tool_calls": wanted_calls(row) + more}).outcome for row in rows)
    return right, wrong  # type: ignore[return-value]


@pytest.mark.mirror
def test_api_bank(mirror: Path, tmp_path: Path) -> None:
    benchmark = get_benchmark("api-bank")
    done = prepare(benchmark, data_dir=tmp_path, options=FetchOptions(mirror=str(mirror), offline=True))
    rows = list(read_rows(done.splits[0].path))
    grader = plain_grader(benchmark.grader, {})
    assert {grader.grade({**row, "tool_calls": wanted_calls(row)}).outcome for row in rows} == {"correct"}
    more = {"name": "more", "arguments": {}}
    doubled = [{**row, "tool_calls": [*wanted_calls(row), more]} for row in rows]
    assert {grader.grade(row).outcome for row in doubled} == {"wrong"}
    assert len(rows) == 389
    assert all(set(row["ground_truth"][0]) <= {one["name"] for one in row["function"]} for row in rows)
    shown = [message for row in rows for message in row["messages"]]
    assert {message["role"] for message in shown} == {"system", "user", "assistant", "tool"}


def test_complexfuncbench() -> None:
    raw = next(iter(read_rows(Path(__file__).parents[2] / "benchmarks" / "raw" / "complexfuncbench.jsonl")))
    mapping = get_benchmark("complexfuncbench").row
    assert mapping is not None
    rows = list(mapping(raw, 0))
    assert [row["id"] for row in rows] == ["Flights-0-1", "Flights-0-3"]
    assert [len(row["messages"]) for row in rows] == [1, 4]
    assert [message["role"] for message in rows[1]["messages"]] == ["user", "assistant", "tool", "tool"]
    assert verdicts(rows) == ({"correct": 2}, {"wrong": 2})
    swapped = list(reversed(wanted_calls(rows[0])))
    assert GRADER.grade({**rows[0], "tool_calls": swapped}).outcome == "correct"


@pytest.mark.parametrize("language", ["python", "java", "javascript"])
def test_verdicts_of_the_leaderboards_own_check(language: str) -> None:
    """`recorded.json`: what bfcl-eval 2026.3.23 says of generated calls."""
    recorded = json.loads(Path(__file__).with_name("recorded.json").read_text(encoding="utf-8"))
    cases = [case for case in recorded["cases"] if case[0] == language]
    assert {case[3] for case in cases} == {True, False}
    for _, name, arguments, valid in cases:
        score = grade(
            language=language,
            function=[recorded["functions"][language]],
            ground_truth=[{"shop.find": recorded["accepted"][language]}],
            tool_calls=called(name, **arguments),
        )
        assert (score.outcome == "correct") is valid, (arguments, score.why)
