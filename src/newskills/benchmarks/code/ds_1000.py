# SPDX-License-Identifier: Apache-2.0
"""Questions about seven data libraries (Lai et al. 2022, arXiv:2211.11501)."""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row


def row(raw: Row, index: int) -> Row:
    metadata, context = raw["metadata"], raw["code_context"]
    checks = ["test_execution(answer)", *(["test_string(answer)"] if "def test_string(" in context else [])]
    return {
        "id": str(metadata["problem_id"]),
        "question": raw["prompt"],
        "language": "python",
        "style": "script",
        "test": context + "\n" + "\n".join(checks) + "\n",
        "canonical_solution": raw["reference_code"],
        "subset_for_metrics": metadata["library"],
        "perturbation_type": metadata["perturbation_type"],
    }


BENCHMARK = Benchmark(
    name="ds-1000",
    category="code",
    title="DS-1000: data science with NumPy, Pandas, SciPy, scikit-learn, PyTorch, TensorFlow, Matplotlib",
    sources=(Source(hf="xlangai/DS-1000", format="parquet"),),
    row=row,
    prompt="eval/ds1000/default",
    grader="code_tests",
    grader_config={"timeout": 60.0},
    metric="code_tests",
    items={"test": 1000},
    licence="CC-BY-SA-4.0",
    homepage="https://ds1000-code-gen.github.io",
    citation="arXiv:2211.11501",
    needs_sandbox=True,
    unverified=True,
    traps=(
        "Verdicts depend on the versions of the libraries; answers to tasks whose library is missing are unscored.",
        "The tests share a process with the answer, guarded but not sealed: see [Grading code](../grading-code.md).",
        "Code is read from fences, <code> tags and up to END SOLUTION, as models write it: see "
        "[Agreement](../agreement.md).",
    ),
)
