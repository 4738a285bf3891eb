# SPDX-License-Identifier: Apache-2.0
"""Turkish school subjects, five options (Yüksel et al. 2024, arXiv:2407.12402)."""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.text import choices

_SUBJECTS = (
    "Biology,Chemistry,Geography,History,Mathematics,Philosophy,Physics,Religion_and_Ethics,"
    "Turkish_Language_and_Literature"
)


def row(raw: Row, index: int) -> Row:
    right = "ABCDE".index(raw["answer"])
    fields = choices(raw["question"], raw["choices"])
    if "ABCDE"[right] not in fields:
        raise ValueError(f"the answer is {raw['answer']}, and there are {len(raw['choices'])} options")
    return {
        **fields,
        "expected_answer": raw["answer"],
        "subset_for_metrics": str(raw.get("subject") or raw["_config"]),
        "level": raw.get("level"),
    }


BENCHMARK = Benchmark(
    name="turkishmmlu",
    category="multilingual",
    title="TurkishMMLU: Turkish school subjects",
    sources=(Source(hf="AYueksel/TurkishMMLU", config=f"{{{_SUBJECTS}}}"),),
    row=row,
    prompt="eval/aai/mcq-10choices",
    grader="multichoice",
    metric="multichoice",
    items={"test": 900},
    licence="CC-BY-NC-4.0",
    homepage="https://huggingface.co/datasets/AYueksel/TurkishMMLU",
    citation="arXiv:2407.12402",
    chance=0.2,
    unverified=True,
    traps=("There are five options.", "The instruction is English, the questions are Turkish."),
)
