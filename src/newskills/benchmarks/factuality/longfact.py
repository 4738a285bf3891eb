# SPDX-License-Identifier: Apache-2.0
"""Questions that ask for long answers full of facts (Wei et al. 2024, arXiv:2403.18802)."""

from newskills.base.benchmark import Benchmark, Judge, Source
from newskills.base.records import Row


def row(raw: Row, index: int) -> Row:
    """Return the row with the set (concepts, objects) and the topic, which the file's name says; the canary is left out
    of prompts and rows."""
    kind, _, topic = (
        raw["_file"].rpartition("/")[2].removesuffix(".jsonl").removeprefix("longfact-").partition("_")
    )
    return {"question": raw["prompt"], "topic": topic, "subset_for_metrics": kind}


BENCHMARK = Benchmark(
    name="longfact",
    category="factuality",
    title="LongFact: long answers, checked claim by claim",
    sources=(
        Source(
            github="google-deepmind/long-form-factuality",
            ref="main",
            revision="9d27158d198ced0a9d8271a80147cae580614601",
            members="longfact/*/*.jsonl",
            sha256="65d017e99b57e4b4ecb5a0953cd93462d4d2589d48a9328088d453a6672f8ab4",
        ),
    ),
    row=row,
    prompt="generic/default",
    grader="",
    judge=Judge(
        prompt="judge/longfact",
        kind="claims",
        grader="longfact",
        defaults={"tool_modules": ["tavily"]},
    ),
    metric="longfact",
    items={"test": 2280},
    licence="CC-BY-4.0",
    homepage="https://github.com/google-deepmind/long-form-factuality",
    citation="arXiv:2403.18802",
    traps=(
        "The judge searches the web: it needs a key (TAVILY_API_KEY, or another tool by ++tool_modules), and some "
        "hundred requests and searches for each answer. The authors took 250 of the questions about objects.",
        "The authors split, search and rate by prompts of their own: scores of other judges do not compare.",
        "Each source row has a canary: keep these files out of training data.",
    ),
)
