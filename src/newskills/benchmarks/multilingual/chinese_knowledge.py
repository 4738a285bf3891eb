# SPDX-License-Identifier: Apache-2.0
"""Chinese knowledge: CMMLU (Li et al. 2023, arXiv:2306.09212) and C-Eval (Huang et al. 2023, arXiv:2305.08322)."""

from functools import partial

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.text import choices

_COMMIT = "d6e7b716d8ac694f38969a6c0407437d1fded799"
_CEVAL = (
    "accountant,advanced_mathematics,art_studies,basic_medicine,business_administration,chinese_language_and_literature,"
    "civil_servant,clinical_medicine,college_chemistry,college_economics,college_physics,college_programming,"
    "computer_architecture,computer_network,discrete_mathematics,education_science,electrical_engineer,"
    "environmental_impact_assessment_engineer,fire_engineer,high_school_biology,high_school_chemistry,"
    "high_school_chinese,high_school_geography,high_school_history,high_school_mathematics,high_school_physics,"
    "high_school_politics,ideological_and_moral_cultivation,law,legal_professional,logic,mao_zedong_thought,marxism,"
    "metrology_engineer,middle_school_biology,middle_school_chemistry,middle_school_geography,middle_school_history,"
    "middle_school_mathematics,middle_school_physics,middle_school_politics,modern_chinese_history,"
    "operating_system,physician,plant_protection,probability_and_statistics,professional_tour_guide,sports_science,"
    "tax_accountant,teacher_qualification,urban_and_rural_planner,veterinary_medicine"
)


def row(question: str, answer: str, raw: Row, index: int) -> Row:
    """Map a row; `question` and `answer` name the columns."""
    if raw[answer] not in ("A", "B", "C", "D"):
        raise ValueError(f"the answer is {raw[answer]!r}, A to D is expected")
    return {
        "expected_answer": raw[answer],
        **choices(raw[question], [raw[letter] for letter in "ABCD"]),
        "subset_for_metrics": str(raw.get("_config") or raw["_file"].rpartition("/")[2].removesuffix(".csv")),
    }


def _cmmlu_source(split: str, sha256: str = "") -> Source:
    return Source(
        split=split,
        github="haonan-li/CMMLU",
        ref="master",
        revision=_COMMIT,
        members=f"data/{split}/*.csv",
        format="csv",
        sha256=sha256,
    )


BENCHMARKS = (
    Benchmark(
        name="cmmlu",
        category="multilingual",
        title="CMMLU: Chinese multiple choice in 67 subjects",
        sources=(_cmmlu_source("test"), _cmmlu_source("dev")),
        row=partial(row, "Question", "Answer"),
        prompt="eval/aai/mcq-4choices",
        grader="multichoice",
        metric="multichoice",
        items={"test": 11582, "dev": 335},
        licence="CC-BY-NC-SA-4.0",
        homepage="https://github.com/haonan-li/CMMLU",
        citation="arXiv:2306.09212",
        chance=0.25,
        traps=("The questions are Chinese, the instruction is English.",),
    ),
    Benchmark(
        name="ceval",
        category="multilingual",
        title="C-Eval: Chinese examinations in 52 subjects",
        aliases=("c-eval",),
        sources=(Source(split="val", hf="ceval/ceval-exam", config=f"{{{_CEVAL}}}"),),
        row=partial(row, "question", "answer"),
        prompt="eval/aai/mcq-4choices",
        grader="multichoice",
        metric="multichoice",
        split="val",
        items={"val": 1346},
        licence="CC-BY-NC-SA-4.0",
        homepage="https://cevalbenchmark.com",
        citation="arXiv:2305.08322",
        chance=0.25,
        unverified=True,
        traps=("The answers of the test split are hidden: the split val is evaluated.",),
    ),
)
