# SPDX-License-Identifier: Apache-2.0
"""Problems of ten college text books with numeric answers (Wang et al. 2023, arXiv:2307.10635)."""

import re

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row

_BOOKS = "atkins,calculus,chemmc,class,diff,fund,matter,quan,stat,thermo"
_POWER = re.compile(r"(?:\\mathrm\s*\{\s*)?10\s*\^\s*(?:\{\s*([-−]?\d+)\s*\}|([-−]?\d+))\s*\}?")


def row(raw: Row, index: int) -> Row:
    answer = raw["answer_number"].strip().replace("−", "-").removeprefix("+")
    float(answer.replace(",", ""))
    unit = " ".join(raw["unit"].split())
    if power := _POWER.search(unit):
        answer += f" \\times 10^{{{power[1] or power[2]}}}"
        unit = (unit[: power.start()] + unit[power.end() :]).replace("$$", "").strip()
    request = ""
    if unit.strip("$ "):
        request = f" Give the answer in this unit: {unit}."
    else:
        unit = ""
    return {
        "problem": raw["problem_text"].strip() + request,
        "expected_answer": answer,
        "unit": unit,
        "reference_solution": raw.get("solution", ""),
        "subset_for_metrics": raw["source"],
        "problem_id": raw["problemid"].strip(),
    }


BENCHMARK = Benchmark(
    name="scibench",
    category="science",
    title="SciBench: problems of college text books",
    sources=(
        Source(
            url=(
                "https://raw.githubusercontent.com/mandyyyyii/scibench/main/dataset/original/"
                f"{{{_BOOKS}}}{{,_sol}}.json"
            ),
            format="json",
            revision="e14e0ca3d3db0f02928a18d435b9c3d15656a7c5",
            sha256="2942e97fa43502b46657d61729231843c1a48476af368ea3f496ac32585b665e",
        ),
    ),
    row=row,
    prompt="generic/math",
    grader_config={"relative_tolerance": 0.05},
    items={"test": 692},
    licence="MIT",
    homepage="https://github.com/mandyyyyii/scibench",
    citation="arXiv:2307.10635",
    traps=(
        "An answer counts within 5 % of the right one.",
        "The source keeps powers of ten in the unit: they belong to the answer here, and the unit is asked for.",
        "112 of the 692 problems come with a solution, and are used as examples by other tools.",
    ),
)
