# SPDX-License-Identifier: Apache-2.0
"""Twenty kinds of abstract patterns with one part missing (Chia et al. 2024, arXiv:2403.13315)."""

from pathlib import PurePosixPath

from newskills.base.benchmark import Asset, Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.text import choices

_DATA = "PuzzleVQA/data"


def row(raw: Row, index: int) -> Row:
    kind = PurePosixPath(raw["_file"]).stem
    options = [str(option) for option in raw["options"]]
    return {
        "id": f"puzzlevqa-{PurePosixPath(raw['image']).stem}",
        "question": raw["question"],
        **choices(raw["question"], options),
        "expected_answer": "ABCDEFG"[options.index(str(raw["answer"]))],
        "image_path": Asset(f"{_DATA}/{raw['image']}"),
        "subset_for_metrics": kind,
    }


BENCHMARK = Benchmark(
    name="puzzlevqa",
    category="vlm",
    title="PuzzleVQA: the missing part of a pattern",
    aliases=("puzzle-vqa",),
    sources=(
        Source(
            github="declare-lab/LLM-PuzzleTest",
            ref="master",
            revision="9b3a074cca0cfe3f06ef57acae425992fe98a8fb",
            members=f"{_DATA}/*.json",
            assets=f"{_DATA}/images/*.png",
            partial=True,
        ),
    ),
    row=row,
    prompt="vlm/mmmu-pro",
    grader="multichoice",
    metric="multichoice",
    items={"test": 2000},
    chance=0.27,
    licence="MIT",
    homepage="https://puzzlevqa.github.io",
    citation="arXiv:2403.13315",
    requires="newskills[media]",
    traps=(
        "Options stand in the order of the source; some kinds have three, others four.",
        "A mirror may hold only some of the 20 kinds: the number of rows tells.",
    ),
)
