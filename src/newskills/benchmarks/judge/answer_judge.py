# SPDX-License-Identifier: Apache-2.0
"""Twelve pairs of answers, of which a judge has to say whether they are the same."""

from collections.abc import Iterator

from newskills.base.benchmark import Benchmark
from newskills.base.records import Row

# (problem, expected answer, answer to be judged, whether they are the same, why)
_PAIRS = (
    ("What is three quarters of 12 km?", "9", "9 km", True, "the unit repeats the question"),
    ("Write 0.125 as a fraction.", r"\frac{1}{8}", "1/8", True, "two ways to write a fraction"),
    ("Solve x^2 - 5x + 6 = 0.", "2, 3", "x = 3 or x = 2", True, "a set in another order"),
    ("Factor x^2 - 1.", "(x-1)(x+1)", "(1+x)(-1+x)", True, "factors and terms in another order"),
    ("What share of 40 is 10?", "25%", "0.25", True, "percent and decimal"),
    ("How many people live there?", "12,500", "12500", True, "thousands separator"),
    ("Solve x^2 = 16 over the reals.", "-4, 4", "4", False, "a solution is missing"),
    ("Where is the function defined?", "(0, 5]", "(0, 5)", False, "an end point is missing"),
    ("Give the point where the lines meet.", "(2, 3)", "(3, 2)", False, "coordinates are swapped"),
    ("What is the area of the unit circle?", r"\pi", "3.14", False, "rounded without being asked to"),
    ("Simplify 2(x + 3).", "2x + 6", "2x + 3", False, "another expression"),
    ("How many days does it take?", "14", "14 or 15", False, "a choice between two answers"),
)


def rows(split: str) -> Iterator[Row]:
    for number, (problem, expected, predicted, same, comment) in enumerate(_PAIRS):
        yield {
            "id": f"answer-judge-{number}",
            "problem": problem,
            "expected_answer": expected,
            "predicted_answer": predicted,
            "expected_judgement": f"Judgement: {'Yes' if same else 'No'}",
            "comment": comment,
        }


BENCHMARK = Benchmark(
    name="answer-judge",
    category="judge",
    title="Whether two answers are the same, as a judge sees it",
    generate_rows=rows,
    prompt="judge/math",
    grader="answer-judgement",
    metric="answer-judgement",
    defaults={"generation_key": "judgement"},
    items={"test": 12},
    licence="Apache-2.0",
    homepage="https://github.com/NVIDIA-NeMo/Skills",
    chance=0.5,
    traps=(
        "Twelve pairs of our own, of the kinds of NeMo-Skills': a smoke test, not a ranking.",
        "Recall counts a right answer without a judgement as not accepted; of equally many yes and no, no counts.",
    ),
)
