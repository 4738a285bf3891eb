# SPDX-License-Identifier: Apache-2.0
"""Relaxed extraction on the endings of replies: those that it was made with, those held back, and real solutions.

A case of the two files is `+ gold` or `- gold` (not what the reply says), then the end of the reply.
"""

from __future__ import annotations

import json
import os
import random
import re
from pathlib import Path
from typing import Any

import pytest

from newskills.graders.math.config import MathConfig
from newskills.graders.math.extraction import ExtractionPolicy, extract_by_policy
from newskills.graders.math.grader import MathGrader

HERE = Path(__file__).parent
RELAXED = MathGrader(MathConfig(relaxed_extraction=True))
MIRROR = os.environ.get("NEWSKILLS_MIRROR", "")
_BOX = re.compile(r"\\boxed\{((?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)\}")


def endings(name: str) -> list[tuple[str, str, bool]]:
    """(reply, gold, whether it says gold)."""
    cases = []
    for block in (HERE / name).read_text(encoding="utf-8").rstrip("\n").split("\n=====\n"):
        head, _, reply = block.partition("\n")
        cases.append((reply, head[2:], head[0] == "+"))
    return cases


def missed(cases: list[tuple[str, str, bool]]) -> list[tuple[str, str]]:
    wrong = []
    for reply, gold, says_it in cases:
        score = RELAXED.grade({"generation": reply, "expected_answer": gold})
        if (score.outcome == "correct") is not says_it:
            wrong.append((reply[-80:], gold))
    return wrong


def test_endings_that_relaxed_extraction_was_made_with() -> None:
    cases = endings("endings.txt")
    assert len(cases) >= 420
    assert len(missed(cases)) <= 0.02 * len(cases)


def test_endings_that_were_held_back() -> None:
    cases = endings("endings_held_back.txt")
    assert len(cases) >= 160
    assert len(missed(cases)) <= 0.05 * len(cases)


def test_endings_as_models_of_2026_write_them() -> None:
    cases = endings("endings_of_2026.txt")
    assert len(cases) >= 280
    assert len(missed(cases)) <= 0.02 * len(cases)
    claimed = [case for case in cases if not case[2]]
    assert len(claimed) >= 20
    assert not missed(claimed)


@pytest.mark.parametrize("policy", [RELAXED, MathGrader(MathConfig(extract_from_boxed=False))])
@pytest.mark.parametrize(
    "reply",
    [
        "The final answer is 14400. I hope it is correct.",
        "So the square has area $\\boxed{14400}$.\nThe final answer is 14400. I hope it is correct.",
        "The final answer is $14400$, since $120^2 = 14400$.",
        "The final answer is **14400**! Let me know if you have 1 more question.",
        "The final answer is 14400 (square metres).",
    ],
)
def test_the_expression_ends_with_its_statement(policy: MathGrader, reply: str) -> None:
    assert policy.grade({"generation": reply, "expected_answer": "14400"}).outcome == "correct"
    assert policy.grade({"generation": reply, "expected_answer": "120"}).outcome == "wrong"


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        (r"we get $x \le 3$.", r"x \le 3"),
        ("So $x = 1$ or $x = -2$.", "x = 1 or x = -2"),
        ("Final Answer: The largest n is 34.", "34"),
        ("The answer is that the limit does not exist.", "does not exist"),
        ("The area is $(x+1)^2 = x^2+2x+1$.", "(x+1)^2 = x^2+2x+1"),
        (r"so $\int x\,dx = \frac{x^2}{2} + C$", r"\frac{x^2}{2} + C"),
        ("the lines meet in (2, -1).", "(2, -1)"),
        ("there are 12 cats, or rather 13", "13"),
        ("private \ue000 signs: 5", "5"),
        ("I see.", None),
    ],
)
def test_closing_statements(reply: str, answer: str | None) -> None:
    policy = ExtractionPolicy(extract_regex=MathConfig().extract_regex, relaxed_extraction=True)
    assert extract_by_policy(reply, policy).answer == answer


def test_an_expression_of_the_users_own_may_match_several_lines() -> None:
    policy = ExtractionPolicy(extract_from_boxed=False, extract_regex=r"(?s)BEGIN(.*)END")
    assert extract_by_policy("BEGIN\n1, 2\n3, 4\nEND", policy).answer == "1, 2\n3, 4"


@pytest.mark.mirror
@pytest.mark.skipif(not MIRROR, reason="NEWSKILLS_MIRROR, the offline mirror of benchmark data, is not set")
def test_solutions_written_by_people_without_any_mark_of_the_answer() -> None:
    """Worked solutions of GSM8K without their `####`, and of MATH without their box: figures as of grader 4."""
    chance = random.Random(5)
    files = json.loads((Path(MIRROR) / "MANIFEST.json").read_text())["files"]
    found: dict[str, list[tuple[str, str, bool]]] = {"gsm8k": [], "hendrycks_math": []}
    for file in files:
        name = file["benchmarks"][0]
        if name in found and file["path"].endswith(".jsonl"):
            for line in (Path(MIRROR) / file["path"]).read_text(encoding="utf-8").splitlines():
                found[name].extend(solution(json.loads(line)))
    arithmetic = chance.sample(found["gsm8k"], 300)
    assert len(missed(arithmetic)) <= 0.05 * 300
    mathematics = chance.sample(found["hendrycks_math"], 300)
    assert len(missed(mathematics)) <= 0.25 * 300


def solution(row: dict[str, Any]) -> list[tuple[str, str, bool]]:
    if "solution" in row:
        boxes = _BOX.findall(row["solution"])
        return [(_BOX.sub(lambda m: m[1], row["solution"]), boxes[0], True)] if len(boxes) == 1 else []
    worked, _, gold = row["answer"].partition("####")
    return [(re.sub(r"<<.*?>>", "", worked).strip(), gold.strip(), True)]
