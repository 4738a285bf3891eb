# SPDX-License-Identifier: Apache-2.0
"""Questions that need their picture, in six abilities (Chen et al. 2024, arXiv:2403.20330).

Fields and split: mmstar of lmms-eval (75571cf) and MMStar of VLMEvalKit (e8e78f0).
"""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.media import embedded_asset


def row(raw: Row, index: int) -> Row:
    """Return the row of a question in which the options stand, in several forms; only the letter is known."""
    if raw["answer"] not in tuple("ABCD"):
        raise ValueError(f"the answer is {raw['answer']!r}")
    return {
        "id": f"mmstar-{raw['index']}",
        "question": raw["question"],
        "problem": raw["question"],
        "expected_answer": raw["answer"],
        "image_path": embedded_asset(raw["image"], str(raw["index"])),
        "ability": raw["l2_category"],
        "subset_for_metrics": raw["category"],
    }


BENCHMARK = Benchmark(
    name="mmstar",
    category="vlm",
    title="MMStar: questions that need their picture",
    sources=(Source(split="val", hf="Lin-Chen/MMStar"),),
    split="val",
    row=row,
    prompt="vlm/mmmu-pro",
    grader="multichoice",
    metric="macro",
    items={"val": 1500},
    licence="unstated",
    homepage="https://huggingface.co/datasets/Lin-Chen/MMStar",
    citation="arXiv:2403.20330",
    chance=0.25,
    requires="newskills[media]",
    unverified=True,
    traps=("Headline: the mean of the six abilities, of 250 questions each (macro_accuracy).",),
)
