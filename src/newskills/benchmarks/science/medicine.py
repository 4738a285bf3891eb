# SPDX-License-Identifier: Apache-2.0
"""Medical examinations: MedQA (Jin et al. 2020, arXiv:2009.13081) and MedMCQA (Pal et al. 2022, arXiv:2203.14371)."""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.text import choices


def medqa_row(raw: Row, index: int) -> Row:
    options = [raw[f"ending{number}"] for number in range(4)]
    return {"expected_answer": "ABCD"[raw["label"]], **choices(raw["sent1"], options)}


def medmcqa_row(raw: Row, index: int) -> Row:
    if raw["cop"] not in range(4):
        raise ValueError(f"cop is {raw['cop']}, the number of an option from 0 is expected")
    return {
        "expected_answer": "ABCD"[raw["cop"]],
        **choices(raw["question"], [raw[name] for name in ("opa", "opb", "opc", "opd")]),
        "subset_for_metrics": raw["subject_name"],
        "topic": raw["topic_name"],
    }


BENCHMARKS = (
    Benchmark(
        name="medqa",
        category="science",
        title="MedQA: examinations for US physicians, four options",
        sources=(Source(hf="GBaker/MedQA-USMLE-4-options-hf"),),
        row=medqa_row,
        prompt="eval/aai/mcq-10choices",
        grader="multichoice",
        metric="multichoice",
        items={"test": 1273},
        licence="MIT",
        homepage="https://huggingface.co/datasets/GBaker/MedQA-USMLE-4-options-hf",
        citation="arXiv:2009.13081",
        chance=0.25,
        unverified=True,
        traps=("The original has five options; this form has four: scores are not comparable.",),
    ),
    Benchmark(
        name="medmcqa",
        category="science",
        title="MedMCQA: Indian medical entrance examinations",
        sources=(Source(split="validation", hf="openlifescienceai/medmcqa"),),
        row=medmcqa_row,
        prompt="eval/aai/mcq-10choices",
        grader="multichoice",
        metric="multichoice",
        split="validation",
        items={"validation": 4183},
        licence="MIT",
        homepage="https://huggingface.co/datasets/openlifescienceai/medmcqa",
        citation="arXiv:2203.14371",
        chance=0.25,
        unverified=True,
        traps=("The test split has no answers (cop is -1): the validation split is evaluated.",),
    ),
)
