# SPDX-License-Identifier: Apache-2.0
"""Olympiad problems in English, text only, open answers (He et al. 2024, arXiv:2402.14008)."""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row

_KEPT = ("subfield", "is_multiple_answer", "unit", "answer_type", "error")


def row(raw: Row, index: int) -> Row:
    (answer,) = raw["final_answer"]
    return {
        "id": f"olympiadbench-{raw['id']}",
        "problem": raw["question"],
        "expected_answer": answer.replace("$", ""),
        "raw_answer": answer,
        "solution": raw["solution"],
        **{key: raw[key] for key in _KEPT},
    }


BENCHMARK = Benchmark(
    name="olympiadbench",
    category="math-natural",
    title="OlympiadBench: open-answer mathematics, English",
    aliases=("olympiad-bench",),
    sources=(
        Source(
            url="https://raw.githubusercontent.com/QwenLM/Qwen2.5-Math/refs/heads/main/evaluation/data/olympiadbench/test.jsonl",
            revision="a45202bd16f1ec06f433442dc1152d0074773465",
            sha256="bb8c1e38a16ea9eacb77530315a674d883f267fbff79183effc53681b4fcc416",
        ),
    ),
    row=row,
    prompt="generic/math",
    items={"test": 675},
    licence="unstated (upstream Apache-2.0)",
    homepage="https://github.com/OpenBMB/OlympiadBench",
    citation="arXiv:2402.14008",
    traps=(
        "94 answers hold several values, 8 a unit, 1 an error tolerance.",
        "Dollar signs are removed; raw_answer keeps them.",
    ),
)
