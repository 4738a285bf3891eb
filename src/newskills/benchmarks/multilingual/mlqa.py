# SPDX-License-Identifier: Apache-2.0
"""Questions about texts in seven languages (Lewis et al. 2019, arXiv:1910.07475)."""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row

_LANGUAGES = ("ar", "de", "en", "es", "hi", "vi", "zh")


def row(raw: Row, index: int) -> Row:
    context, question = raw["_config"].split(".")[1:]
    first, *others = dict.fromkeys(raw["answers"]["text"])
    return {
        "question": f"{raw['context']}\n\n{raw['question']}",
        "expected_answer": first,
        "accepted_answers": others,
        "language": context,
        "subset_for_metrics": f"{context}-{question}",
    }


BENCHMARK = Benchmark(
    name="mlqa",
    category="multilingual",
    title="MLQA: questions about texts in seven languages",
    sources=(
        Source(hf="facebook/mlqa", config=f"{{{','.join(f'mlqa.{code}.{code}' for code in _LANGUAGES)}}}"),
        Source(
            split="cross",
            hf="facebook/mlqa",
            config=f"{{{','.join(f'mlqa.{a}.{b}' for a in _LANGUAGES for b in _LANGUAGES if a != b)}}}",
            hf_split="test",
        ),
    ),
    row=row,
    prompt="generic/short-answer",
    grader="short_answer",
    metric="short_answer",
    licence="CC-BY-SA-3.0",
    homepage="https://github.com/facebookresearch/MLQA",
    citation="arXiv:1910.07475",
    unverified=True,
    traps=(
        "Text and question have the same language; the split cross has the 42 pairs of different ones.",
        "Punctuation and articles of the text's language do not count; Chinese is compared by characters.",
    ),
)
