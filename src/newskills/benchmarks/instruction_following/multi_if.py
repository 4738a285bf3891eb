# SPDX-License-Identifier: Apache-2.0
"""Checkable instructions over three turns in eight languages (He et al. 2024, arXiv:2410.15553).

File and columns: README.md and metrics.py of facebookresearch/Multi-IF (1cdb53e).
"""

import json

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row


def row(raw: Row, index: int) -> Row:
    """Return the row of a conversation, whose turns are JSON texts; one that is empty or "None" is not asked."""
    turns, instructions = [], []
    for number in (1, 2, 3):
        prompt = raw[f"turn_{number}_prompt"]
        if prompt in (None, "", "None"):
            break
        turns.append(json.loads(prompt)["content"])
        arguments = [json.loads(text) for text in json.loads(raw[f"turn_{number}_kwargs"])]
        names = json.loads(raw[f"turn_{number}_instruction_id_list"])
        instructions.append({"instruction_id_list": names, "kwargs": arguments})
    if not turns:
        raise ValueError("there is no turn")
    return {
        "id": raw["key"],
        "question": turns[0],
        "turns": turns,
        "turn_instructions": instructions,
        "subset_for_metrics": raw["language"],
    }


BENCHMARK = Benchmark(
    name="multi-if",
    category="instruction-following",
    title="Multi-IF: checkable instructions over three turns in eight languages",
    sources=(
        Source(
            url="https://huggingface.co/datasets/facebook/Multi-IF/resolve/main/multiIF_20241018.csv",
            format="csv",
        ),
    ),
    row=row,
    prompt="generic/default",
    solver="turns",
    grader="multi-if",
    metric="multi-if",
    items={"test": 4501},
    licence="CC-BY-NC-2.0",
    homepage="https://huggingface.co/datasets/facebook/Multi-IF",
    citation="arXiv:2410.15553",
    requires="newskills[instructions,thai]",
    unverified=True,
    traps=(
        "Headline: for each turn, the mean of four accuracies (prompts and instructions, strictly and loosely).",
        "average_accuracy, the mean of the three turns, is what others often report.",
        "Words of Hindi are counted as NLTK did until 3.9, which splits them at vowel signs; later versions do not.",
        "A reply's thinking is neither checked nor repeated to the model.",
    ),
)
