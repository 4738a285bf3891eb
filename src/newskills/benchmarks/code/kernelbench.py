# SPDX-License-Identifier: Apache-2.0
"""PyTorch modules to be made faster by kernels (Ouyang et al. 2025, arXiv:2502.10517)."""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row


def row(raw: Row, index: int) -> Row:
    level, _, name = raw["_file"].removesuffix(".py").rpartition("KernelBench/")[2].partition("/")
    return {"id": f"{level}/{name}", "question": raw["text"], "subset_for_metrics": level}


BENCHMARK = Benchmark(
    name="kernelbench",
    category="code",
    title="KernelBench: faster GPU kernels for PyTorch modules",
    sources=(
        Source(
            github="ScalingIntelligence/KernelBench",
            ref="main",
            revision="423217d9fda91e0c2d67e4a43bf62f96f6d104f1",
            members="KernelBench/level{1,2,3}/*.py",
            format="text",
        ),
    ),
    row=row,
    prompt="eval/kernelbench",
    grader="kernelbench",
    metric="code_tests",
    items={"test": 250},
    licence="MIT",
    homepage="https://github.com/ScalingIntelligence/KernelBench",
    citation="arXiv:2502.10517",
    needs_sandbox=True,
    traps=(
        "Answers are collected, not judged: they need a GPU, and are unscored; judge them by its own scripts.",
    ),
)
