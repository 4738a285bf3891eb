# SPDX-License-Identifier: Apache-2.0
"""240 paragraphs and 1190 questions in twelve languages (Artetxe et al. 2019, arXiv:1910.11856)."""

from collections.abc import Iterator

from newskills.base.benchmark import Benchmark, Group, Source
from newskills.base.records import Row

_URL = "https://raw.githubusercontent.com/google-deepmind/xquad/master/"
_COMMIT = "7d30520c717524000f0d9d2f9c10a069acd9d285"

# Language → digest of its file.
_LANGUAGES = {
    "ar": "abdabd7afed5c635d99cca0f3f0d0c9d9ed0bc77451e963c2e4e0638c29e486d",
    "de": "990b5d746746ed65ed4702ea5f35f99ffa4e2f1c390c07d003642acd937916f9",
    "el": "821cf0f88e73fa258fd2f548b19b6ec39f7025059e16f6f9fc8cd797c9c3663e",
    "en": "e4c57d1c9143aaa1c5d265ba5987a65f4e69528d2a98f29d6e75019b10344f29",
    "es": "dcbae93ec3a9f4b9e78fd834a171d6f96c1a875e10e15b7530b7e4ef4971e37e",
    "hi": "df2cce3532b37e9beb8979704b5c9a4bf874358f105395a298b89427b43b9d24",
    "ro": "94f8d54e93ad2b7dd2e76dd921a666b5b8eff2d4379df9f179c42b445f09643f",
    "ru": "208d5b1aa154c52b1b5c5eda16281e455e8fd198cdb9af3f469f0d6037d973bf",
    "th": "5cdda11d0e1e075f7872abf4e6ae830388ce7f617964d542308e9ae4257e0f43",
    "tr": "92179a564774b7696100d144c1e10870d0a966b6fccbdd254a65b9d2ab1971cc",
    "vi": "f619a1eb11fb42d3ab0834259e488a65f585447ef6154437bfb7199d85161a04",
    "zh": "691d0b3359bc6b8faa8de931dfdfe21d50a65861ae348e32a0d1a0190b0c8835",
}


def rows(raw: Row, index: int) -> Iterator[Row]:
    """Yield the questions of one article."""
    for paragraph in raw["paragraphs"]:
        for question in paragraph["qas"]:
            first, *others = dict.fromkeys(answer["text"] for answer in question["answers"])
            yield {
                "id": question["id"],
                "question": f"{paragraph['context']}\n\n{question['question']}",
                "expected_answer": first,
                "accepted_answers": others,
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
                revision=_COMMIT,
                sha256=sha256,
            ),
        ),
        row=rows,
        prompt="generic/short-answer",
        grader="short_answer",
        metric="short_answer",
        items={"test": 1190},
        licence="CC-BY-SA-4.0",
        homepage="https://github.com/google-deepmind/xquad",
        citation="arXiv:1910.11856",
        traps=("As the authors score it, in every language: SQuAD's script for English.",),
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
