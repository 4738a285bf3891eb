# SPDX-License-Identifier: Apache-2.0
"""Questions for assistants with tools, some about a file (Mialon et al. 2023, arXiv:2311.12983).

Configuration, split, fields and files: gaia/dataset.py of inspect_evals 0.26.0; the scorer's rules: the leaderboard's
scorer.py, as evalscope (fde259d) carries it.
"""

from newskills.base.benchmark import Benchmark, Drop, Source
from newskills.base.records import Row
from newskills.benchmarks.options import rows_with

_FOLDER = "files/2023/validation"


def row(raw: Row, index: int) -> Row | Drop:
    answer, file = str(raw["Final answer"]), raw["file_name"]
    if answer in ("", "?"):
        return Drop("their answers are not published")
    kind = "with-file" if file else "text"
    note = f"\nThe question is about this file: {_FOLDER}/{file}" if file else ""
    return {
        "id": raw["task_id"],
        "question": raw["Question"],
        "file_note": note,
        "file_name": file or "",
        "kind": kind,
        "expected_answer": answer,
        "level": str(raw["Level"]),
        "subset_for_metrics": [f"level-{raw['Level']}", kind],
    }


BENCHMARK = Benchmark(
    name="gaia",
    category="factuality",
    title="GAIA: questions for assistants with tools (validation)",
    sources=(
        Source(
            split="validation",
            hf="gaia-benchmark/GAIA",
            config="2023_all",
            gated=True,
            note="https://huggingface.co/datasets/gaia-benchmark/GAIA",
        ),
    ),
    split="validation",
    row=row,
    options={"kind": rows_with("kind", "only questions with a file, or without", "text", "with-file")},
    prompt="eval/final-answer",
    grader="gaia",
    metric="generic",
    items={"validation": 165},
    licence="unstated; the data must not be shared again where crawlers find it",
    homepage="https://huggingface.co/datasets/gaia-benchmark/GAIA",
    citation="arXiv:2311.12983",
    unverified=True,
    traps=(
        "Headline: accuracy over all questions, levels apart. The answers of `test` are secret.",
        "Give tools, and name them beside a score: ++tool_modules=[tavily], or --with_sandbox for code.",
        "Some questions have a file: put the folder 2023/validation of the data set where the tools find it, as "
        f"{_FOLDER}; without tools only --kind=text makes sense.",
    ),
)
