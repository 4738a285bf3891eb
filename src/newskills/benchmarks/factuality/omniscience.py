# SPDX-License-Identifier: Apache-2.0
"""Knowledge against guessing: wrong answers cost what right ones gain (Artificial Analysis 2025, arXiv:2511.13029)."""

from functools import partial

from newskills.base.benchmark import Benchmark, Drop, Judge, Source
from newskills.base.records import Row

_DOMAINS = {
    "humanities": "Humanities and Social Sciences",
    "health": "Health",
    "swe": "Software Engineering",
    "stem": "Science Engineering and Mathematics",
    "law": "Law",
    "finance": "Finance",
}


def row(raw: Row, index: int) -> Row:
    return {
        "id": str(raw["question_id"]),
        "domain": raw["domain"],
        "topic": raw["topic"],
        "question": raw["question"],
        "expected_answer": str(raw["answer"]),
        "subset_for_metrics": raw["domain"],
    }


def of_domain(split: str, raw: Row, index: int) -> Row | Drop:
    if raw["domain"] == _DOMAINS[split]:
        return row(raw, index)
    return Drop("a question of another domain")


BENCHMARK = Benchmark(
    name="omniscience",
    category="factuality",
    title="AA-Omniscience: knowledge and restraint in six domains",
    aliases=("aa-omniscience", "ns_omniscience"),
    sources=tuple(
        Source(
            split=split,
            hf="ArtificialAnalysis/AA-Omniscience-Public",
            hf_split="train",
        )
        for split in ("text", *_DOMAINS)
    ),
    row=row,
    variants={split: partial(of_domain, split) for split in _DOMAINS},
    prompt="eval/aai/omni",
    grader="",
    judge=Judge(
        prompt="judge/aa-omni-judge",
        grader="verdict",
        grader_config={
            "verdicts": {"A": "correct", "B": "incorrect", "C": "partially_correct", "D": "abstained"},
            "unanswered": ["abstained"],
        },
        model="gemini-2.5-flash-preview-09-2025",
        server_type="gemini",
    ),
    metric="omniscience",
    defaults={"parse_reasoning": True},
    split="text",
    items={"text": 600},
    licence="unstated",
    homepage="https://huggingface.co/datasets/ArtificialAnalysis/AA-Omniscience-Public",
    citation="arXiv:2511.13029",
    unverified=True,
    traps=(
        "judge_omni_index counts right answers less wrong ones: it is 0 for a model that always abstains.",
        "The public set is a tenth of the whole; published numbers are of the whole.",
    ),
)
