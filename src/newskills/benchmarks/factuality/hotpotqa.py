# SPDX-License-Identifier: Apache-2.0
"""Questions over two of ten paragraphs, with the sentences that answer them (Yang et al. 2018, arXiv:1809.09600)."""

from typing import Any

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row


def format_paragraphs(context: Row) -> str:
    """Join paragraphs with a title and numbered sentences."""
    return "\n\n".join(
        "\n".join(
            [f"Title: {title}", *(f"[{place}] {sentence.strip()}" for place, sentence in enumerate(sentences))]
        )
        for title, sentences in zip(context["title"], context["sentences"], strict=True)
    )


def row(raw: Row, index: int) -> Row:
    facts = raw["supporting_facts"]
    return {
        "id": raw["id"],
        "question": raw["question"],
        "expected_answer": raw["answer"],
        "context": format_paragraphs(raw["context"]),
        "supporting_facts": [list(pair) for pair in zip(facts["title"], facts["sent_id"], strict=True)],
        "type": raw["type"],
        "level": raw["level"],
    }


_COMMON: dict[str, Any] = {
    "category": "factuality",
    "grader": "hotpotqa",
    "split": "validation",
    "items": {"validation": 7405},
    "licence": "CC-BY-SA-4.0",
    "homepage": "https://hotpotqa.github.io",
    "citation": "arXiv:1809.09600",
    "unverified": True,
}

BENCHMARKS = (
    Benchmark(
        name="hotpotqa",
        title="HotpotQA: answers and supporting facts, with distractors",
        sources=(Source(split="validation", hf="hotpotqa/hotpot_qa", config="distractor"),),
        row=row,
        prompt="eval/hotpotqa",
        metric="hotpotqa",
        traps=(
            "Sentence numbers of the supporting facts are scored, too.",
            "`filtered_…` modes leave out questions whose answer cannot be told by its text.",
        ),
        **_COMMON,
    ),
    Benchmark(
        name="hotpotqa_closedbook",
        title="HotpotQA from memory",
        sources=(Source(split="validation", hf="hotpotqa/hotpot_qa", config="distractor"),),
        row=row,
        data="hotpotqa",
        prompt="eval/hotpotqa_closedbook",
        grader_config={"supporting_facts": False},
        metric="hotpotqa_closedbook",
        traps=("The paragraphs are in the data and are not shown.",),
        **_COMMON,
    ),
)
