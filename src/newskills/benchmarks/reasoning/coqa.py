# SPDX-License-Identifier: Apache-2.0
"""Conversations about a story, answers of a few words (Reddy et al. 2018, arXiv:1808.07042)."""

from collections.abc import Iterator

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row


def row(raw: Row, index: int) -> Iterator[Row]:
    """Yield one row per turn, with the earlier turns and their right answers in the question."""
    questions, answers = raw["questions"]["input_text"], raw["answers"]["input_text"]
    others = [other["input_text"] for other in raw["additional_answers"].values()]
    story = f"Story:\n{raw['story'].strip()}\n"
    for turn, (question, answer) in enumerate(zip(questions, answers, strict=True)):
        story += f"\nQuestion: {question}"
        yield {
            "id": f"coqa-{index}-{turn + 1}",
            "question": story,
            "expected_answer": answer,
            "accepted_answers": [other[turn] for other in others],
            "turn": turn + 1,
        }
        story += f"\nAnswer: {answer}"


BENCHMARK = Benchmark(
    name="coqa",
    category="reasoning",
    title="CoQA: conversation about a story",
    sources=(Source(split="validation", hf="EleutherAI/coqa"),),
    row=row,
    prompt="generic/short-answer",
    grader="short_answer",
    grader_config={"measure": "coqa"},
    metric="short_answer",
    split="validation",
    items={"validation": 7983},
    licence="mixed, by the origin of the story",
    homepage="https://stanfordnlp.github.io/coqa/",
    citation="arXiv:1808.07042",
    unverified=True,
    traps=(
        "Earlier turns are shown with their right answers, not with the model's own.",
        "Of four people's answers the best of three counts, as the mean over leaving one out: the official script.",
    ),
)
