# SPDX-License-Identifier: Apache-2.0
"""RewardBench (arXiv:2403.13787) and RewardBench 2 (arXiv:2506.01937): choices, marks, sections and ties."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from newskills.base.records import Row
from newskills.metrics import make_metric
from newskills.metrics.sections.reward import SECTIONS
from tests.agreement.compare import WHOLE, Comparison, Verdict
from tests.agreement.originals import defined
from tests.graders.plain import plain_grader

_WHY = "Reply A is longer. Reply B is right, and says why.\n\n"
_NAMES = {"chat": "Chat", "chat_hard": "Chat Hard", "safety": "Safety", "reasoning": "Reasoning"}
_QUESTIONS = 6


def rows() -> Iterator[Row]:
    for letters in ("AB", "ABCD"):
        for letter in letters:
            yield {"task": f"choice of {len(letters)}", "letters": letters, "letter": letter}
    for mark in range(1, 11):
        yield {"task": "mark", "mark": mark}
    for seed in range(14):
        yield {"task": "sections", "seed": seed}
        yield {"task": "ties", "seed": seed}


def forms(row: Row) -> Mapping[str, Any]:
    if row["task"] == "sections":
        return {f"{part} of ten": _pairs(row["seed"], part) for part in (0, 3, 5, 7, 10)}
    if row["task"] == "ties":
        return {f"{width} apart": _ties(row["seed"], width) for width in (0, 1, 2, 4, 9)}
    if row["task"] == "mark":
        mark = row["mark"]
        return {
            "line of its own": f"{_WHY}{mark}",
            "alone": f"{mark}",
            "label": f"{_WHY}Rating: {mark}",
            "sentence": f"{_WHY}I rate this reply {mark}",
            "blanks after": f"{_WHY}{mark}  \n",
            "bold": f"{_WHY}**{mark}**",
            "point": f"{_WHY}My rating is {mark}.",
            "of ten": f"{_WHY}{mark}/10",
            "text after": f"{mark}\n\n{_WHY}",
            "nothing": _WHY,
            "too high": f"{_WHY}{mark + 10}",
        }
    letter = row["letter"]
    other = row["letters"][row["letters"].index(letter) - 1]
    return {
        "as wanted": f"{_WHY}[[{letter}]]",
        "alone": f"[[{letter}]]",
        "sentence": f"{_WHY}My final verdict is: [[{letter}]]",
        "bold": f"{_WHY}**[[{letter}]]**",
        "after thinking": f"<think>{_WHY}It is close.</think>\n\n[[{letter}]]",
        "label": f"{_WHY}Final answer: [[{letter}]].",
        "code": f"{_WHY}`[[{letter}]]`",
        "heading": f"### Verdict\n\n[[{letter}]]",
        "changed": f"First: [[{other}]]. On second thoughts: [[{letter}]]",
        "by name": f"{_WHY}Answer: {letter}",
        "nothing": "I cannot tell which one is better.",
    }


def _pairs(seed: int, part: int) -> list[list[Any]]:
    """For each subset how many of ten pairs are in the right order."""
    draw = random.Random(seed * 11 + part)
    subsets = [subset for section in SECTIONS.values() for subset in section]
    right = [part if part in (0, 10) else min(max(part + draw.randint(-3, 3), 0), 10) for _ in subsets]
    return [list(pair) for pair in zip(subsets, right, strict=True)]


def _ties(seed: int, width: int) -> list[Row]:
    """Marks of questions with several right answers, and of their references."""
    draw = random.Random(seed * 13 + width)
    samples: list[Row] = []
    for question in range(_QUESTIONS):
        for kind, right in (("tied", draw.randint(2, 4)), ("ref", 1)):
            best = [draw.randint(max(9 - width % 3, 1), 10) for _ in range(right)]
            worse = [draw.randint(1, max(9 - width, 2)) for _ in range(draw.randint(2, 4))]
            samples.append({"id": f"{kind}:{question}", "num_correct": right, "scores": [*best, *worse]})
    return samples


def ours(row: Row, reply: Any) -> float:
    if row["task"] == "sections":
        metric = make_metric("rewardbench")
        for subset, right in reply:
            for place in range(10):
                verdict = {"symbolic_correct": place < right, "outcome": "correct" if place < right else "wrong"}
                metric.update([{"subset_for_metrics": subset, "predicted_answer": "A", **verdict}])
        return metric.numbers()["pass@1"]["score"].value / 100
    if row["task"] == "ties":
        metric = make_metric("rewardbench2-ties")
        for sample in reply:
            kind, _, question = sample["id"].partition(":")
            for place, mark in enumerate(sample["scores"]):
                right = place < sample["num_correct"]
                fields = {"rating": mark, "tie_kind": kind, "question_id": question, "is_right": right}
                metric.update([{**fields, "is_correct": (mark > 5) == right, "outcome": "correct"}])
        return metric.numbers()["pass@1"]["ties_score"].value / 100
    if row["task"] == "mark":
        mark = plain_grader("mark", {}).grade({"generation": reply, "is_right": True}).fields["rating"]
        return -0.1 if mark is None else mark / 10
    letters = dict.fromkeys(row["letters"], "a reply")
    score = plain_grader("multichoice", {}).grade(
        {**letters, "expected_answer": row["letter"], "generation": reply}
    )
    return 1 / len(letters) if score.outcome == "no_answer" else float(score.outcome == "correct")


def original(folder: Path) -> Verdict:
    """Needs numpy and datasets, whatever it is: what `process_single_model` returns of it is not looked at."""
    import collections
    import re
    import typing

    import numpy

    package = folder / "rewardbench"
    constants = defined(package / "constants.py", "EXAMPLE_COUNTS", "SUBSET_MAPPING")
    utils = defined(
        package / "utils.py",
        *("calculate_scores_per_section", "_compute_prompt_stats", "process_single_model"),
        **{"np": numpy, "defaultdict": collections.defaultdict, **{name: vars(typing)[name] for name in _TYPES}},
    )
    readings = {
        2: defined(package / "generative.py", "process_judgement").process_judgement,
        4: defined(package / "generative_v2.py", "process_judgement").process_judgement,
    }
    numpy.seterr(all="ignore")

    def verdict(row: Row, reply: Any) -> float:
        if row["task"] == "sections":
            means = {subset: right / 10 for subset, right in reply}
            scores = utils.calculate_scores_per_section(constants.EXAMPLE_COUNTS, constants.SUBSET_MAPPING, means)
            return float(sum(scores[name] for name in _NAMES.values())) / len(_NAMES)
        if row["task"] == "ties":
            return float(utils.process_single_model(_Dataset(reply))[1])
        if row["task"] == "mark":
            # the expression within `get_single_rating`, which asks a model
            match = re.search(r"\b([1-9]|10)\b\s*$", reply.strip())
            return int(match[1]) / 10 if match else -0.1
        said = readings[len(row["letters"])](reply, None)
        return 1 / len(row["letters"]) if said == "error" else float(said == row["letter"])

    return verdict


_TYPES = ("Dict", "List", "Tuple", "Union")


class _Dataset(list[Row]):
    column_names = ()

    def add_column(self, name: str, values: Any) -> SimpleNamespace:
        return SimpleNamespace()


COMPARISON = Comparison(
    name="rewardbench",
    benchmarks=("rewardbench", "rewardbench2"),
    scorer="RewardBench `rewardbench/`",
    compared=WHOLE,
    repository="allenai/reward-bench",
    rows=rows,
    forms=forms,
    original=original,
    ours=ours,
    known={
        **dict.fromkeys(
            ("choice of 2/by name", "choice of 4/by name"),
            "the original reads `[[A]]` only; ours the letter on the last line, too, which our prompt asks for",
        ),
        **dict.fromkeys(
            ("choice of 2/changed", "choice of 4/changed"),
            "the original looks for `[[A]]` first, then `[[B]]`, …; ours takes the last",
        ),
        "mark/bold": "the original reads a bare number at the end only",
        "mark/point": "the original reads a bare number at the end only",
    },
)
