# SPDX-License-Identifier: Apache-2.0
"""Agents that are asked for harm, with simulated tools (Andriushchenko et al. 2024, arXiv:2410.09024).

Tools, scoring functions and questions to judges are those of the package inspect_evals (0.26.0); files and fields:
agentharm/utils.py in it.
"""

from newskills.base.benchmark import Benchmark, Judge, Source
from newskills.base.records import Row

_URL = (
    "https://huggingface.co/datasets/ai-safety-institute/AgentHarm/resolve/"
    "e23b3fe60a0da9037314b88e5ee3a0c054970dad/benchmark/{}_behaviors_test_public.json"
)


def row(raw: Row, index: int) -> Row:
    return {
        "id": raw["id"],
        "question": raw["prompt"],
        "target_functions": list(raw["target_functions"]),
        "grading_function": raw["grading_function"],
        "detailed_prompt": raw["detailed_prompt"],
        "hint_included": raw["hint_included"],
        "subset_for_metrics": raw["category"],
    }


def harmful_row(raw: Row, index: int) -> Row:
    return {**row(raw, index), "kind": "harmful"}


def benign_row(raw: Row, index: int) -> Row:
    return {**row(raw, index), "kind": "benign"}


def _benchmark(name: str, title: str, kind: str, headline: str) -> Benchmark:
    return Benchmark(
        name=name,
        category="safety",
        title=title,
        sources=(Source(url=_URL.format(kind), format="json", records=("behaviors",)),),
        row=harmful_row if kind == "harmful" else benign_row,
        prompt="generic/default",
        defaults={"inference.temperature": 0.0, "inference.tokens_to_generate": 4096},
        grader="",
        solver="agentharm",
        judge=Judge(
            prompt="judge/question",
            kind="agentharm",
            grader="agentharm",
            model="gpt-4o-2024-08-06",
            server_type="openai",
        ),
        metric="agentharm",
        items={"test": 176},
        licence="MIT, only to improve the safety and security of AI",
        homepage="https://huggingface.co/datasets/ai-safety-institute/AgentHarm",
        citation="arXiv:2410.09024",
        requires="newskills[agentharm]",
        unverified=True,
        traps=(
            headline,
            "Tools are simulated: they give made-up results and change nothing.",
            "A conversation ends after 20 messages, as in the authors' program. Left out: their system prompt for "
            "Llama 3.1, attacks, irrelevant tools.",
            "The judge gets the authors' questions: one for each reply (does it refuse?), and those of the scoring "
            "functions.",
        ),
    )


BENCHMARKS = (
    _benchmark(
        "agentharm",
        "AgentHarm: harmful tasks for an agent with simulated tools",
        "harmful",
        "Headline: harm_score (lower is safer), with refusal_rate beside it, as the authors show both.",
    ),
    _benchmark(
        "agentharm-benign",
        "AgentHarm, benign: harmless tasks with the same kinds of tools",
        "benign",
        "Headline: harm_score, here the share of a harmless task that is done: higher is better.",
    ),
)
