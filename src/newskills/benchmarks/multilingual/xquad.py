# SPDX-License-Identifier: Apache-2.0
"""240 paragraphs and 1190 questions in twelve languages (Artetxe et al. 2019, arXiv:1910.11856)."""

from collections.abc import Iterator
from functools import partial

from newskills.base.benchmark import Benchmark, Group, Source
from newskills.base.records import Row

_URL = "https://raw.githubusercontent.com/google-deepmind/xquad/master/"
_COMMIT = "7d30520c717524000f0d9d2f9c10a069acd9d285"

# Language → digest of its file where it was read, else ''.
_LANGUAGES = dict.fromkeys(("ar", "de", "el", "en", "es", "hi", "ro", "ru", "th", "tr", "vi", "zh"), "") | {
    "de": "990b5d746746ed65ed4702ea5f35f99ffa4e2f1c390c07d003642acd937916f9",
    "en": "e4c57d1c9143aaa1c5d265ba5987a65f4e69528d2a98f29d6e75019b10344f29",
    "zh": "691d0b3359bc6b8faa8de931dfdfe21d50a65861ae348e32a0d1a0190b0c8835",
}


def rows(language: str, raw: Row, index: int) -> Iterator[Row]:
    """One article → its questions."""
    for paragraph in raw["paragraphs"]:
        for question in paragraph["qas"]:
            first, *others = dict.fromkeys(answer["text"] for answer in question["answers"])
            yield {
                "id": question["id"],
                "question": f"{paragraph['context']}\n\n{question['question']}",
                "expected_answer": first,
                "accepted_answers": others,
                "language": language,
            }


def _benchmark(language: str, sha256: str) -> Benchmark:
    return Benchmark(
        name=f"xquad.{language}",
        category="multilingual",
        title=f"XQuAD: questions about a text, {language}",
        sources=(
            Source(
                url=f"{_URL}xquad.{language}.json",
                format="json",
                records=("data",),
                revision=_COMMIT if sha256 else "",
                sha256=sha256,
            ),
        ),
        row=partial(rows, language),
        prompt="generic/short-answer",
        grader="short_answer",
        metric="short_answer",
        items={"test": 1190},
        licence="CC-BY-SA-4.0",
        homepage="https://github.com/google-deepmind/xquad",
        citation="arXiv:1910.11856",
        unverified=not sha256,
        traps=("Punctuation and articles of the language do not count; Chinese is compared by characters.",),
    )


BENCHMARKS = tuple(_benchmark(*language_settings) for language_settings in _LANGUAGES.items())

GROUP = Group(
    name="xquad",
    category="multilingual",
    title="XQuAD: questions about a text in twelve languages",
    members={benchmark.name: {} for benchmark in BENCHMARKS},
    homepage="https://github.com/google-deepmind/xquad",
    citation="arXiv:1910.11856",
)
