# SPDX-License-Identifier: Apache-2.0
"""Problems of Chinese and American examinations of 2023 in English (Liao et al. 2024, MARIO, arXiv:2401.08190)."""

import re

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.text import rename_columns

_ANSWER_IN_QUESTION = re.compile(r"answers?:\s*", re.IGNORECASE)


def row(raw: Row, index: int) -> Row:
    made = rename_columns(raw, question="problem", answer="expected_answer")
    made["expected_answer"] = made["expected_answer"].removesuffix("solution:")
    if not made["expected_answer"]:
        made["problem"], made["expected_answer"] = _ANSWER_IN_QUESTION.split(made["problem"])
    return {"id": f"gaokao2023en-{index}", **made}


BENCHMARK = Benchmark(
    name="gaokao2023en",
    category="math-natural",
    title="Gaokao 2023 and other examinations of 2023, in English",
    sources=(
        Source(
            url="https://raw.githubusercontent.com/QwenLM/Qwen2.5-Math/refs/heads/main/evaluation/data/gaokao2023en/test.jsonl",
            revision="a45202bd16f1ec06f433442dc1152d0074773465",
            sha256="654d8f49bdb86f578c171dbc0dd8f4d9f1bf3d7a7438f60359fda7d643df4951",
        ),
    ),
    row=row,
    prompt="generic/math",
    items={"test": 385},
    licence="unstated (examination problems)",
    homepage="https://github.com/QwenLM/Qwen2.5-Math",
    citation="arXiv:2401.08190",
    traps=(
        "About 60 questions have lettered options and a letter as the answer.",
        "Two rows have their answer at the end of the question and none beside it: it is moved where it belongs.",
        "A few questions continue the one before, or refer to a figure.",
    ),
)
