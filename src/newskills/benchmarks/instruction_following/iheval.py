# SPDX-License-Identifier: Apache-2.0
"""IHEval (Zhang et al. 2025, arXiv:2502.08745): the system prompt's instructions against the user's."""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row


def row(raw: Row, index: int) -> Row:
    answer = raw["answer"]
    return {
        "id": f"iheval-{raw['id']}",
        "system": raw["system"],
        "question": raw["instruction"],
        "prompt": raw["instruction"],
        "instruction_id_list": answer["instruction_id_list"],
        "kwargs": answer["kwargs"],
    }


BENCHMARK = Benchmark(
    name="iheval",
    category="instruction-following",
    title="IHEval: rules of the system prompt where the user's contradict them",
    sources=(
        Source(
            github="ytyz1307zzh/IHEval",
            ref="main",
            members="benchmark/rule-following/single-turn/conflict/*/input_data.json",
            format="json",
        ),
    ),
    row=row,
    prompt="eval/iheval",
    grader="if",
    metric="if",
    items={"test": 541},
    requires="newskills[instructions]",
    licence="CC-BY-NC-ND-4.0",
    homepage="https://github.com/ytyz1307zzh/IHEval",
    citation="arXiv:2502.08745",
    traps=(
        "Only the part rule-following, one turn, conflict: the parts task-execution, safety and tool-use are not here.",
        "Servers that put system and user text into one turn take away what is measured.",
    ),
)
