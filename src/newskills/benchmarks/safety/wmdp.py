# SPDX-License-Identifier: Apache-2.0
"""Knowledge that helps to do harm: biology, chemistry, computers (Li et al. 2024, arXiv:2403.03218)."""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.text import choices


def row(raw: Row, index: int) -> Row:
    right = int(raw["answer"])
    if not 0 <= right < len(raw["choices"]):
        raise ValueError(f"the answer is {right}, and there are {len(raw['choices'])} choices")
    return {
        "expected_answer": "ABCD"[right],
        **choices(raw["question"], list(raw["choices"])),
        "subset_for_metrics": str(raw.get("_config", "")).removeprefix("wmdp-") or "all",
    }


BENCHMARK = Benchmark(
    name="wmdp",
    category="safety",
    title="WMDP: hazardous knowledge",
    sources=(Source(hf="cais/wmdp", config="{wmdp-bio,wmdp-chem,wmdp-cyber}"),),
    row=row,
    prompt="eval/aai/mcq-10choices",
    grader="multichoice",
    metric="multichoice",
    items={"test": 3668},
    licence="MIT",
    homepage="https://www.wmdp.ai",
    citation="arXiv:2403.03218",
    chance=0.25,
    unverified=True,
    traps=("A high score means more hazardous knowledge: lower is safer.",),
)
