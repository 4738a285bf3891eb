# SPDX-License-Identifier: Apache-2.0
"""MMLU as people translated it into 14 languages (OpenAI, simple-evals)."""

from msgspec.structs import replace

from newskills.base.benchmark import Benchmark, Option, Source
from newskills.base.records import Row
from newskills.benchmarks.general_knowledge.mmlu import AREA
from newskills.benchmarks.options import sources_with
from newskills.benchmarks.text import choices

_LANGUAGES = (
    "AR-XY", "BN-BD", "DE-DE", "ES-LA", "FR-FR", "HI-IN", "ID-ID", "IT-IT", "JA-JP", "KO-KR", "PT-BR", "SW-KE", "YO-NG",
    "ZH-CN",
)  # fmt: skip
_FILES = "https://openaipublic.blob.core.windows.net/simple-evals/"


def row(raw: Row, index: int) -> Row:
    language = raw["_file"].removesuffix(".csv").removeprefix("mmlu").removeprefix("_") or "EN-US"
    if raw["Answer"] not in ("A", "B", "C", "D"):
        raise ValueError(f"the answer is {raw['Answer']!r}, A to D is expected")
    fields = choices(raw["Question"], [raw[letter] for letter in "ABCD"])
    return {
        **fields,
        "question": raw["Question"],
        "expected_answer": raw["Answer"],
        "subset_for_metrics": language,
        "category": AREA.get(raw["Subject"], raw["Subject"]),
    }


def _with_english(benchmark: Benchmark, values: tuple[str, ...]) -> Benchmark:
    sources = tuple(replace(source, url=source.url.replace("}", ",mmlu}")) for source in benchmark.sources)
    return replace(benchmark, sources=sources, items={})


BENCHMARK = Benchmark(
    name="mmmlu",
    category="multilingual",
    title="MMMLU: MMLU in 14 languages",
    sources=(
        Source(url=f"{_FILES}{{{','.join(f'mmlu_{language}' for language in _LANGUAGES)}}}.csv", format="csv"),
    ),
    row=row,
    options={
        "languages": sources_with("url", "only these languages", *_LANGUAGES, form="mmlu_{}", usual="all"),
        "include_english": Option(meaning="the English original, too", apply=_with_english),
    },
    prompt="eval/aai/mcq-4choices",
    grader="multichoice",
    metric="multichoice",
    items={"test": 14 * 14042},
    licence="MIT",
    homepage="https://huggingface.co/datasets/openai/MMMLU",
    citation="arXiv:2009.03300",
    chance=0.25,
    unverified=True,
    traps=("The first column of the csv files has no name.", "The instruction is English for all languages."),
)
