# SPDX-License-Identifier: Apache-2.0
"""All gold answers of real benchmarks: each is itself, in any harmless dress, and no other."""

from __future__ import annotations

import json
import os
import random
import re
from collections import defaultdict
from pathlib import Path

import pytest

from newskills.graders.math import equal
from newskills.graders.math.extraction import ExtractionPolicy, extract_by_policy
from newskills.graders.math.grader import MathGrader
from newskills_math.normalise import comparison_key, tidy_answer
from newskills_math.spellings import answer_spellings

MIRROR = os.environ.get("NEWSKILLS_MIRROR", "")
pytestmark = [
    pytest.mark.mirror,
    pytest.mark.skipif(not MIRROR, reason="NEWSKILLS_MIRROR, the offline mirror of benchmark data, is not set"),
]
FIELDS = {
    "gsm8k": "answer",
    "math-500": "answer",
    "hendrycks_math": "solution",
    "minerva_math": "solution",
    "olympiadbench": "final_answer",
    "amc23": "answer",
    "aime24": "expected_answer",
    "aime25": "expected_answer",
    "comp-math-24-25": "expected_answer",
    "gaokao2023en": "answer",
    "gaokao_math_cloze": "answer",
    "college_math": "answer",
}
_BARE_POINT = re.compile(r"(?<!\d)\.(?=\d)")


@pytest.fixture(scope="module")
def golds() -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for file in json.loads((Path(MIRROR) / "MANIFEST.json").read_text())["files"]:
        name = file["benchmarks"][0]
        if name not in FIELDS or not file["path"].endswith((".jsonl", ".txt")):
            continue
        for line in (Path(MIRROR) / file["path"]).read_text(encoding="utf-8").splitlines():
            if line.strip() and (gold := gold_of(json.loads(line)[FIELDS[name]], FIELDS[name])):
                found[name].append(gold)
    return found


def gold_of(value: object, field: str) -> str | None:
    if field == "solution":
        return extract_by_policy(str(value), ExtractionPolicy()).answer
    text = str(value[0] if isinstance(value, list) else value)
    text = text.removeprefix("['").removesuffix("']").replace("\\\\", "\\")
    return text.split("####")[-1].strip() or None


def test_a_gold_answer_in_a_box_is_correct(golds: dict[str, list[str]]) -> None:
    grader = MathGrader()
    distinct = {g for listed in golds.values() for g in listed}
    assert {"hendrycks_math", "math-500", "gaokao2023en", "college_math"} <= golds.keys()
    assert len(distinct) > 6_000
    boxed = ({"generation": rf"\boxed{{{gold}}}", "expected_answer": gold} for gold in distinct)
    assert not [row for row in boxed if grader.grade(row).outcome != "correct"]


def test_the_point_of_a_gold_answer_counts(golds: dict[str, list[str]]) -> None:
    """Golds such as `.35625`: a zero before the point changes nothing, without the point it is another number."""
    bare = {g for listed in golds.values() for g in listed if _BARE_POINT.search(g)}
    assert len(bare) >= 15
    assert [g for g in bare if equal(_BARE_POINT.sub("0.", g), g)[0] is not True] == []
    assert [g for g in bare if equal(_BARE_POINT.sub("", g), g)[0] is not False] == []


def test_a_gold_answer_is_itself_in_any_dress(golds: dict[str, list[str]]) -> None:
    total, wrong = 0, []
    for gold in {g for listed in golds.values() for g in listed}:
        for dress in (gold, *answer_spellings(gold)):
            total += 1
            if equal(dress, gold)[0] is not True:
                wrong.append((dress, gold))
    assert total > 20_000
    assert len(wrong) <= 0.0005 * total, wrong[:20]


@pytest.mark.nightly
def test_another_gold_answer_is_wrong(golds: dict[str, list[str]]) -> None:
    """Unless both say the same, which must then show: by the same text, or by the other direction agreeing."""
    chance = random.Random(17)
    equal_pairs = []
    for listed in golds.values():
        distinct = sorted(set(listed))
        for _ in range(600):
            pred, gold = chance.sample(distinct, 2)
            if equal(pred, gold)[0] and comparison_key(tidy_answer(pred)) != comparison_key(tidy_answer(gold)):
                equal_pairs.append((pred, gold))
    assert all(equal(gold, pred)[0] for pred, gold in equal_pairs)
    assert len(equal_pairs) <= 6, equal_pairs
