# SPDX-License-Identifier: Apache-2.0
"""What each kind of grader's records show: made by the graders themselves, and from records of any shape."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.graders.code.running_any import fenced, graded
from tests.view.results import HOSTILE, benchmark, record
from tests.view.test_viewer import Client, patiently

from newskills.base.records import Row
from newskills.graders.instructions.grader import IFEvalGrader
from newskills.graders.multichoice import MultichoiceGrader
from newskills.graders.tool_calls.grader import ToolCallGrader
from newskills.prompts.renderer import PromptOverrides, load_prompt
from newskills.view.faces import face_of, vote_block
from newskills.view.server import ViewOptions, serve_viewer


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[..., Client]]:
    monkeypatch.setenv("NEWSKILLS_CACHE", str(tmp_path / "cache"))
    with ExitStack() as stack:
        yield lambda *folders: Client(stack.enter_context(serve_viewer(ViewOptions(folders=folders))))


def block(row: Row, kind: str) -> Row:
    (found,) = [each for each in face_of(row) if each["kind"] == kind]
    return found


def test_a_program_shows_the_test_that_failed() -> None:
    tests = {"inputs": ["1 2\n", "5 6\n"], "outputs": ["3\n", "11\n"]}
    row = {"generation": fenced("print(3)"), "tests": tests}
    (score,) = graded("livecodebench", [row])
    assert score.outcome == "wrong"
    row |= score.fields
    assert block(row, "code")["text"].strip() == "print(3)"
    failed = block(row, "test")
    assert failed["title"] == "Test 2 of 2 failed"
    assert {part["name"]: part["text"].strip() for part in failed["parts"]} == {
        "input": "5 6",
        "expected": "11",
        "actual": "3",
        "error": "",
    }
    right = {"generation": fenced("print(sum(map(int, input().split())))"), "tests": tests}
    right |= graded("livecodebench", [right])[0].fields
    assert [each["kind"] for each in face_of(right)] == ["code"]


def instructions_row() -> Row:
    """A record of instructions, the second of which was not followed."""
    row: Row = {
        "generation": "**no commas here** at all",
        "prompt": "Write.",
        "instruction_id_list": ["punctuation:no_comma", "length_constraints:number_words"],
        "kwargs": [{}, {"num_words": 50, "relation": "at least"}],
    }
    return row | IFEvalGrader().grade(row).fields


def test_instructions_show_which_were_followed() -> None:
    items = block(instructions_row(), "checks")["items"]
    assert [(item["text"], item["passed"]) for item in items] == [
        ("punctuation:no_comma", True),
        ("length_constraints:number_words", False),
    ]
    assert items[1]["note"] == "num_words=50, relation=at least"


def options_row() -> Row:
    """A record whose reply chose another option than the expected one."""
    question = "Which is a fruit?\nA. stone\nB. apple\nC. cloud"
    row: Row = {"problem": question, "expected_answer": "B", "generation": "So the answer is \\boxed{C}."}
    return row | MultichoiceGrader().grade(row).fields


def test_options_show_the_chosen_and_the_expected_one() -> None:
    row = options_row()
    items = block(row, "options")["items"]
    assert [(item["label"], item["text"], item["chosen"], item["gold"]) for item in items] == [
        ("A", "stone", False, False),
        ("B", "apple", False, True),
        ("C", "cloud", True, False),
    ]
    for options in (["stone", "apple", "cloud"], {"A": "stone", "B": "apple", "C": "cloud"}):
        assert block({**row, "options": options}, "options")["items"] == items
    assert not [each for each in face_of({**row, "problem": "A. one\nC. two"}) if each["kind"] == "options"]


def calls_row() -> Row:
    """A record of two calls of tools where one was expected, the first with other arguments."""
    function = {
        "name": "area",
        "parameters": {"type": "dict", "properties": {"base": {"type": "integer"}, "unit": {"type": "string"}}},
    }
    row: Row = {
        "check": "calls",
        "language": "python",
        "function": [function],
        "ground_truth": [{"area": {"base": [10], "unit": ["cm", ""]}}],
        "generation": "",
        "tool_calls": [
            {"name": "area", "arguments": '{"base": 3, "colour": "red"}'},
            {"name": "volume", "arguments": "{}"},
        ],
    }
    return row


def test_calls_show_each_argument_beside_the_expected_one() -> None:
    row = calls_row()
    assert ToolCallGrader().grade(row).outcome == "wrong"
    rows = block(row, "calls")["rows"]
    assert [(one["expected"], one["actual"]) for one in rows] == [("area", "area"), (None, "volume")]
    assert [(one["name"], one["expected"], one["actual"]) for one in rows[0]["arguments"]] == [
        ("base", "10", "3"),
        ("unit", 'cm or ""', None),
        ("colour", "", "red"),
    ]


def agent() -> Row:
    """A record as agents leave it."""
    conversation = [
        {"role": "user", "content": "Mend it."},
        {"role": "assistant", "content": "I look first.", "tool_calls": []},
        {"role": "tool", "content": "a.py"},
        {"role": "assistant", "content": "Now I run it."},
        {"role": "tool", "content": "NameError"},
    ]
    steps = [
        {"command": "ls", "status": "completed", "exit_code": 0, "seconds": 0.1, "output_bytes": 4},
        {"command": f"python a.py # {HOSTILE}", "status": "completed", "exit_code": 1, "seconds": 2.0},
    ]
    patch = "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x\n+y\n"
    report = {
        "patch_exists": True,
        "patch_successfully_applied": True,
        "tests_timed_out": False,
        "resolved": False,
    }
    told = {"swe-bench-metrics": report, "test_output": "1 failed", "exit_status": "submitted"}
    return {"conversation": conversation, "steps": steps, "model_patch": patch, **told}


def test_agents_show_steps_patch_and_tests() -> None:
    row = agent()
    steps = block(row, "steps")
    assert [(one["thought"], one["output"], one["failed"]) for one in steps["items"]] == [
        ("I look first.", "a.py", False),
        ("Now I run it.", "NameError", True),
    ]
    assert steps["ended"] == "submitted"
    assert block(row, "diff")["text"].startswith("diff --git")
    assert [(one["text"], one["passed"]) for one in block(row, "checks")["items"]] == [
        ("patch exists", True),
        ("patch successfully applied", True),
        ("tests ended in time", True),
        ("resolved", False),
    ]
    assert block(row, "output")["text"] == "1 failed"


def test_judges_show_both_orders() -> None:
    row = {"judgement-gen-base": "[[A>B]]", "judgement-base-gen": "[[B>A]]", "arena_games": ["A>B", "B>A"]}
    judged = block(row, "judgements")
    assert [(one["title"], one["text"]) for one in judged["items"]] == [
        ("First order: A is this model, B the baseline", "[[A>B]]"),
        ("Second order: A is the baseline, B this model", "[[B>A]]"),
    ]
    assert judged["note"] == "arena games: A>B, B>A"


def test_votes_are_counted() -> None:
    (made,) = vote_block(["4", "5", "4", None], "5")
    assert [(one["answer"], one["count"], one["gold"]) for one in made["groups"]] == [
        ("4", 2, False),
        ("5", 1, True),
        (None, 1, False),
    ]
    assert vote_block(["4"], "4") == vote_block([None, None], "4") == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
FIELDS = [
    *("completion", "failed_test", "test_classes_passed", "instruction_id_list", "strict_eval", "loose_eval"),
    *("kwargs", "expected_answer", "predicted_answer", "options", "problem", "ground_truth", "check"),
    *("tool_calls", "generation", "judgement", "judgement-a", "swe-bench-metrics", "task-tests", "test_output"),
    *("model_patch", "steps", "conversation", "exit_status", "suspicious", "arena_games"),
]


@given(st.dictionaries(st.sampled_from(FIELDS), JSON | st.just("calls") | st.just("A"), max_size=8))
def test_any_record_has_a_face_that_is_json(row: dict[str, Any]) -> None:
    json.dumps(face_of(row))


def test_a_page_has_the_face_and_the_votes(tmp_path: Path, shown: Callable[..., Client]) -> None:
    root = tmp_path / "results"
    seeds = [[record(0, outcome=outcome)] for outcome in ("correct", "wrong", "wrong")]
    benchmark(root / "base", "sums", seeds)
    benchmark(root / "base", "agents", [[record(0, outcome="wrong", **agent())]])
    client = shown(root)
    patiently(client, "benchmark", run="base", benchmark="sums")
    page = client.get("sample", run="base", benchmark="sums", file=0, number=0)
    assert [each["kind"] for each in page["face"]] == ["votes"]
    assert [group["count"] for group in page["face"][0]["groups"]] == [2, 1]
    patiently(client, "benchmark", run="base", benchmark="agents")
    page = client.get("sample", run="base", benchmark="agents", file=0, number=0)
    assert [each["kind"] for each in page["face"]] == ["checks", "output", "diff", "steps"]


def test_the_prompt_of_a_judge_is_rendered_again(tmp_path: Path, shown: Callable[..., Client]) -> None:
    prompt = load_prompt("judge/math", PromptOverrides())
    row = record(1, outcome="wrong") | {
        "judgement": "Judgement: No",
        "judge_correct": False,
        "judge_model": "judge-model",
        "judge_prompt": f"{prompt.name} {prompt.hash}",
    }
    rows = [row, row | {"judge_prompt": "judge/math 0"}, row | {"judge_prompt": "no/such x"}]
    benchmark(tmp_path / "run", "judged", [rows])
    client = shown(tmp_path / "run")
    patiently(client, "benchmark", run="run", benchmark="judged")
    pages = [client.get("sample", run="run", benchmark="judged", file=0, number=number) for number in range(3)]
    faces = [{block["kind"]: block for block in page["face"]} for page in pages]
    assert faces[0]["judgements"]["note"] == f"judge correct: false · judge-model · {prompt.name} {prompt.hash}"
    assert "What is 1 times one?" in faces[0]["question"]["items"][-1]["text"]
    assert faces[0]["question"]["note"] == f"Rendered again with prompt {prompt.name} {prompt.hash}."
    assert "but the judge had judge/math 0" in faces[1]["question"]["note"]
    assert "question" not in faces[2]
