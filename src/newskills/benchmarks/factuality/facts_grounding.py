# SPDX-License-Identifier: Apache-2.0
"""Long answers that must rest on a document (Jacovi et al. 2025, arXiv:2501.03200)."""

from newskills.base.benchmark import Benchmark, Judge, Source
from newskills.base.records import Row

_KEPT = ("system_instruction", "user_request", "context_document")


def row(raw: Row, index: int) -> Row:
    return {"question": raw["full_prompt"], **{name: raw.get(name) for name in _KEPT}}


BENCHMARK = Benchmark(
    name="facts_grounding",
    category="factuality",
    title="FACTS Grounding: answers that rest on a document",
    aliases=("facts-grounding",),
    sources=(Source(split="public", hf="google/FACTS-grounding-public", config="examples"),),
    row=row,
    prompt="generic/default",
    grader="",
    judge=Judge(prompt="judge/facts-grounding"),
    split="public",
    items={"public": 860},
    licence="CC-BY-4.0",
    homepage="https://huggingface.co/datasets/google/FACTS-grounding-public",
    citation="arXiv:2501.03200",
    unverified=True,
    traps=(
        "The leaderboard averages three judges; here one judge decides on both tests at once.",
        "An answer that does not do what was asked counts as zero, however well grounded.",
    ),
)
