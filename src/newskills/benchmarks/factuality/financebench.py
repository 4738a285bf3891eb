# SPDX-License-Identifier: Apache-2.0
"""Questions about the reports of listed companies (Islam et al. 2023, arXiv:2311.11944).

The oracle setting of the authors' program: the pages that hold the evidence, and the question.
"""

from typing import Any

from newskills.base.benchmark import Benchmark, Judge, Source
from newskills.base.records import Row


def closed_book(raw: Row, index: int) -> Row:
    return {
        "id": raw["financebench_id"],
        "question": raw["question"],
        "problem": raw["question"],
        "expected_answer": raw["answer"],
        "subset_for_metrics": raw["question_type"],
        "company": raw["company"],
        "doc_name": raw["doc_name"],
        "justification": raw["justification"],
    }


def row(raw: Row, index: int) -> Row:
    pages = "\n\n".join(page["evidence_text_full_page"] for page in raw["evidence"])
    with_pages = (
        f"Pages of {raw['doc_name']}:\n\n{pages}\n\nAnswer this question by these pages: {raw['question']}"
    )
    return {**closed_book(raw, index), "question": with_pages}


_COMMON: dict[str, Any] = {
    "category": "factuality",
    "sources": (
        Source(
            url="https://raw.githubusercontent.com/patronus-ai/financebench/main/data/"
            "financebench_open_source.jsonl",
            revision="cc39aeb4afdf33909ee1412188bf89035950c2eb",
            sha256="a5a2aa673e573e55675fc3c0f9aa38c1cf59d2abc91edb077534f71f10a71877",
        ),
    ),
    "prompt": "generic/default",
    "grader": "",
    "judge": Judge(prompt="judge/general-judge"),
    "metric": "math",
    "items": {"test": 150},
    "licence": "CC-BY-NC-4.0",
    "homepage": "https://github.com/patronus-ai/financebench",
    "citation": "arXiv:2311.11944",
}

BENCHMARKS = (
    Benchmark(
        name="financebench",
        title="FinanceBench: companies' reports, with the pages that answer",
        row=row,
        traps=(
            "The open sample: 150 of 10,231 questions.",
            "The judge's prompt is ours; the authors marked answers by hand.",
        ),
        **_COMMON,
    ),
    Benchmark(
        name="financebench_closedbook",
        title="FinanceBench from memory",
        row=closed_book,
        traps=("Without any document: the paper's models could answer less than one question in ten.",),
        **_COMMON,
    ),
)
