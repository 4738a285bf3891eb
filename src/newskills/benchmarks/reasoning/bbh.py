# SPDX-License-Identifier: Apache-2.0
"""The 27 tasks of BIG-bench that were hard for models in 2022 (Suzgun et al., arXiv:2210.09261)."""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row

_TASKS = (
    "boolean_expressions causal_judgement date_understanding disambiguation_qa dyck_languages formal_fallacies "
    "geometric_shapes hyperbaton logical_deduction_five_objects logical_deduction_seven_objects "
    "logical_deduction_three_objects movie_recommendation multistep_arithmetic_two navigate object_counting "
    "penguins_in_a_table reasoning_about_colored_objects ruin_names salient_translation_error_detection snarks "
    "sports_understanding temporal_sequences tracking_shuffled_objects_five_objects "
    "tracking_shuffled_objects_seven_objects tracking_shuffled_objects_three_objects web_of_lies word_sorting"
)


def row(raw: Row, index: int) -> Row:
    task = raw["_file"].rpartition("/")[2].removesuffix(".json")
    return {
        "id": f"bbh-{task}-{index}",
        "problem": raw["input"],
        "expected_answer": raw["target"],
        "subset_for_metrics": task,
    }


BENCHMARK = Benchmark(
    name="bbh",
    category="reasoning",
    title="BIG-Bench Hard: 27 tasks",
    aliases=("big-bench-hard", "bigbench_hard"),
    sources=(
        Source(
            url=(
                "https://raw.githubusercontent.com/ctlllll/LLM-ToolMaker/main/bbh/"
                f"{{{','.join(_TASKS.split())}}}.json"
            ),
            format="json",
            records=("examples",),
            revision="4169219e4966253b6ec0928876a2bccfdc3cdbd3",
            sha256="ece69fdd03a4a1ae3f8553bf49a8573a9e7ab0304ca56e1a79d84b03361fd40b",
        ),
    ),
    row=row,
    prompt="generic/general-boxed",
    grader="exact",
    grader_config={"extract": "answer", "loose": True},
    metric="generic",
    items={"test": 6511},
    licence="MIT",
    homepage="https://github.com/suzgunm/BIG-Bench-Hard",
    citation="arXiv:2210.09261",
    traps=(
        "Answers are letters (A), words, numbers, yes or no, or brackets; (A) and A are the same.",
        "Tasks have 146 to 250 items: the overall accuracy weighs items, not tasks.",
        "Published scores are those with the paper's three worked examples, which the official prompt shows; without "
        "it the question stands alone.",
    ),
)
