# SPDX-License-Identifier: Apache-2.0
"""Short questions of fact in Chinese, about China and the world (He et al. 2024, arXiv:2411.07140)."""

from newskills.base.benchmark import Benchmark, Judge, Source
from newskills.base.records import Row


def row(raw: Row, index: int) -> Row:
    return {
        "id": raw["id"],
        "question": raw["question"],
        "expected_answer": raw["answer"],
        "subset_for_metrics": raw["primary_category"],
        "topic": raw["secondary_category"],
        "urls": raw["urls"],
    }


BENCHMARK = Benchmark(
    name="chinese-simpleqa",
    category="factuality",
    title="Chinese SimpleQA: short facts in Chinese",
    sources=(
        Source(
            url="https://raw.githubusercontent.com/OpenStellarTeam/ChineseSimpleQA/master/data/chinese_simpleqa.jsonl",
            revision="8b1aa9ebc5b91092356eb61f20f355c5993e6ce5",
            sha256="c626ca34be9bdd2203a45a70af9fed177d48d9f12ba10ebe9bf10f0c6b1eb484",
        ),
    ),
    row=row,
    prompt="generic/default",
    grader="",
    judge=Judge(prompt="judge/simpleqa", grader="verdict"),
    metric="simpleqa",
    items={"test": 3000},
    licence="MIT",
    homepage="https://github.com/OpenStellarTeam/ChineseSimpleQA",
    citation="arXiv:2411.07140",
    traps=("The judge must read Chinese; the prompt of the judge is in English.",),
)
