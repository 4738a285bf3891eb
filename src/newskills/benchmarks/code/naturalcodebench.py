# SPDX-License-Identifier: Apache-2.0
"""Tasks that people really asked, in Python and Java, English and Chinese (Zhang et al. 2024, arXiv:2405.04520)."""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.graders.code.extract import extract_code


def row(raw: Row, index: int) -> Row:
    file = raw.get("_file", "").rpartition("/")[2]
    language = "java" if raw["reference_solution"].lstrip().startswith("```java") else "python"
    return {
        "id": f"{file.removeprefix('ncb_').removesuffix('.jsonl') or language}/{raw['_id']}",
        "question": raw["prompt"],
        "language": language,
        "subset_for_metrics": language,
        "style": "pytest" if language == "python" else "junit",
        "test_setup_code": raw.get("setup_code") or "",
        "test": raw["testcases"],
        "canonical_solution": extract_code(raw["reference_solution"], language).code,
        "classification": raw["classification"],
    }


BENCHMARK = Benchmark(
    name="naturalcodebench",
    category="code",
    title="NaturalCodeBench: what people ask of code assistants",
    sources=(Source(github="THUDM/NaturalCodeBench", ref="main", members="problems/*ncb_*.jsonl"),),
    row=row,
    prompt="generic/default",
    grader="code_tests",
    metric="code_tests",
    licence="unstated",
    homepage="https://github.com/THUDM/NaturalCodeBench",
    citation="arXiv:2405.04520",
    needs_sandbox=True,
    unverified=True,
    traps=(
        "Python tests need pytest in the sandbox, Java tests JUnit; answers are unscored where they cannot run.",
        "Some tasks need libraries or files that only the authors' container has.",
        "Most Python tests share a process with the answer, guarded but not sealed: see "
        "[Grading code](../grading-code.md).",
    ),
)
