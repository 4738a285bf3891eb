# SPDX-License-Identifier: Apache-2.0
"""Questions about companies' reports, answered by small programs (Chen et al. 2021, arXiv:2109.00122).

Fields, steps of a program, and execution accuracy: README.md and code/evaluate/evaluate.py of czyssrs/FinQA (0f16e28).
"""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row


def row(raw: Row, index: int) -> Row:
    qa = raw["qa"]
    table = [[str(cell) for cell in cells] for cells in raw["table"]]
    lines = [" | ".join(cells) for cells in table]
    return {
        "id": raw["id"],
        "question": qa["question"],
        "report": "\n".join([*raw["pre_text"], "", *lines, "", *raw["post_text"]]),
        "table": table,
        "program": qa["program"],
        "expected_answer": str(qa["exe_ans"]),
    }


BENCHMARK = Benchmark(
    name="finqa",
    category="reasoning",
    title="FinQA: questions about companies' reports, by execution of programs",
    sources=(
        Source(
            url="https://raw.githubusercontent.com/czyssrs/FinQA/main/dataset/test.json",
            format="json",
        ),
        Source(
            split="dev",
            url="https://raw.githubusercontent.com/czyssrs/FinQA/main/dataset/dev.json",
            format="json",
        ),
    ),
    row=row,
    prompt="eval/table-program",
    grader="table_program",
    metric="generic",
    items={"test": 1147, "dev": 883},
    licence="MIT",
    homepage="https://github.com/czyssrs/FinQA",
    citation="arXiv:2109.00122",
    unverified=True,
    traps=(
        "accuracy is execution accuracy: the model writes a program, and its result has to be that of the authors'.",
        "Other harnesses compare a number that the model writes, within some tolerance: another score.",
        "Whole pages are shown; the authors let a retriever choose sentences. Program accuracy is not computed.",
    ),
)
