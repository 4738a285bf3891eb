# SPDX-License-Identifier: Apache-2.0
"""100 questions of each MMLU subject, checked by experts (Gema et al. 2024, arXiv:2406.04127)."""

from newskills.base.benchmark import Benchmark, Drop, Source
from newskills.base.records import Row
from newskills.benchmarks.general_knowledge.mmlu import AREA
from newskills.benchmarks.text import choices


def row(raw: Row, index: int) -> Row | Drop:
    answer = raw["answer"]
    if raw["error_type"] == "wrong_groundtruth":
        raw_answer = str(raw["correct_answer"] or "").strip()
        if raw_answer.isalpha():
            answer = "ABCD".find(raw_answer)
        elif raw_answer.isdecimal():
            answer = int(raw_answer)
        else:
            answer = -1
    elif raw["error_type"] != "ok":
        return Drop(f"experts found it faulty: {raw['error_type']}")
    if not 0 <= answer < len(raw["choices"]):
        return Drop("experts found the answer wrong and named no other option")
    return {
        "expected_answer": "ABCD"[answer],
        **choices(raw["question"], raw["choices"]),
        "source": raw["source"],
        "subtopic": raw["_config"],
        "subset_for_metrics": AREA[raw["_config"]],
    }


BENCHMARK = Benchmark(
    name="mmlu-redux",
    category="general-knowledge",
    title="MMLU-Redux 2.0: MMLU checked by experts",
    sources=(Source(hf="edinburgh-dawg/mmlu-redux-2.0", config=f"{{{','.join(sorted(AREA))}}}"),),
    row=row,
    prompt="generic/general-boxed",
    grader="multichoice",
    metric="multichoice",
    licence="CC-BY-4.0",
    homepage="https://huggingface.co/datasets/edinburgh-dawg/mmlu-redux-2.0",
    citation="arXiv:2406.04127",
    chance=0.25,
    unverified=True,
    traps=(
        "5700 questions are checked; those that the experts found faulty are left out, wrong keys are corrected.",
        "Other tools keep other questions: counts and scores differ by that rule.",
    ),
)
