# SPDX-License-Identifier: Apache-2.0
"""Conversations about health, marked by criteria of physicians (Arora et al. 2025, arXiv:2505.08775).

Addresses, fields, points and the mean that is cut to 0–1: healthbench_eval.py of openai/simple-evals (ee3b031); the
numbers of rows: inspect_evals 0.26.0.
"""

from newskills.base.benchmark import Benchmark, Judge, Source
from newskills.base.records import Row

_URL = "https://openaipublic.blob.core.windows.net/simple-evals/healthbench/{}.jsonl"
_THEME = "theme:"


def row(raw: Row, index: int) -> Row:
    messages = [{"role": turn["role"], "content": turn["content"]} for turn in raw["prompt"]]
    rubrics = [{name: rubric[name] for name in ("criterion", "points", "tags")} for rubric in raw["rubrics"]]
    if not any(rubric["points"] > 0 for rubric in rubrics):
        raise ValueError("no criterion has positive points")
    return {
        "id": raw["prompt_id"],
        "messages": messages,
        "conversation": "\n\n".join(f"{turn['role']}: {turn['content']}" for turn in messages),
        "rubrics": rubrics,
        "subset_for_metrics": [tag.removeprefix(_THEME) for tag in raw["example_tags"] if tag.startswith(_THEME)],
    }


def _benchmark(name: str, title: str, file: str, items: int, *traps: str) -> Benchmark:
    return Benchmark(
        name=name,
        category="science",
        title=title,
        sources=(Source(url=_URL.format(file)),),
        row=row,
        prompt="",
        defaults={"prompt_format": "openai"},
        grader="",
        judge=Judge(
            prompt="judge/rubric",
            kind="rubric",
            grader="rubric",
            model="gpt-4.1-2025-04-14",
            server_type="openai",
        ),
        metric="rubric",
        items={"test": items},
        licence="MIT",
        homepage="https://openai.com/index/healthbench/",
        citation="arXiv:2505.08775",
        unverified=True,
        traps=(
            "Headline: the mean of points reached of points possible, cut to 0–100 as a whole, not by sample.",
            "The judge is asked once for each criterion, 11 times a conversation on average.",
            "The judge's prompt is ours; published scores are those of GPT-4.1 by the authors' prompt.",
            *traps,
        ),
    )


BENCHMARKS = (
    _benchmark(
        "healthbench",
        "HealthBench: conversations about health, by criteria of physicians",
        "2025-05-07-06-14-12_oss_eval",
        5000,
    ),
    _benchmark(
        "healthbench-hard",
        "HealthBench Hard: the conversations that models answer worst",
        "hard_2025-05-08-21-00-10",
        1000,
    ),
    _benchmark(
        "healthbench-consensus",
        "HealthBench Consensus: only criteria that several physicians share",
        "consensus_2025-05-09-20-00-46",
        3671,
    ),
)
