# SPDX-License-Identifier: Apache-2.0
"""Whole classes with unit tests (Du et al. 2023, arXiv:2308.01861)."""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row


def row(raw: Row, index: int) -> Row:
    return {
        "id": raw["task_id"],
        "question": raw["skeleton"],
        "language": "python",
        "style": "unit",
        "test_setup_code": "\n".join(raw["import_statement"]),
        "test": raw["test"],
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
    grader="code_tests",
    metric="code_tests",
    items={"test": 100},
    licence="CC-BY-NC-4.0",
    homepage="https://github.com/FudanSELab/ClassEval",
    citation="arXiv:2308.01861",
    needs_sandbox=True,
    unverified=True,
    traps=("A class counts if all of its tests pass (class level); method-level rates are not computed.",),
)
