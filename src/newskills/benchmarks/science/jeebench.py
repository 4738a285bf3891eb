# SPDX-License-Identifier: Apache-2.0
"""The Indian JEE Advanced examination, 2016 to 2023 (Arora et al. 2023, arXiv:2305.15074)."""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row

_REQUESTS = {
    "MCQ": "Exactly one option is right. Put its letter into \\boxed{}.",
    "MCQ(multiple)": "One or more options are right. Put the letters of all of them into \\boxed{}, as in \\boxed{AC}.",
    "Integer": "The answer is a non-negative integer. Put it into \\boxed{}.",
    "Numeric": "The answer is a number. Put it into \\boxed{}, rounded to two decimal places.",
}


def row(raw: Row, index: int) -> Row:
    return {
        "id": f"jeebench-{index}",
        "question": f"{raw['question'].strip()}\n\n{_REQUESTS[raw['type']]}",
        "expected_answer": raw["gold"].strip(),
        "answer_type": raw["type"],
        "subset_for_metrics": raw["subject"],
        "description": raw["description"],
    }


BENCHMARK = Benchmark(
    name="jeebench",
    category="science",
    title="JEEBench: the JEE Advanced examination",
    sources=(
        Source(
            url="https://raw.githubusercontent.com/dair-iitd/jeebench/main/data.zip",
            format="json",
            members="*dataset.json",
        ),
    ),
    row=row,
    grader="jeebench",
    metric="generic",
    items={"test": 515},
    licence="MIT",
    homepage="https://github.com/dair-iitd/jeebench",
    citation="arXiv:2305.15074",
    unverified=True,
    traps=(
        "Questions with several right options give a quarter for each that is named if none is wrong.",
        "Numbers count within 0.01.",
    ),
)
