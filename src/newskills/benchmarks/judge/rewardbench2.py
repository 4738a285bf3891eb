# SPDX-License-Identifier: Apache-2.0
"""The best of four answers, and marks for questions with several right ones (Malik et al. 2025, arXiv:2506.01937).

Fields, split and score: rewardbench/utils.py and scripts/run_generative_v2.py of allenai/reward-bench (05a9005).
"""

from collections.abc import Iterator, Mapping

from newskills.base.benchmark import OTHER_SPLIT, Benchmark, Drop, Group, Source
from newskills.base.records import Row
from newskills.benchmarks.judge.rewardbench import answers_of
from newskills.benchmarks.scores import Metrics, headline

_TIES = "Ties"
_SOURCE = Source(hf="allenai/reward-bench-2")
_TEXT = "For models that judge in words; reward models that give numbers are not run here."


def choice_row(raw: Row, index: int) -> Row | Drop:
    if raw["subset"] == _TIES:
        return OTHER_SPLIT
    texts = [raw["chosen"][0], *raw["rejected"][:3]]
    if len(texts) != 4:
        raise ValueError(f"there are {len(texts)} answers, not four")
    identity = f"{raw['subset']}-{raw['id']}"
    return {
        "id": identity,
        "question": raw["prompt"],
        **answers_of(texts, identity),
        "subset_for_metrics": raw["subset"],
    }


def tie_rows(raw: Row, index: int) -> Iterator[Row]:
    """Yield the answers of a question, each of which is marked by itself. `id` is `tied:7` or `ref:7`."""
    if raw["subset"] != _TIES:
        return
    kind, _, question = raw["id"].partition(":")
    if kind not in ("tied", "ref") or not question:
        raise ValueError(f"the id is {raw['id']!r}, not tied:NUMBER or ref:NUMBER")
    for place, answer in enumerate([*raw["chosen"], *raw["rejected"]]):
        yield {
            "id": f"{kind}-{question}-{place}",
            "question": raw["prompt"],
            "answer": answer,
            "tie_kind": kind,
            "question_id": question,
            "is_right": place < raw["num_correct"],
        }


def score(metrics: Mapping[str, Mapping[str, Row]]) -> dict[str, float]:
    """Average the six subsets, of which ties are one."""
    by_member: dict[str, Metrics] = {name.rpartition(".")[2]: modes for name, modes in metrics.items()}
    choices = headline(by_member["choices"], "macro_accuracy")
    ties = headline(by_member["ties"], "ties_score")
    return {"score": (5 * choices + ties) / 6, "choices": choices, "ties": ties}


_COMMON = {
    "category": "judge",
    "sources": (_SOURCE,),
    "licence": "ODC-BY",
    "homepage": "https://huggingface.co/datasets/allenai/reward-bench-2",
    "citation": "arXiv:2506.01937",
    "unverified": True,
}
BENCHMARKS = (
    Benchmark(
        name="rewardbench2.choices",
        title="RewardBench 2: the best of four answers",
        row=choice_row,
        prompt="judge/better-answer",
        grader="multichoice",
        metric="rewardbench2",
        chance=0.25,
        traps=(_TEXT, "A reply without a choice counts a quarter, as the authors count."),
        **_COMMON,  # type: ignore[arg-type]
    ),
    Benchmark(
        name="rewardbench2.ties",
        title="RewardBench 2: marks for several right answers",
        row=tie_rows,
        prompt="judge/answer-mark",
        grader="mark",
        metric="rewardbench2-ties",
        traps=(_TEXT, "ties_score follows the authors' program, and may be a little above 100."),
        **_COMMON,  # type: ignore[arg-type]
    ),
)

GROUP = Group(
    name="rewardbench2",
    category="judge",
    title="RewardBench 2: the best of four answers, and ties",
    members={benchmark.name: {} for benchmark in BENCHMARKS},
    score=score,
    columns=("score", "choices", "ties"),
    aliases=("reward-bench-2",),
    homepage="https://huggingface.co/datasets/allenai/reward-bench-2",
    citation="arXiv:2506.01937",
    traps=("score is the mean of the six subsets, as the leaderboard's: five of choices, and ties.",),
)
