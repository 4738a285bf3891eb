# SPDX-License-Identifier: Apache-2.0
"""Python functions to be written from their head and docstring (Chen et al. 2021, arXiv:2107.03374)."""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row


def row(raw: Row, index: int) -> Row:
    fields = ("task_id", "prompt", "entry_point", "canonical_solution", "test")
    return {"id": raw["task_id"], "question": raw["prompt"], **{name: raw[name] for name in fields}}


BENCHMARK = Benchmark(
    name="human-eval",
    category="code",
    title="HumanEval: Python functions from their docstrings",
    aliases=("humaneval",),
    sources=(
        Source(
            url="https://raw.githubusercontent.com/openai/human-eval/master/data/HumanEval.jsonl.gz",
            revision="6d43fb980f9fee3c892a914eda09951f772ad10d",
            sha256="b796127e635a67f93fb35c04f4cb03cf06f38c8072ee7cee8833d7bee06979ef",
        ),
    ),
    row=row,
    prompt="generic/codegen",
    grader="evalplus",
    metric="evalplus",
    items={"test": 164},
    licence="MIT",
    homepage="https://github.com/openai/human-eval",
    citation="arXiv:2107.03374",
    needs_sandbox=True,
    traps=(
        "These are the original tests (passing_base_tests); the further ones of EvalPlus are not part of the data.",
        "The head and docstring are asked as they are; some systems turn their indents into tabs.",
        "An answer may be the whole function or what follows the given head; given imports and helpers are added.",
    ),
)
