# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
import random
import re
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.recipes_public.loading import load
from tests.run.support import records
from tests.server import FakeServer

steps = load("openmathreasoning/steps.py")
run = load("openmathreasoning/run.py")

SUM = re.compile(r"What is (\d+) \+ (\d+)\?")
PROOF = "<problem>Show that 1 < 2.</problem>"
FORUM = f"<problem>What is 2 + 3?</problem>\nand <problem> What is 4 + 4? </problem>\n{PROOF}"


def teacher(body: dict[str, Any]) -> str:
    """Whoever is asked: what to say to each of the prompts."""
    asked = "\n".join(message["content"] for message in body["messages"])
    head = asked[:90]
    if "mathematics forum" in head:
        return FORUM
    if "What kind of problem" in head:
        return "Kind: proof" if "Show that" in asked else "Hm.\nKind: find"
    if "asks for a proof" in head:
        return "<problem>What is 1 + 1?</problem>"
    if "discussion it was taken from" in head:
        return "<answer>5</answer>" if "2 + 3" in asked.partition("Discussion:")[0] else "<none/>"
    if "Judge what the code" in asked:
        return "It searches.\nCode: novel, significant"
    if "Summarise the solution" in head:
        return f"In short {'so ' * (body['seed'] % 4)}it is \\{re.findall(r'boxed{[0-9]+}', asked)[-1]}."
    if "proposed solutions" in head or "long comparison" in asked:
        shown = zlib.crc32(
            asked.partition("Solution 0:")[2].partition("Go through")[0].partition("Comparison:")[0].encode()
        )
        return f"Compared {shown}{'.' * (body['seed'] % 4)}\nJudgment: {right_one(asked)}"
    return solution(asked, body["seed"])


def solution(asked: str, seed: int) -> str:
    one, other = map(int, SUM.findall(asked)[-1])
    wrong = seed % 3 == 2
    if "run Python code" in asked and "```output" not in asked:
        return f"Let me see.\n```python\nprint({one} + {other})\n```\n"
    return rf"So it is \boxed{{{one + other + wrong}}}."


def right_one(asked: str) -> int:
    one, other = map(int, SUM.findall(asked)[-1])
    solutions = asked.partition("Solution 0:")[2].split("Solution ")
    return next(n for n, text in enumerate(solutions) if rf"\boxed{{{one + other}}}" in text)


@pytest.mark.nightly
@pytest.mark.timeout(120)
def test_posts_become_three_kinds_of_training_data(tmp_path: Path) -> None:
    posts = tmp_path / "posts.jsonl"
    posts.write_text(json.dumps({"forum_post": "A: What is 2 + 3? B: 5."}) + "\n")
    (tmp_path / "benchmark.jsonl").write_text(json.dumps({"problem": "How many legs has a horse?"}) + "\n")
    with FakeServer(answer=teacher) as server:
        run.main(
            [
                f"--output_dir={tmp_path}/out",
                f"--posts={posts}",
                "--model=fake",
                f"--server_address={server.base_url}",
                "--num_solutions=3",
                "--stages=extract,problems,classify,kinds,convert,questions,answers,vote,gold,cot,tir,code,summaries,"
                "select,comparisons,data",
            ]
        )
    rows = tmp_path / "out" / "rows"
    gold = {row["problem"]: (row["expected_answer"], row["problem_type"]) for row in records(rows / "gold.jsonl")}
    assert gold == {
        "What is 2 + 3?": ("5", "has_answer_extracted"),
        "What is 4 + 4?": ("8", "no_answer_extracted"),
        "What is 1 + 1?": ("2", "no_answer_extracted"),
    }
    for row in records(rows / "tir.jsonl"):
        assert 1 <= row["num_code_executions"] <= row["total_code_executions"] <= 8
    groups = records(rows / "groups.jsonl")
    assert {row["problem"] for row in groups} == set(gold)
    assert all(0 < len(row["right"]) < row["num_solutions"] <= 6 for row in groups)
    assert all("so so so it is" in row["solutions"] for row in groups)  # the longest of the four summaries
    data = {name: records(tmp_path / "out" / "data" / f"{name}.jsonl") for name in ("cot", "tir", "genselect")}
    assert len(data["cot"]) == 3  # the right ones, each text once
    assert all("```output" in row["output"] for row in data["tir"])
    assert len(data["genselect"]) == len(groups)
    for row in data["genselect"]:
        assert row["output"].partition("\n")[0].endswith("...")
        assert row["expected_answer"] == row["output"].rpartition(" ")[2]


def test_problems_are_taken_once_and_reasoning_is_no_reply() -> None:
    said = {"forum_post": "P", "generation": f"<think><problem>No</problem></think>{FORUM}"}
    found = list(steps.problems([said, said, {"forum_post": "Q", "generation": "<none/>"}]))
    assert [row["problem"] for row in found] == ["What is 2 + 3?", "What is 4 + 4?", "Show that 1 < 2."]


def test_votes_without_agreement_are_no_answer() -> None:
    split = {"problem": "P", "votes": {"1": 2, "2": 2, "3": 1}, "predicted_answer": "1"}
    assert list(steps.gold([split, {**split, "votes": {}, "predicted_answer": None}])) == []
    (kept,) = steps.gold([{**split, "votes": {"1": 1, "2": 1}}])
    assert kept["expected_answer"] == "1"


def test_only_code_that_finds_something_is_kept() -> None:
    block = "```python\n1\n```\n"
    rows = [
        {"generation": said, "solution": block * count}
        for said, count in (
            ("Code: novel, significant", 2),
            ("Code: novel, significant", 3),
            ("Code: repeated, significant", 1),
            ("Code: novel, trivial", 1),
            ("nothing", 1),
        )
    ]
    assert [row["generation"] for row in steps.good_code(rows)] == [block * 2]


def test_sizes_of_groups_are_around_eight() -> None:
    draw = random.Random(0)
    sizes = Counter(steps.group_size(draw) for _ in range(20_000))
    assert set(sizes) == set(range(2, 17))
    assert max(sizes, key=sizes.__getitem__) in (7, 8, 9)
    assert sum(size * count for size, count in sizes.items()) / 20_000 == pytest.approx(8.3, abs=0.4)


@given(st.lists(st.booleans(), min_size=1, max_size=70))
def test_groups_have_right_and_wrong_ones_and_differ(verdicts: list[bool]) -> None:
    rows = [
        {"problem": "P", "id": str(n), "right": right, "generation": f"text {n}", "symbolic_correct": True}
        for n, right in enumerate(verdicts)
    ]
    found = list(steps.groups(rows))
    assert bool(found) == (len(set(verdicts)) == 2)
    assert len(found) <= 8
    for group in found:
        shown = re.findall(r"Solution (\d+):\ntext (\d+)", group["solutions"])
        assert [int(n) for n, _ in shown] == list(range(group["num_solutions"]))
        assert group["right"] == [int(n) for n, member in shown if verdicts[int(member)]]
        assert 0 < len(group["right"]) < group["num_solutions"] <= 16
    members = [frozenset(re.findall(r"text (\d+)", group["solutions"])) for group in found]
    assert len(members) == len(set(members))


def test_wrong_choices_are_dropped() -> None:
    group = {"problem": "P", "solutions": "S", "right": [1]}
    said = ("Judgment: 0", "Judgment: 0\nJudgment: 1", "none", "Judgment: 99999999999")
    (kept,) = steps.chosen_right([{**group, "generation": text} for text in said])
    assert (kept["comparison"], kept["expected_answer"]) == (said[1], "1")
