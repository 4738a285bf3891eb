# SPDX-License-Identifier: Apache-2.0
"""Verdicts of ours on `replies.py`, beside those of the authors' scorers that `record.py` wrote down."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from tests.agreement.compare import ANSWERS, WHOLE
from tests.graders.originals.replies import CASES
from tests.graders.plain import plain_grader

from newskills.base.records import Row
from newskills.graders.gaia import same_answer
from newskills.graders.reading.legal import LegalGrader
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


SCORERS: Mapping[str, str] = {
    "zebralogic": "github.com/WildEval/ZeroEval, `zebra_grid_eval.py`",
    "gaia": "GAIA's `question_scorer`, its copy in EvalScope",
    "locomo": "github.com/snap-research/locomo, `evaluation.py`",
    "processbench": "github.com/QwenLM/ProcessBench, `run_eval.py`",
    "finqa": "github.com/czyssrs/FinQA, `evaluate.py`",
    "legalbench": "github.com/HazyResearch/legalbench, `evaluation.py`",
}
PARTS_COMPARED: Mapping[str, str] = {
    "zebralogic": WHOLE,
    "gaia": ANSWERS,
    "locomo": ANSWERS,
    "processbench": WHOLE,
    "finqa": ANSWERS,
    "legalbench": WHOLE,
}
"""Name → the original that was run."""
CLOSE = 1e-4


def recorded(name: str) -> list[tuple[str, float]]:
    """(form, official verdict) of every reply."""
    lines = (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [(form, value) for form, value in map(json.loads, lines)]


def verdicts(name: str) -> Iterator[tuple[str, str, float, float]]:
    """(form, reply, official verdict, ours) of every reply."""
    for (row, form, reply), (_, value) in zip(CASES[name](), recorded(name), strict=True):
        yield form, reply, value, OURS[name](row, reply)


def agreement(name: str) -> tuple[int, float]:
    """(attempts, share of equal verdicts)."""
    same = [abs(ours - official) <= CLOSE for _, _, official, ours in verdicts(name)]
    return len(same), sum(same) / len(same)
