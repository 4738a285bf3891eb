# SPDX-License-Identifier: Apache-2.0
"""A thousand marked proofs of olympiad problems, to be marked again (Luong et al. 2025, arXiv:2511.01846)."""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row

_MARKS = {7: "correct", 6: "almost", 1: "partial", 0: "incorrect"}
_COMMIT = "c1ee02e03d4cdb2ab21cd01ac927d895f5287fc8"


def row(raw: Row, index: int) -> Row:
    mark = str(raw["Reward"]).strip().lower()
    if mark not in _MARKS.values():
        mark = _MARKS[int(float(raw["Points"]))]
    return {
        "id": raw["Grading ID"],
        "grading_id": raw["Grading ID"],
        "problem_id": raw["Problem ID"],
        "problem_statement": raw["Problem"],
        "reference_solution": raw["Solution"],
        "rubric": raw["Grading guidelines"],
        "proof": raw["Response"],
        "points": float(raw["Points"]),
        "reward": raw["Reward"],
        "source": raw["Problem Source"],
        "expected_answer": mark,
    }


BENCHMARK = Benchmark(
    name="imo-gradingbench",
    category="judge",
    title="IMO-GradingBench: proofs to be marked",
    aliases=("imo_gradingbench",),
    sources=(
        Source(
            url=f"https://raw.githubusercontent.com/google-deepmind/superhuman/{_COMMIT}/imobench/gradingbench.csv",
            format="csv",
        ),
    ),
    row=row,
    prompt="judge/imo_gradingbench",
    grader="gradingbench",
    metric="gradingbench",
    items={"test": 1000},
    licence="CC-BY-4.0",
    homepage="https://github.com/google-deepmind/superhuman",
    citation="arXiv:2511.01846",
    chance=0.25,
    unverified=True,
    traps=(
        "The last word of the reply is the mark; correct, almost, partial, incorrect are 7, 6, 1 and 0 points.",
    ),
)
