# SPDX-License-Identifier: Apache-2.0
"""Write small results of three made-up models, for the notebooks and the page docs/analysis.md.

python docs/notebooks/make_results.py results

A problem has a difficulty, a model has a strength; harder problems get longer replies, and a reply of 1,000 tokens is
truncated. The expected answer of one problem is wrong. The same folder comes out each time.
"""

from __future__ import annotations

import json
import math
import random
import sys
from pathlib import Path

MODELS = {"small": 0.2, "medium": 1.0, "large": 1.8}
PROBLEMS, SEEDS, LIMIT = 80, 4, 1_000
MISTAKEN = 23
"""The problem whose expected answer is wrong."""
SUBSETS = ("algebra", "geometry", "counting")


def record(draw: random.Random, number: int, difficulty: float, strength: float) -> dict[str, object]:
    """Return a graded answer to a problem."""
    right = str(7 * number + 3)
    gold = str(7 * number + 4) if number == MISTAKEN else right
    tokens = int(draw.lognormvariate(5.4 + 0.5 * difficulty, 0.35))
    is_right = draw.random() < 1 / (1 + math.exp(2.2 * (difficulty - strength)))
    is_cut = tokens >= LIMIT
    answer = None if is_cut else right if is_right else str(7 * number + draw.randint(5, 10))
    outcome = "no_answer" if is_cut else "correct" if answer == gold else "wrong"
    row: dict[str, object] = {
        "id": f"p{number:02}",
        "problem": f"What is 7 times {number} plus 3?",
        "expected_answer": gold,
        "subset_for_metrics": SUBSETS[number % 3],
        "generation": f"Let us see. So it is \\boxed{{{answer}}}." if answer else "Let us see. " * 20,
        "predicted_answer": answer,
        "num_generated_tokens": min(tokens, LIMIT),
        "finish_reason": "length" if is_cut else "stop",
        "generation_time": round(min(tokens, LIMIT) / 60, 2),
        "symbolic_correct": answer == gold,
        "outcome": outcome,
        "grader": "math@7",
        "why": "exact (box)" if answer else "no answer (none)",
    }
    if outcome != "correct":
        row["outcome_cause"] = "truncation" if is_cut else "model"
    return row


def write_run(folder: Path, model: str, strength: float) -> None:
    """Write the run of one model, as `ns eval` would."""
    place = folder / model / "eval-results" / "math-500"
    place.mkdir(parents=True, exist_ok=True)
    difficulties = random.Random(1)  # noqa: S311 - made-up data
    hard = [difficulties.gauss(0.9, 0.9) for _ in range(PROBLEMS)]
    for seed in range(SEEDS):
        draw = random.Random(f"{model} {seed}")  # noqa: S311 - made-up data
        rows = [record(draw, number, hard[number], strength) for number in range(PROBLEMS)]
        output = place / f"output-rs{seed}.jsonl"
        output.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        state = {
            "status": "done",
            "settings": {
                "server.model": model,
                "inference.temperature": 0.7,
                "inference.tokens_to_generate": LIMIT,
            },
            "rows": PROBLEMS,
        }
        output.with_name(f"{output.name}.run.json").write_text(json.dumps(state), encoding="utf-8")
    facts = {"benchmark": "math-500", "prompt": "generic/math", "prompt_hash": "9d1f", "metric": "math"}
    (place / "benchmark.json").write_text(json.dumps(facts), encoding="utf-8")


if __name__ == "__main__":
    for model, strength in MODELS.items():
        write_run(Path(sys.argv[1]), model, strength)
