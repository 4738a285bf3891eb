# SPDX-License-Identifier: Apache-2.0
"""Hardware modules from their specifications (Pinckney et al. 2024, arXiv:2408.11053)."""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row

_PARTS = {"prompt.txt": "question", "ref.sv": "reference", "test.sv": "test"}


def join_problem_files(raws: Iterable[Row]) -> Iterator[Row]:
    """Join the three files of each problem."""
    problems_by_name: dict[str, Row] = defaultdict(dict)
    for raw in raws:
        name, _, part = raw["_file"].rpartition("/")[2].rpartition("_")
        if part in _PARTS:
            problems_by_name[name][_PARTS[part]] = raw["text"]
    for name, parts in problems_by_name.items():
        yield {"id": name, **parts}


def row(raw: Row, index: int) -> Row:
    return {
        "id": raw["id"],
        "question": raw["question"].strip(),
        "reference": raw["reference"],
        "test": raw["test"],
        "canonical_solution": raw["reference"].replace("RefModule", "TopModule"),
    }


BENCHMARK = Benchmark(
    name="verilog-eval",
    category="code",
    title="VerilogEval v2: hardware modules from specifications",
    sources=(
        Source(
            github="NVlabs/verilog-eval",
            ref="main",
            revision="c498220d0a52248f8e3fdffe279075215bde2da6",
            members="dataset_spec-to-rtl/Prob*",
            format="text",
        ),
    ),
    row=row,
    join=join_problem_files,
    prompt="eval/verilog",
    grader="verilog_eval",
    metric="code_tests",
    items={"test": 156},
    licence="MIT",
    homepage="https://github.com/NVlabs/verilog-eval",
    citation="arXiv:2408.11053",
    needs_sandbox=True,
    traps=(
        "Needs Icarus Verilog (apt-get install iverilog) where the sandbox runs; without it answers are unscored.",
    ),
)
