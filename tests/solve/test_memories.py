# SPDX-License-Identifier: Apache-2.0
"""Memories that a model keeps, against those of the leaderboard's own library."""

from __future__ import annotations

import inspect
import json
import random
from pathlib import Path
from typing import Any

import pytest

from newskills.base.records import Row
from newskills.graders.tool_calls.calls import ParsedCall
from newskills.solve.calls.memories import make_memory, similar_keys

_PLACE = "bfcl_eval.eval_checker.multi_turn_eval.func_source_code"
_WORDS = ("name", "coffee_machine", "home_city", "coffee_taste", "age", "Bad Key", "order_1", "2nd")


def reference(kind: str, folder: Path) -> Any:
    module = pytest.importorskip(f"{_PLACE}.memory_{kind}", reason="needs bfcl-eval and rank_bm25")
    memory = getattr(module, f"MemoryAPI_{kind}")()
    memory._load_scenario(
        {
            "model_result_dir": folder,
            "test_id": f"memory_{kind}_prereq_0-customer-0",
            "scenario": "customer",
        }
    )
    return memory


def same(ours: Row, theirs: Row) -> bool:
    """Messages differ in words; all else is equal."""
    if ours.keys() & {"error", "status"}:
        return ours.keys() == theirs.keys()
    if "ranked_results" in ours:
        pairs = zip(ours["ranked_results"], theirs["ranked_results"], strict=True)
        return all(a[1] == b[1] and a[0] == pytest.approx(b[0]) for a, b in pairs)
    return ours == theirs


def arguments(function: Any, chance: random.Random) -> Row:
    made: Row = {}
    for name in inspect.signature(function).parameters:
        if name in ("k", "top_k"):
            made[name] = chance.randint(1, 6)
        elif name in ("key", "query"):
            made[name] = chance.choice(_WORDS)
        else:
            made[name] = chance.choice(_WORDS) * chance.choice((1, 2, 60, 400, 2000))
    return made


@pytest.mark.parametrize("kind", ["kv", "rec_sum"])
def test_it_answers_as_the_leaderboard_does(kind: str, tmp_path: Path) -> None:
    theirs, ours, chance = reference(kind, tmp_path), make_memory(kind, {}), random.Random(7)
    names = [name for name, _ in inspect.getmembers(theirs, inspect.ismethod) if not name.startswith("_")]
    often = [name for name in names if not name.endswith("clear")]
    for step in range(1500):
        function = getattr(theirs, chance.choice(names if step % 100 == 99 else often))
        given = arguments(function, chance)
        if len(getattr(theirs, "memory", "")) > 20_000:  # there, replacing makes it grow without end
            function, given = theirs.memory_clear, {}
        if "old_text" in given and theirs.memory.count(given["old_text"]) * len(given["new_text"]) > 500_000:
            continue
        try:
            right = function(**given)
        except ZeroDivisionError:  # a search among no keys
            continue
        said = json.loads(ours.call(ParsedCall(function.__name__, given)))
        assert same(said, json.loads(json.dumps(right, default=float))), (function.__name__, given)
        if step % 50 == 0:
            ours = make_memory(kind, json.loads(json.dumps(ours.state())))


def letters(texts: Any) -> list[list[float]]:
    """Counts of letters as vectors of length 1: as good as any, to find a text by its own words."""
    found = []
    for text in texts:
        counts = [text.lower().count(chr(ord("a") + place)) + 0.01 for place in range(26)]
        length = sum(count * count for count in counts) ** 0.5
        found.append([count / length for count in counts])
    return found


def test_a_memory_by_vectors() -> None:
    memory = make_memory("vector", {}, letters)
    for text in ("likes strawberry matcha", "lives in Seattle", "x" * 301):
        answer = json.loads(memory.call(ParsedCall("core_memory_add", {"text": text})))
    assert "error" in answer
    found = json.loads(memory.call(ParsedCall("core_memory_retrieve", {"query": "matcha strawberry", "top_k": 1})))
    assert [entry["id"] for entry in found["result"]] == [0]
    again = make_memory("vector", json.loads(json.dumps(memory.state())), letters)
    assert again.visible_text() == memory.visible_text()
    assert json.loads(again.call(ParsedCall("core_memory_remove", {"vec_id": 0})))["status"]
    assert json.loads(again.call(ParsedCall("core_memory_add", {"text": "new"}))) == {"id": 2}
    updated = json.loads(again.call(ParsedCall("core_memory_update", {"vec_id": 1, "new_text": "lives in Rome"})))
    assert updated["status"]
    everything = json.loads(again.call(ParsedCall("core_memory_retrieve_all", {})))["result"]
    assert everything == [{"id": 1, "text": "lives in Rome"}, {"id": 2, "text": "new"}]
    assert json.loads(again.call(ParsedCall("archival_memory_retrieve", {"query": "Rome"}))) == {"result": []}
    for _ in range(60):
        answer = json.loads(again.call(ParsedCall("archival_memory_add", {"text": "x"})))
    assert "error" in answer
    assert len(again.state()["archive"]["entries"]) == 50


@pytest.mark.parametrize(
    "called",
    [
        ParsedCall("core_memory_add", {"key": "a"}),
        ParsedCall("core_memory_add", {"key": "a", "value": "b", "more": 1}),
        ParsedCall("__init__", {}),
        ParsedCall("_too_long", {}),
        ParsedCall("archival_memory_retrieve_all", {}),
    ],
)
def test_what_does_not_fit_is_told(called: ParsedCall) -> None:
    assert make_memory("kv", {}).call(called).startswith("Error during execution:")


def test_any_value_is_borne() -> None:
    memory = make_memory("kv", {})
    for value in (None, [], {}, 1.5, True, "\x00" * 400):  # type: ignore[var-annotated]
        for name in ("core_memory_add", "core_memory_replace"):
            json.loads(memory.call(ParsedCall(name, {"key": value, "value": value})))
        json.loads(memory.call(ParsedCall("core_memory_key_search", {"query": value, "k": value})))
    vectors = make_memory("vector", {}, letters)
    for value in (None, [], {}, True, "0"):
        json.loads(vectors.call(ParsedCall("core_memory_remove", {"vec_id": value})))
        json.loads(vectors.call(ParsedCall("core_memory_retrieve", {"query": value, "top_k": value})))


def test_similar_keys_of_nothing() -> None:
    assert similar_keys("a", []) == []
    assert similar_keys("b", ["a_b", "c"])[0][1] == "a_b"
