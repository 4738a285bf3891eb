# SPDX-License-Identifier: Apache-2.0
"""MT-Bench in Korean, with questions about Korea (LG AI Research 2024, arXiv:2408.03541)."""

from collections.abc import Iterable, Iterator

from msgspec import structs

from newskills.base.benchmark import Source
from newskills.base.records import Row
from newskills.benchmarks.chat_judge.mt_bench import BENCHMARK as MT_BENCH
from newskills.benchmarks.chat_judge.mt_bench import join_references as join_mt_bench_references
from newskills.benchmarks.chat_judge.mt_bench import row as mt_bench_row

_WITH_REFERENCE = frozenset({"math", "reasoning", "coding"})
"""Categories in which the original's judge is shown the reference answers; they exist for all."""
_REVISION = "56d4f3af437543dce39f08aecfb818abed81210d"


def join_references(raw: Iterable[Row]) -> Iterator[Row]:
    """Join questions with the reference answers that the judge gets."""
    for row in join_mt_bench_references(raw):
        yield row if row["category"] in _WITH_REFERENCE else {**row, "references": []}


def row(raw: Row, index: int) -> Row:
    return {**mt_bench_row(raw, index), "id": f"komt-bench-{raw['question_id']}"}


BENCHMARK = structs.replace(
    MT_BENCH,
    name="komt-bench",
    title="KoMT-Bench: conversations of two turns in Korean",
    sources=(
        Source(
            url="https://raw.githubusercontent.com/LG-AI-EXAONE/KoMT-Bench/main/FastChat/fastchat/llm_judge/data/"
            "mt_bench/{question_ko.jsonl,reference_answer_ko/gpt-4.jsonl}",
            revision=_REVISION,
        ),
    ),
    join=join_references,
    row=row,
    licence="LGPL-3.0",
    homepage="https://github.com/LG-AI-EXAONE/KoMT-Bench",
    citation="arXiv:2408.03541",
    traps=(
        *MT_BENCH.traps,
        "The original takes the square root of marks of replies that are not in Korean; that is not done here, so a "
        "model that answers in English is marked too well.",
        "The judge's prompt is ours, in English; the original's is Korean.",
    ),
)
