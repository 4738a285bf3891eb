# SPDX-License-Identifier: Apache-2.0
"""Log-probabilities of continuations, as lm-evaluation-harness makes acc, acc_norm and mc2 of them."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from newskills.base.records import Row
from tests.agreement.compare import FIGURES, Comparison, Verdict, by_grader
from tests.agreement.originals import defined

_WORDS = (
    "a",
    "red",
    "house",
    "stands",
    "quietly",
    "between",
    "the",
    "tall",
    "trees",
    "über",
    "naïve",
    "日本",
    "end.",
)


def rows() -> Iterator[Row]:
    draw = random.Random("likelihood")
    for task in ("acc", "acc_norm", "mc2", "greedy"):
        for _ in range(25):
            count = 1 if task == "greedy" else draw.choice((2, 2, 4, 5))
            texts = [" " + " ".join(draw.choices(_WORDS, k=draw.randint(1, 9))) for _ in range(count)]
            right = draw.randrange(count)
            truths = [place == right or draw.random() < 0.4 for place in range(count)]
            row: Row = {"task": task, "continuations": texts, "expected_answer": right}
            yield row | ({"true_continuations": truths} if task == "mc2" else {})


def forms(row: Row) -> Mapping[str, Any]:
    """Likelihoods that favour the right one, another one, short ones, or none."""
    texts, right = row["continuations"], row["expected_answer"]
    draw = random.Random(repr(row))
    lengths = [len(text) - 1 for text in texts]
    made = {
        "right by far": [-2.0 if place == right else -40.0 for place in range(len(texts))],
        "wrong by far": [-40.0 if place == right else -2.0 for place in range(len(texts))],
        "by length": [-1.5 * length for length in lengths],
        "nearly by length": [-1.5 * length - (place == right) * 0.01 for place, length in enumerate(lengths)],
        "all alike": [-7.0 for _ in texts],
        "drawn": [-draw.uniform(0.5, 60) for _ in texts],
        "drawn close": [-draw.uniform(9, 10) for _ in texts],
        "far away": [-draw.uniform(900, 2000) for _ in texts],
    }
    greedy = draw.random() < 0.5
    return {form: {"loglikelihoods": values, "greedy": [greedy] * len(texts)} for form, values in made.items()}


def ours(row: Row, reply: Any) -> float | None:
    if row["task"] == "mc2":
        return by_grader("likelihood_mass")(row, reply)
    return by_grader("loglikelihood", value="acc" if row["task"] == "greedy" else row["task"])(row, reply)


def original(folder: Path) -> Verdict:
    """Needs numpy. The methods alone: tasks want their data sets when they are made. No number is no verdict."""
    numpy = import_module("numpy")
    softmax = defined(folder / "lm_eval" / "utils.py", "softmax", np=numpy).softmax
    methods = defined(
        folder / "lm_eval" / "api" / "task.py",
        "ConfigurableTask.process_results",
        np=numpy,
        utils=SimpleNamespace(softmax=softmax),
    )
    truthful = defined(
        folder / "lm_eval" / "tasks" / "truthfulqa" / "utils.py", "process_results_mc2", np=numpy
    ).process_results_mc2

    def verdict(row: Row, reply: Any) -> float | None:
        results = list(zip(reply["loglikelihoods"], reply["greedy"], strict=True))
        if row["task"] == "mc2":
            # its labels stand with all true ones first
            order = sorted(range(len(results)), key=lambda place: not row["true_continuations"][place])
            labels = [int(row["true_continuations"][place]) for place in order]
            mass = float(truthful({"mc2_targets": {"labels": labels}}, [results[place] for place in order])["acc"])
            return None if math.isnan(mass) else mass
        task = SimpleNamespace(
            config=SimpleNamespace(process_results=None),
            OUTPUT_TYPE="loglikelihood" if row["task"] == "greedy" else "multiple_choice",
            _metric_fn_list=dict.fromkeys(("acc", "acc_norm")),
            doc_to_choice=lambda doc: [text.strip() for text in row["continuations"]],
            doc_to_target=lambda doc: row["expected_answer"],
            multiple_input=False,
            multiple_target=False,
        )
        return float(methods.process_results(task, {}, results)["acc" if row["task"] == "greedy" else row["task"]])

    return verdict


COMPARISON = Comparison(
    name="likelihood",
    benchmarks=("blimp", "lambada", "truthfulqa-mc1", "truthfulqa-mc2"),
    scorer="lm-evaluation-harness, `task.py` and `truthfulqa/utils.py`",
    compared=FIGURES,
    repository="EleutherAI/lm-evaluation-harness",
    rows=rows,
    forms=forms,
    original=original,
    ours=ours,
)
