# SPDX-License-Identifier: Apache-2.0
"""Questions about photographs of the everyday world, many from cars (xAI 2024).

Fields and split: realworldqa of lmms-eval (75571cf) and of evalscope (fde259d). As there, letters and short answers
have to be given as they are.
"""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.media import embedded_asset


def row(raw: Row, index: int) -> Row:
    return {
        "id": f"realworldqa-{index}",
        "question": raw["question"],
        "problem": raw["question"],
        "expected_answer": str(raw["answer"]).strip(),
        "image_path": embedded_asset(raw["image"], str(index)),
    }


BENCHMARK = Benchmark(
    name="realworldqa",
    category="vlm",
    title="RealWorldQA: photographs of the everyday world",
    sources=(Source(hf="lmms-lab-encoder/RealWorldQA"), Source(hf="lmms-lab/RealWorldQA")),
    row=row,
    prompt="vlm/default",
    grader="exact",
    grader_config={"extract": "answer", "loose": True},
    metric="generic",
    items={"test": 765},
    licence="CC-BY-ND-4.0",
    homepage="https://x.ai/news/grok-1.5v",
    citation="xAI, Grok-1.5 Vision Preview, 2024",
    chance=0.33,
    requires="newskills[media]",
    unverified=True,
    traps=(
        "Options stand in the question, which asks for the letter, a word or a number alone.",
        "Answers are compared as texts: 'one' is not '1'.",
    ),
)
