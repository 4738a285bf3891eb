# SPDX-License-Identifier: Apache-2.0
"""Questions that native speakers asked, with a passage that answers them, in nine languages (Clark et al. 2020).

Configuration, split and fields of the gold-passage task: tydiqa of lighteval (3fd1526); ids begin with the language.
"""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row

_LANGUAGES = frozenset(
    ("arabic", "bengali", "english", "finnish", "indonesian", "korean", "russian", "swahili", "telugu")
)


def row(raw: Row, index: int) -> Row:
    language = raw["id"].partition("-")[0]
    if language not in _LANGUAGES:
        raise ValueError(f"the id {raw['id']!r} begins with no language of the task")
    first, *others = dict.fromkeys(text for text in raw["answers"]["text"] if text)
    return {
        "id": raw["id"],
        "question": f"{raw['context']}\n\n{raw['question']}",
        "expected_answer": first,
        "accepted_answers": others,
        "subset_for_metrics": language,
    }


BENCHMARK = Benchmark(
    name="tydiqa",
    category="multilingual",
    title="TyDi QA, gold passage: questions about a passage in nine languages",
    aliases=("tydiqa-goldp",),
    sources=(
        Source(split="validation", hf="google-research-datasets/tydiqa", config="secondary_task"),
        Source(split="train", hf="google-research-datasets/tydiqa", config="secondary_task", hf_split="train"),
    ),
    split="validation",
    row=row,
    prompt="generic/short-answer",
    grader="short_answer",
    metric="short_answer_sections",
    metric_config={"aside": ["english"]},
    headline="`macro_f1`: mean over the eight languages but English of the F1 of the answer's words; `macro_em`, of "
    "equal answers",
    items={"validation": 5077, "train": 49881},
    licence="Apache-2.0",
    homepage="https://huggingface.co/datasets/google-research-datasets/tydiqa",
    citation="arXiv:2003.05002",
    unverified=True,
    traps=(
        "Headline: the mean of the languages without English, as the authors ask; f1 and em are over all questions.",
        "As the authors score it, in every language: SQuAD's script for English.",
        "The gold-passage task; the primary task, which looks for the passage in an article, is not here.",
    ),
)
