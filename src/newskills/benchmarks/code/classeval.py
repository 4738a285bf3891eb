# SPDX-License-Identifier: Apache-2.0
"""Whole classes with unit tests (Du et al. 2023, arXiv:2308.01861)."""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row


def row(raw: Row, index: int) -> Row:
    return {
        "id": raw["task_id"],
        "question": raw["skeleton"],
        "language": "python",
        "test_setup_code": "\n".join(raw["import_statement"]),
        "test": raw["test"],
        "test_classes": raw["test_classes"],
        "canonical_solution": raw["solution_code"],
        "class_description": raw["class_description"],
    }


BENCHMARK = Benchmark(
    name="classeval",
    category="code",
    title="ClassEval: Python classes from their skeletons",
    sources=(
        Source(github="FudanSELab/ClassEval", ref="master", members="data/ClassEval_data.json", format="json"),
    ),
    row=row,
    prompt="generic/codegen-language",
    grader="classeval",
    metric="classeval",
    items={"test": 100},
    licence="CC-BY-NC-4.0",
    homepage="https://github.com/FudanSELab/ClassEval",
    citation="arXiv:2308.01861",
    needs_sandbox=True,
    unverified=True,
    version="2",
    traps=(
        "The model writes the whole class at once (the authors' holistic generation); `class_success` and "
        "`method_success` (their `fun_success`) are computed as they do.",
        "A method without self or cls counts as static, and each test class has 5 seconds, as in the authors' scorer.",
        "Tests of 73 classes run in another process than the answer; those of 27 share one, guarded but not "
        "sealed: see [Grading code](../grading-code.md).",
    ),
)
