# SPDX-License-Identifier: Apache-2.0
"""The first wrong step of a solution (Zheng et al. 2025, arXiv:2412.06559).

Fields, splits, tags of the steps and score: code/run_eval.py of QwenLM/ProcessBench (e802463).
"""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row


def row(raw: Row, index: int) -> Row:
    steps, label = raw["steps"], raw["label"]
    if label not in range(-1, len(steps)):
        raise ValueError(f"the label is {label!r}, and there are {len(steps)} steps")
    tagged = (f"<paragraph_{number}>\n{step}\n</paragraph_{number}>" for number, step in enumerate(steps))
    return {
        "id": raw["id"],
        "problem": raw["problem"],
        "solution": "\n\n".join(tagged),
        "expected_answer": str(label),
        "generator": raw["generator"],
        "subset_for_metrics": raw["_split"],
    }


BENCHMARK = Benchmark(
    name="processbench",
    category="judge",
    title="ProcessBench: the first wrong step of a solution",
    sources=(Source(hf="Qwen/ProcessBench", hf_split="{gsm8k,math,olympiadbench,omnimath}"),),
    row=row,
    prompt="eval/first-error",
    grader="exact",
    grader_config={"extract": "answer", "loose": True},
    metric="processbench",
    items={"test": 3400},
    licence="Apache-2.0",
    homepage="https://github.com/QwenLM/ProcessBench",
    citation="arXiv:2412.06559",
    unverified=True,
    traps=(
        "Headline: f1, the mean over the four sources of the harmonic mean of both accuracies.",
        "The prompt is ours; the authors vote over 8 samples for open models: majority@8 with NAME:8 is not their F1.",
    ),
)
