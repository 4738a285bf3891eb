# SPDX-License-Identifier: Apache-2.0
"""The same problems with more and more of them in the picture (Zhang et al. 2024, arXiv:2403.14624).

Configuration, split, fields and the five versions of the score: README.md of ZrrSkywalker/MathVerse (937b090); answers
are letters of choices, or free, as in mathverse of lmms-eval (75571cf) and evalscope (fde259d).
"""

from msgspec import structs

from newskills.base.benchmark import Benchmark, Judge, Source
from newskills.base.records import Row
from newskills.benchmarks.media import embedded_asset


def row(raw: Row, index: int) -> Row:
    """Map a row; vision-only problems have no text: the picture holds it."""
    version = raw["problem_version"]
    question = str(raw["question"] or "").strip()
    return {
        "id": f"mathverse-{raw['sample_index']}",
        "question": raw["question_for_eval"],
        "problem": question or "The problem is in the picture.",
        "expected_answer": str(raw["answer"]).strip(),
        "question_type": raw["question_type"],
        "image_path": embedded_asset(raw["image"], str(raw["sample_index"])),
        "subset_for_metrics": version.lower().replace(" ", "-"),
    }


def without_picture(raw: Row, index: int) -> Row:
    """Return a row without a picture: the text has all that the picture shows."""
    question = raw["question"].strip()
    return {
        "id": f"mathverse-text-only-{raw['sample_index']}",
        "question": question,
        "problem": question,
        "expected_answer": raw["answer"].strip(),
        "question_type": raw["question_type"],
        "subset_for_metrics": raw["metadata"]["subject"],
    }


_JUDGED = (
    "Answers are judged, as the authors' score without CoT: they let GPT extract and match. The prompts are ours."
)
_MATHVERSE = Benchmark(
    name="mathverse",
    category="vlm",
    title="MathVerse: problems with more and more of them in the picture",
    sources=(Source(split="testmini", hf="AI4Math/MathVerse", config="testmini"),),
    split="testmini",
    row=row,
    prompt="vlm/math",
    grader="",
    judge=Judge(prompt="judge/math-picture"),
    metric="macro",
    items={"testmini": 3940},
    licence="MIT",
    homepage="https://huggingface.co/datasets/AI4Math/MathVerse",
    citation="arXiv:2403.14624",
    requires="newskills[media]",
    unverified=True,
    traps=(
        "Headline: the mean of the five versions (macro_accuracy), 788 problems each; the sixth version, "
        "which has no picture, is `mathverse-text-only`, and part of no overall score.",
        _JUDGED,
    ),
)
BENCHMARKS = (
    _MATHVERSE,
    structs.replace(
        _MATHVERSE,
        name="mathverse-text-only",
        title="MathVerse without pictures: all that they show is said",
        sources=(
            Source(
                split="testmini",
                url="https://raw.githubusercontent.com/ZrrSkywalker/MathVerse/main/data/testmini_text_only.json",
                revision="937b090597aeafb8e82b35d310a4bc5b9e2ea29d",
                format="json",
                sha256="92691a49742b0ba18851898c0546670e5a1c63dd685c634aacbc8ffd7b869678",
            ),
        ),
        row=without_picture,
        prompt="generic/math",
        metric="math",
        items={"testmini": 788},
        requires="",
        unverified=False,
        homepage="https://github.com/ZrrSkywalker/MathVerse",
        traps=(
            "The authors' version Text Only, with which they ask what a model needs pictures for: part of no overall "
            "score, so do not compare it with `mathverse`.",
            _JUDGED,
        ),
    ),
)
