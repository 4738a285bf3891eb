# SPDX-License-Identifier: Apache-2.0
"""HumanEval with the many further inputs of EvalPlus (Liu et al. 2023, arXiv:2305.01210)."""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.differential import check_statements, oracle_code

_RELEASES = "https://github.com/evalplus/humanevalplus_release/releases/download"
_IS_ZERO = "abs(sum(each * told**power for power, each in enumerate(arguments[0]))) <= 1e-4"


def row(raw: Row, index: int) -> Row:
    entry, solution = raw["entry_point"], raw["prompt"] + raw["canonical_solution"]
    equal = _IS_ZERO if entry == "find_zero" else "told == wanted"
    tests = check_statements([*raw["base_input"], *raw["plus_input"]])
    fields = ("task_id", "prompt", "entry_point", "canonical_solution", "test")
    return {
        "id": raw["task_id"],
        "question": raw["prompt"],
        **{name: raw[name] for name in fields},
        "plus_test_list": [oracle_code(solution, entry, raw["atol"], equal), *tests],
    }


BENCHMARK = Benchmark(
    name="human-eval-plus",
    category="code",
    title="HumanEval+: Python functions from their docstrings, many tests",
    aliases=("humaneval-plus",),
    sources=(Source(url=f"{_RELEASES}/v0.1.10/HumanEvalPlus.jsonl.gz"),),
    row=row,
    prompt="generic/codegen",
    grader="evalplus",
    metric="evalplus",
    headline="`passing_plus_tests`: share of programs that pass the original tests and those of EvalPlus",
    items={"test": 164},
    licence="Apache-2.0",
    homepage="https://github.com/evalplus/evalplus",
    citation="arXiv:2305.01210",
    needs_sandbox=True,
    unverified=True,
    traps=("passing_base_tests is HumanEval, passing_plus_tests both: the answer must agree with the reference.",),
)
