# SPDX-License-Identifier: Apache-2.0
"""HallusionBench (arXiv:2310.14566): questions that count together: by pair, by figure, easy and hard ones, alone."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from newskills.base.records import Row
from newskills.benchmarks.vlm.yes_no import hallusionbench_row
from newskills.metrics import make_metric
from tests.agreement.compare import FIGURES, Comparison, Verdict
from tests.agreement.originals import defined
from tests.graders.plain import plain_grader

_FIGURES = {
    "qAcc": ("get_eval_pair_all", "pair_accuracy"),
    "fAcc": ("get_eval_fig", "figure_accuracy"),
    "easy aAcc": ("get_eval_pair_easy", "easy_accuracy"),
    "hard aAcc": ("get_eval_pair_hard", "hard_accuracy"),
    "aAcc": ("get_eval_all", "accuracy"),
}
_WRONG, _RIGHT, _UNCLEAR = "012"


def rows() -> Iterator[Row]:
    for seed in range(64):
        yield {"seed": seed}


def forms(row: Row) -> Mapping[str, Any]:
    return {figure: [figure, _samples(row["seed"])] for figure in _FIGURES}


def _samples(seed: int) -> list[list[Any]]:
    """(kind, set, figure, input, question, right answer, verdict); some models have all right, or answer nothing."""
    draw = random.Random(seed)
    level = {0: 1.0, 1: 0.0}.get(seed % 8, draw.random())
    unclear = 1.0 if seed % 8 == 2 else 0.15 * draw.random()
    samples = []
    for kind in ("VD", "VS"):
        for group in range(3):
            for figure in range(1 + draw.randint(1, 2)):
                for question in range(2):
                    shown = draw.choice("12") if figure else "1" if kind == "VD" else "0"
                    verdict = _RIGHT if draw.random() < level else _WRONG
                    verdict = _UNCLEAR if draw.random() < unclear and seed % 8 != 0 else verdict
                    samples.append([kind, group, figure, shown, question, draw.choice("01"), verdict])
    return samples


def _raw(sample: list[Any]) -> Row:
    kind, group, figure, shown, question, right, _ = sample
    return {
        "category": kind,
        "subcategory": "chart",
        "visual_input": shown,
        "set_id": str(group),
        "figure_id": str(figure),
        "question_id": str(question),
        "question": "Is it?",
        "gt_answer": right,
        "filename": None if shown == "0" else f"./{kind}/chart/{group}_{figure}.png",
    }


def _replied(row: Row, verdict: str) -> str:
    """A reply that is worth the verdict."""
    if verdict == _UNCLEAR:
        return "There is nothing to tell from."
    letter = row["expected_answer"] if verdict == _RIGHT else "BA"["AB".index(row["expected_answer"])]
    return f"Answer: {letter}"


def ours(row: Row, reply: Any) -> float:
    figure, samples = reply
    return _numbers(json.dumps(samples)).get(_FIGURES[figure][1], 0.0)


@cache
def _numbers(samples: str) -> Mapping[str, float]:
    grader, metric = plain_grader("multichoice", {}), make_metric("hallusionbench")
    for place, sample in enumerate(json.loads(samples)):
        record = hallusionbench_row(_raw(sample), place)
        score = grader.grade({**record, "generation": _replied(record, sample[-1])})
        metric.update([{**record, **score.fields, "outcome": score.outcome, "outcome_cause": score.cause}])
    return {name: number.value / 100 for name, number in metric.numbers()["pass@1"].items()}


def original(folder: Path) -> Verdict:
    """Needs numpy. What the judge says of each reply is given."""
    import numpy

    names = [name for name, _ in _FIGURES.values()]
    utils = defined(folder / "utils.py", "assign_correctness", *names, np=numpy)

    def verdict(row: Row, reply: Any) -> float:
        figure, samples = reply
        data = [{**_raw(sample), "judged": sample[-1], "same": "1"} for sample in samples]
        utils.assign_correctness(data, "judged")
        count = getattr(utils, _FIGURES[figure][0])
        stats = count(data, "judged") if figure in ("qAcc", "aAcc") else count(data)
        return stats["correct"] / stats["total"] if stats["total"] else 0.0

    return verdict


COMPARISON = Comparison(
    name="hallusionbench",
    benchmarks=("hallusionbench",),
    scorer="HallusionBench `utils.py`",
    compared=FIGURES,
    repository="tianyi-lab/HallusionBench",
    rows=rows,
    forms=forms,
    original=original,
    ours=ours,
    left_out="GPT-4, which reads replies as right, wrong or unclear; ours reads the letter that the prompt asks for.",
)
