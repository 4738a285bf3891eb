# SPDX-License-Identifier: Apache-2.0
"""LiveBench's instruction following (White et al. 2024, arXiv:2406.19314): tasks on a newspaper's article, with
instructions that a program can check."""

from msgspec import structs

from newskills.benchmarks.reasoning.livebench import BENCHMARK as LIVEBENCH
from newskills.benchmarks.reasoning.livebench import CURRENT, question_sources

BENCHMARK = structs.replace(
    LIVEBENCH,
    name="livebench-instructions",
    category="instruction-following",
    title="LiveBench instruction following: paraphrase, simplify, summarize, write a story",
    sources=question_sources(
        "instruction_following/{paraphrase,simplify,story_generation,summarize}",
        "41e056fcf2bc865f6f03b0d259ca21a3beddd61dd5eeba8fa102a1f8eb48eeae",
    ),
    items={"test": 200, "all": 400},
    traps=(
        CURRENT,
        "A reply is worth the mean of two shares: of its instructions that are followed, and 1 if all are, else 0.",
        "The paraphrases are those of [livebench](livebench.md).",
    ),
)
