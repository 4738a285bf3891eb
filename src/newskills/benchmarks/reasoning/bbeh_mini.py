# SPDX-License-Identifier: Apache-2.0
"""BIG-Bench Extra Hard, 20 items of each of 23 tasks (Kazemi et al. 2025, arXiv:2502.19187)."""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row


def row(raw: Row, index: int) -> Row:
    return {
        "problem": raw["input"],
        "expected_answer": str(raw["target"]),
    }


BENCHMARK = Benchmark(
    name="bbeh-mini",
    category="reasoning",
    title="BIG-Bench Extra Hard, the small set",
    aliases=("bbeh",),
    sources=(
        Source(
            url="https://raw.githubusercontent.com/google-deepmind/bbeh/main/bbeh/mini/data.json",
            format="json",
            records=("examples",),
            revision="80d12ca916b7158f22293fcf3144f4d3d854d4be",
            sha256="14e77b3d6be68faa008d268abf53b1f8d2420ffdd762504a304dafc3f8d43026",
        ),
    ),
    row=row,
    prompt="generic/general-boxed",
    grader="exact",
    grader_config={"extract": "answer", "loose": True},
    metric="generic",
    items={"test": 460},
    licence="CC-BY-4.0 (data)",
    homepage="https://github.com/google-deepmind/bbeh",
    citation="arXiv:2502.19187",
    traps=(
        "The paper reports accuracy for this set; for the full one the harmonic mean over tasks.",
        "A canary string in the file must stay out of training data.",
    ),
)
