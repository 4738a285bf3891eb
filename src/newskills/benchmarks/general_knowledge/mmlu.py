# SPDX-License-Identifier: Apache-2.0
"""Four-option questions in 57 subjects (Hendrycks et al. 2020, arXiv:2009.03300)."""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.text import choices

_TAR = "https://people.eecs.berkeley.edu/~hendrycks/data.tar"
_ZIP = (
    "https://raw.githubusercontent.com/AlibabaResearch/DAMO-ConvAI/main/EPO/LLaMA-Factory/evaluation/mmlu/mmlu.zip"
)
_COLUMNS = ("question", "A", "B", "C", "D", "answer")

# Subject areas as the authors group them.
_SUBJECTS = {
    "biology": "college_biology high_school_biology",
    "business": "business_ethics management marketing",
    "chemistry": "college_chemistry high_school_chemistry",
    "computer science": "college_computer_science computer_security high_school_computer_science machine_learning",
    "culture": "human_sexuality sociology",
    "economics": "econometrics high_school_macroeconomics high_school_microeconomics",
    "engineering": "electrical_engineering",
    "geography": "high_school_geography",
    "health": (
        "anatomy clinical_knowledge college_medicine human_aging medical_genetics nutrition "
        "professional_medicine virology"
    ),
    "history": "high_school_european_history high_school_us_history high_school_world_history prehistory",
    "law": "international_law jurisprudence professional_law",
    "math": (
        "abstract_algebra college_mathematics elementary_mathematics high_school_mathematics "
        "high_school_statistics"
    ),
    "other": "global_facts miscellaneous professional_accounting",
    "philosophy": "formal_logic logical_fallacies moral_disputes moral_scenarios philosophy world_religions",
    "physics": "astronomy college_physics conceptual_physics high_school_physics",
    "politics": "high_school_government_and_politics public_relations security_studies us_foreign_policy",
    "psychology": "high_school_psychology professional_psychology",
}
AREA = {subject: area for area, subjects in _SUBJECTS.items() for subject in subjects.split()}


def row(raw: Row, index: int) -> Row:
    subject = raw["_file"].rpartition("/")[2].removesuffix(".csv").rpartition("_")[0]
    if raw["answer"] not in ("A", "B", "C", "D"):
        raise ValueError(f"the answer is {raw['answer']!r}, A to D is expected")
    return {
        "expected_answer": raw["answer"],
        **choices(raw["question"], [raw[letter] for letter in "ABCD"]),
        "subtopic": subject,
        "subset_for_metrics": AREA[subject],
        "examples_type": f"mmlu_few_shot_{subject}",
    }


def _split_sources(split: str) -> tuple[Source, Source]:
    return (
        Source(split=split, url=_TAR, format="csv", columns=_COLUMNS, members=f"*{split}/*_{split}.csv"),
        Source(
            split=split,
            url=_ZIP,
            format="csv",
            columns=_COLUMNS,
            members=f"*{split}/*_{split}.csv",
            revision="483554eae102996f5ec1f4feab4e78ef29c2a394",
            sha256="9e2b2d78bf59d80baf271a13005568ef0aca17bd663f2e5ebfecdc07a68f0edc",
        ),
    )


BENCHMARK = Benchmark(
    name="mmlu",
    category="general-knowledge",
    title="MMLU: multiple choice in 57 subjects",
    aliases=("ns_mmlu", "adlr_mmlu"),
    sources=(*_split_sources("test"), *_split_sources("dev"), *_split_sources("val")),
    row=row,
    prompt="eval/aai/mcq-4choices-boxed",
    grader="multichoice",
    metric="multichoice",
    items={"test": 14042, "dev": 285, "val": 1531},
    licence="MIT",
    homepage="https://github.com/hendrycks/test",
    citation="arXiv:2009.03300",
    chance=0.25,
    traps=(
        "The csv files have no header line.",
        "About 6 % of the labels are disputed (arXiv:2406.04127).",
    ),
)
