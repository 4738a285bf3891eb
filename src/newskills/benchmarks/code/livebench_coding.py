# SPDX-License-Identifier: Apache-2.0
"""The coding tasks of LiveBench (White et al. 2024, arXiv:2406.19314): programs to write, and programs to complete."""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.contest_tests import decode_metadata, pack_tests


def row(raw: Row, index: int) -> Row:
    return {
        "id": raw["question_id"],
        "question_id": raw["question_id"],
        "question": raw["turns"][0],
        "task": raw["task"],
        "subset_for_metrics": raw["task"],
        "partial_solution": raw.get("partial_solution") or "",
        "tests": pack_tests(raw, decode_metadata(raw["original_json"])),
    }


BENCHMARK = Benchmark(
    name="livebench-coding",
    category="code",
    title="LiveBench coding: contest programs to write or to complete",
    sources=(Source(hf="livebench/coding", format="parquet"),),
    row=row,
    prompt="generic/default",
    grader="livebench_coding",
    metric="livebench_coding",
    items={"test": 128},
    licence="Apache-2.0",
    homepage="https://livebench.ai",
    citation="arXiv:2406.19314",
    needs_sandbox=True,
    unverified=True,
    traps=(
        "The question is asked as it is; some systems turn its indents into tabs.",
        "A completion may repeat the given beginning or go on with it: both are tried.",
    ),
)
