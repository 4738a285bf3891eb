# SPDX-License-Identifier: Apache-2.0
"""Questions of local examinations in 44 languages (Romanou et al. 2024, arXiv:2411.19799).

Configurations, split and fields: the tasks include/default of lm-evaluation-harness (4e7e0d4).
"""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.options import sources_with
from newskills.benchmarks.text import choices

_LANGUAGES = (
    "Albanian,Arabic,Armenian,Azerbaijani,Basque,Belarusian,Bengali,Bulgarian,Chinese,Croatian,Dutch,Estonian,Finnish,"
    "French,Georgian,German,Greek,Hebrew,Hindi,Hungarian,Indonesian,Italian,Japanese,Kazakh,Korean,Lithuanian,Malay,"
    "Malayalam,Nepali,North Macedonian,Persian,Polish,Portuguese,Russian,Serbian,Spanish,Tagalog,Tamil,Telugu,Turkish,"
    "Ukrainian,Urdu,Uzbek,Vietnamese"
)


def row(raw: Row, index: int) -> Row:
    """Map a row; `answer` is the place of the right option, from 0."""
    language, answer = raw["_config"], raw["answer"]
    if answer not in range(4):
        raise ValueError(f"the answer is {answer!r}")
    return {
        "id": f"{language.lower().replace(' ', '-')}-{index}",
        "question": raw["question"],
        **choices(raw["question"], [raw[f"option_{letter}"] for letter in "abcd"]),
        "expected_answer": "ABCD"[answer],
        "subject": raw["subject"],
        "domain": raw["domain"],
        "subset_for_metrics": language,
    }


BENCHMARK = Benchmark(
    name="include",
    category="multilingual",
    title="INCLUDE (base): local examinations in 44 languages",
    aliases=("include-base-44",),
    sources=(Source(hf="CohereLabs/include-base-44", config=f"{{{_LANGUAGES}}}"),),
    row=row,
    options={"languages": sources_with("config", "only these languages", *_LANGUAGES.split(","), usual="all")},
    prompt="generic/mcq",
    grader="multichoice",
    metric="macro",
    licence="Apache-2.0",
    homepage="https://huggingface.co/datasets/CohereLabs/include-base-44",
    citation="arXiv:2411.19799",
    chance=0.25,
    unverified=True,
    traps=(
        "accuracy is over all questions, macro_accuracy the mean over languages: harnesses score each language alone.",
        "The instruction is English; the paper has instructions in the language of the question, too.",
    ),
)
