# SPDX-License-Identifier: Apache-2.0
"""Questions that many people answer falsely (Lin et al. 2022, arXiv:2109.07958); a judge reads free answers."""

from newskills.base.benchmark import Benchmark, Judge, Source
from newskills.base.records import Row


def row(raw: Row, index: int) -> Row:
    return {
        "id": f"truthfulqa-{index}",
        "question": raw["Question"],
        "expected_answer": raw["Best Answer"],
        "correct_answers": _bulleted_answers(raw["Correct Answers"]),
        "incorrect_answers": _bulleted_answers(raw["Incorrect Answers"]),
        "type": raw["Type"],
        "topic": raw["Category"],
        "reference": raw["Source"],
    }


def _bulleted_answers(answers: str) -> str:
    return "\n".join(f"- {answer.strip()}" for answer in answers.split(";") if answer.strip())


BENCHMARK = Benchmark(
    name="truthfulqa",
    category="factuality",
    title="TruthfulQA: questions that invite common misconceptions",
    sources=(
        Source(
            url="https://raw.githubusercontent.com/benedictflorance/truthfulqa_experiments/main/datasets/TruthfulQA.csv",
            format="csv",
            revision="6fdfd38288e86296582a584694df5cf43d1f634a",
            sha256="99d6ae7755e3b435eade956068c9de7c0c474770344237aeb66b56519ba4b697",
            split="validation",
        ),
    ),
    row=row,
    prompt="generic/default",
    grader="",
    judge=Judge(prompt="judge/truthfulqa"),
    split="validation",
    items={"validation": 817},
    licence="Apache-2.0",
    homepage="https://github.com/sylinrl/TruthfulQA",
    citation="arXiv:2109.07958",
    traps=(
        "The original score used a fine-tuned model as judge: compare only results of one judge and one prompt.",
        "To say that one does not know counts as truthful.",
    ),
)
