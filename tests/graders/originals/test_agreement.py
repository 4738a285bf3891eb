# SPDX-License-Identifier: Apache-2.0
"""Our graders agree with the authors' scorers on hundreds of replies, but where a reason is given."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from tests.graders.originals.replies import CASES
from tests.graders.plain import plain_grader

from newskills.base.records import Row
from newskills.graders.gaia import same_answer
from newskills.graders.reading.legal import MEASURES, LegalGrader
from newskills.graders.reading.memories import memory_score
from newskills.metrics.sections.legal import task_mean

FOLDER = Path(__file__).parent
Ours = Callable[[Row, str], float]


def _cells(row: Row, reply: str) -> float:
    return float(plain_grader("logic_grid", {}).grade({**row, "generation": reply}).fields["correct_cells"])


def _step(row: Row, reply: str) -> float:
    grader = plain_grader("exact", {"extract": "answer", "loose": True})
    return float(grader.grade({**row, "generation": reply}).outcome == "correct")


def _memory(row: Row, reply: str) -> float:
    return memory_score(reply, str(row["expected_answer"]), str(row["question_type"]))


def _short(row: Row, reply: str) -> float:
    return float(same_answer(reply, str(row["expected_answer"])))


def _program(row: Row, reply: str) -> float:
    return float(plain_grader("table_program", {}).grade({**row, "generation": reply}).outcome == "correct")


def _legal(row: Row, reply: str) -> float:
    fields = LegalGrader().grade({**row, "generation": reply}).fields
    if (counts := fields.get("name_counts")) is None:
        return float(fields["symbolic_correct"])
    return task_mean({"ssla/": counts}) / 100


def test_every_measure_of_legalbench_is_compared() -> None:
    assert {row["measure"] for row, _, _ in CASES["legalbench"]()} == set(MEASURES)


OURS: Mapping[str, Ours] = {
    "zebralogic": _cells,
    "gaia": _short,
    "locomo": _memory,
    "processbench": _step,
    "finqa": _program,
    "legalbench": _legal,
}
REASONS: Mapping[str, Mapping[str, str]] = {
    "zebralogic": {},
    "gaia": {},
    "locomo": {},
    "finqa": {},
    "legalbench": {},
    "processbench": {
        "decimals": "a step is a number: 3.0 is 3, which the authors' int() refuses",
        "text": "a box in a box is read to its end, where the authors' pattern stops at the first brace",
    },
}
"""Name → form → why we differ on purpose."""


@pytest.mark.parametrize("name", CASES)
def test_verdicts_are_the_same(name: str) -> None:
    recorded = [json.loads(line) for line in (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]
    cases = list(CASES[name]())
    assert [form for form, _ in recorded] == [form for _, form, _ in cases], "the replies changed: record again"
    assert len(cases) >= 290
    differ = {
        (form, reply): (value, ours)
        for (row, form, reply), (_, value) in zip(cases, recorded, strict=True)
        if abs((ours := OURS[name](row, reply)) - value) > 1e-4 and form not in REASONS[name]
    }
    assert differ == {}


@pytest.mark.parametrize("name", CASES)
def test_each_reason_is_needed(name: str) -> None:
    recorded = [json.loads(line) for line in (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]
    forms = {
        form
        for (row, form, reply), (_, value) in zip(CASES[name](), recorded, strict=True)
        if abs(OURS[name](row, reply) - value) > 1e-4
    }
    assert set(REASONS[name]) <= forms
