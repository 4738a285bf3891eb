# SPDX-License-Identifier: Apache-2.0
"""LiveBench's instruction following (White et al. 2024, arXiv:2406.19314): tasks on a newspaper's article, with
instructions that a program can check."""

from newskills.base.benchmark import Benchmark, Source
from newskills.benchmarks.reasoning.livebench import every, row


def _source(split: str) -> Source:
    return Source(
        split=split,
        github="LiveBench/LiveBench",
        ref="main",
        revision="995e86f0cb983054e1e283fbb81a111a25e444d0",
        members="livebench/data/live_bench/instruction_following/*/question.jsonl",
        sha256="41e056fcf2bc865f6f03b0d259ca21a3beddd61dd5eeba8fa102a1f8eb48eeae",
    )


BENCHMARK = Benchmark(
    name="livebench-instructions",
    category="instruction-following",
    title="LiveBench instruction following: paraphrase, simplify, summarize, write a story",
    sources=(_source("test"), _source("all")),
    row=row,
    variants={"all": every},
    prompt="generic/default",
    grader="livebench",
    metric="livebench",
    items={"test": 200, "all": 400},
    requires="newskills[instructions]",
    licence="Apache-2.0",
    homepage="https://livebench.ai",
    citation="arXiv:2406.19314",
    traps=(
        "Only questions without a removal date are in `test`; `all` has the removed ones, too.",
        "A reply is worth the mean of two shares: of its instructions that are followed, and 1 if all are, else 0.",
        "The paraphrases are those of [livebench](livebench.md).",
    ),
)
