# SPDX-License-Identifier: Apache-2.0
"""GSM8K problems varied in eight ways (Li et al. 2024, arXiv:2402.19255)."""

import re
from bisect import bisect_left
from functools import partial

from msgspec.structs import replace

from newskills.base.benchmark import Benchmark, Drop, Option, RowMapper, Source
from newskills.base.records import Row
from newskills.benchmarks.downloads.sources import BESIDE
from newskills.benchmarks.options import rows_with, single_value
from newskills.benchmarks.text import number_text

_NUMBER = re.compile(r"-?\d+(?:\.(\d+))?")
_LISTS = (
    "https://raw.githubusercontent.com/NVIDIA-NeMo/Skills/main/nemo_skills/dataset/gsm-plus/cleaned_indexes.json"
)
_WAYS = (
    "adding_operation",
    "critical_thinking",
    "digit_expansion",
    "distraction_insertion",
    "integer-decimal-fraction_conversion",
    "numerical_substitution",
    "problem_understanding",
    "reversing_operation",
)
_SOUND = {"light": 9204, "hard": 8616}
_UNSOUND = Drop("they are on no list of sound rows")


def row(raw: Row, index: int) -> Row:
    kept = {key: value for key, value in raw.items() if key not in ("question", "answer", "solution", BESIDE)}
    answer = "insufficient" if raw["answer"] in (None, "None") else number_text(raw["answer"])
    return {
        **kept,
        "problem": raw["question"],
        "expected_answer": answer,
        "reference_solution": raw["solution"],
        "subset_for_metrics": raw["perturbation_type"].replace(" ", "_"),
    }


def rounded_row(raw: Row, index: int) -> Row:
    """Add to the question how many decimals the answer should have, where it is a number."""
    made = row(raw, index)
    if number := _NUMBER.fullmatch(made["expected_answer"]):
        places = len(number[1] or "")
        form = f"Round your answer to {places} decimal place{'s' if places > 1 else ''}."
        made["problem"] += f" {form if places else 'Give your answer as an integer.'}"
    return made


def sound_row(level: str, mapper: RowMapper, raw: Row, index: int) -> Row | Drop:
    """Keep only rows whose numbers are on the list `level` of those that people found to be right."""
    numbers = raw[BESIDE][level]
    place = bisect_left(numbers, index)
    if place == len(numbers) or numbers[place] != index:
        return _UNSOUND
    made = mapper(raw, index)
    assert isinstance(made, dict)
    return made


def _with_cleaning(benchmark: Benchmark, values: tuple[str, ...]) -> Benchmark:
    level = single_value("--cleaning", values)
    if level == "none":
        return benchmark
    assert benchmark.row is not None, "this benchmark has a mapping"
    return replace(
        benchmark,
        sources=tuple(replace(source, beside=_LISTS) for source in benchmark.sources),
        row=partial(sound_row, level, benchmark.row),
        variants={name: partial(sound_row, level, mapper) for name, mapper in benchmark.variants.items()},
        items=dict.fromkeys(benchmark.items, _SOUND[level]),
    )


def _without_rounded_split(benchmark: Benchmark, values: tuple[str, ...]) -> Benchmark:
    left = tuple(source for source in benchmark.sources if source.split == "test")
    return replace(benchmark, sources=left, variants={}, items={"test": 10552})


BENCHMARK = Benchmark(
    name="gsm-plus",
    category="math-natural",
    title="GSM-Plus: GSM8K problems varied in eight ways",
    sources=(
        Source(hf="qintongli/GSM-Plus"),
        Source(split="test_rounded", hf="qintongli/GSM-Plus", hf_split="test"),
    ),
    row=row,
    variants={"test_rounded": rounded_row},
    options={
        "cleaning": Option(
            meaning="only rows that people found to be right, by a list of NeMo-Skills",
            apply=_with_cleaning,
            known=("none", "light", "hard"),
            usual="none",
        ),
        "categories": rows_with("subset_for_metrics", "only these ways of varying", *_WAYS),
        "no_rounding_instructions": Option(
            meaning="leave out the split test_rounded", apply=_without_rounded_split
        ),
    },
    prompt="generic/math",
    items={"test": 10552, "test_rounded": 10552},
    licence="CC-BY-SA-4.0",
    homepage="https://huggingface.co/datasets/qintongli/GSM-Plus",
    citation="arXiv:2402.19255",
    unverified=True,
    traps=(
        "Where the problem lacks a statement (critical_thinking), the right answer is the word insufficient.",
        "Some answers are decimals that the question does not ask to round: the split test_rounded does.",
        "Some rows are wrong: --cleaning light or hard leaves out 13 % or 18 % of all.",
    ),
)
