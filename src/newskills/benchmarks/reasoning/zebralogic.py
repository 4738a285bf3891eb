# SPDX-License-Identifier: Apache-2.0
"""Logic-grid puzzles of 2 to 6 houses and as many features (Lin et al. 2025, arXiv:2502.01100).

Fields, sizes and score: src/evaluation/zebra_grid_eval.py of WildEval/ZeroEval (8c1485e), which scores the gated set;
WildEval/ZebraLogic as opencompass (a5acc4b) reads it.
"""

import json

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row

_SIZES = {
    "small": "2*2 2*3 2*4 2*5 2*6 3*2 3*3 4*2",
    "medium": "3*4 3*5 3*6 4*3 4*4 5*2 6*2",
    "large": "4*5 5*3 4*6 5*4 6*3",
    "xl": "5*5 6*4 5*6 6*5 6*6",
}
_GROUP = {size: group for group, sizes in _SIZES.items() for size in sizes.split()}
_BLANK = "___"


def row(raw: Row, index: int) -> Row:
    solution = raw["solution"]
    header, rows = list(solution["header"]), [list(cells) for cells in solution["rows"]]
    if header[0] != "House" or any(len(cells) != len(header) for cells in rows):
        raise ValueError(f"the solution is no table of houses: {header}")
    if any(str(cell).strip("_ ") == "" for cells in rows for cell in cells):
        raise ValueError("the solution is blank: take the gated set, allenai/ZebraLogicBench-private")
    houses = {f"House {number}": dict.fromkeys(header[1:], _BLANK) for number in range(1, len(rows) + 1)}
    return {
        "id": raw["id"],
        "puzzle": raw["puzzle"],
        "form": json.dumps({"reasoning": _BLANK, "solution": houses}, indent=4),
        "solution": {"header": header, "rows": rows},
        "size": raw["size"],
        "subset_for_metrics": _GROUP[raw["size"]],
    }


BENCHMARK = Benchmark(
    name="zebralogic",
    category="reasoning",
    title="ZebraLogic: logic-grid puzzles, by puzzle and by cell",
    sources=(
        Source(
            hf="allenai/ZebraLogicBench-private",
            config="grid_mode",
            gated=True,
            note="https://huggingface.co/datasets/allenai/ZebraLogicBench-private",
        ),
        Source(hf="WildEval/ZebraLogic", config="grid_mode"),
    ),
    row=row,
    prompt="eval/logic-grid",
    grader="logic_grid",
    metric="logic_grid",
    items={"test": 1000},
    licence="Apache-2.0",
    homepage="https://huggingface.co/datasets/allenai/ZebraLogicBench",
    citation="arXiv:2502.01100",
    unverified=True,
    traps=(
        "Headline: puzzle_accuracy; a reply without a table counts as wrong in both figures.",
        "allenai/ZebraLogicBench has blanks for solutions: the gated set has them, which asks for your consent.",
        "The prompt is ours; subsets are the authors' groups of sizes.",
    ),
)
