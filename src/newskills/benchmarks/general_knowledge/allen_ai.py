# SPDX-License-Identifier: Apache-2.0
"""School science: ARC (Clark et al. 2018, arXiv:1803.05457) and OpenBookQA (Mihaylov et al. 2018, arXiv:1809.02789)."""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.text import BY_LIKELIHOOD, choices


def row(raw: Row, index: int) -> Row:
    options = raw["choices"]
    right = options["label"].index(raw["answerKey"])
    if "question_stem" in raw:
        question = context = raw["question_stem"]
    else:
        question, context = raw["question"], f"Question: {raw['question']}\nAnswer:"
    return {
        "id": raw["id"],
        "expected_answer": "ABCDE"[right],
        **choices(question, options["text"]),
        "context": context,
        "continuations": [f" {text}" for text in options["text"]],
    }


def _benchmark(name: str, title: str, source: Source, items: int, aliases: tuple[str, ...] = ()) -> Benchmark:
    if source.hf == "allenai/ai2_arc":
        licence, paper, trap = "CC-BY-SA-4.0", "arXiv:1803.05457", _ARC
    else:
        licence, paper, trap = "Apache-2.0", "arXiv:1809.02789", "The facts of the open book are not shown."
    return Benchmark(
        name=name,
        category="general-knowledge",
        title=title,
        aliases=aliases,
        sources=(source,),
        row=row,
        prompt="eval/aai/mcq-10choices",
        grader="multichoice",
        metric="multichoice",
        items={"test": items},
        licence=licence,
        homepage=f"https://huggingface.co/datasets/{source.hf}",
        citation=paper,
        chance=0.25,
        unverified=True,
        traps=(trap, BY_LIKELIHOOD),
    )


_ARC = "Labels are 1 to 4 in some rows, and a few rows have 3 or 5 options: the letter follows the position."

BENCHMARKS = (
    _benchmark(
        "arc_challenge",
        "ARC: science questions that retrieval does not solve",
        Source(hf="allenai/ai2_arc", config="ARC-Challenge"),
        1172,
        ("arc-c",),
    ),
    _benchmark("arc_easy", "ARC: easier science questions", Source(hf="allenai/ai2_arc", config="ARC-Easy"), 2376),
    _benchmark(
        "openbookqa",
        "OpenBookQA: elementary science with common knowledge",
        Source(hf="allenai/openbookqa", config="main"),
        500,
    ),
)
