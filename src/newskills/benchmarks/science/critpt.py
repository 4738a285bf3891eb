# SPDX-License-Identifier: Apache-2.0
"""Research problems of physics without public answers (Zhu et al. 2025, arXiv:2509.26574)."""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row


def row(raw: Row, index: int) -> list[Row]:
    """Return one row for each problem of a challenge (in the file form), or of the data set."""
    return [
        {
            "id": problem["problem_id"],
            "problem_id": problem["problem_id"],
            "problem": problem["problem_description"].strip(),
            "code_template": problem["code_template"].strip(),
            "metadata": problem["metadata"],
        }
        for problem in raw.get("problems", [raw])
    ]


BENCHMARK = Benchmark(
    name="critpt",
    category="science",
    title="CritPt: research problems of physics",
    aliases=("ns_critpt",),
    sources=(
        Source(
            github="CritPt-Benchmark/CritPt",
            ref="main",
            revision="17c2545c302762d2f2d644d923ea4c301605cb08",
            members="data/public_test_challenges/json/*.json",
            format="object",
            sha256="699617da0ff16987e615a0469522a70918f703581c7e4ac70a612e0330bce1b2",
        ),
        Source(hf="CritPt-Benchmark/CritPt", hf_split="train"),
    ),
    row=row,
    prompt="eval/critpt/solve_problem",
    solver="critpt",
    grader="critpt",
    metric="critpt",
    items={"test": 70},
    licence="unstated",
    homepage="https://github.com/CritPt-Benchmark/CritPt",
    citation="arXiv:2509.26574",
    version="3",
    traps=(
        "Its answers are not public: replies stay unscored here, with the function to submit in generated_code; the "
        "column `functions` is the share of replies that hold one, and no accuracy.",
        "The service of its makers takes all 70 at once, ten times a day, and tells only the share of right ones.",
        "ns critpt submit sends them there and tells the share; ns critpt export writes the batch.",
        "Two turns: the derivation, then the function (prompt eval/critpt/code_output).",
    ),
)
