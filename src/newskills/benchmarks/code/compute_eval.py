# SPDX-License-Identifier: Apache-2.0
"""CUDA programs (NVIDIA ComputeEval)."""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row


def row(raw: Row, index: int) -> Row:
    context = raw.get("context_files") or []
    return {
        "id": raw["task_id"],
        "task_id": raw["task_id"],
        "problem": {key: value for key, value in raw.items() if key != "_file"},
        "problem_prompt": raw["prompt"],
        "build_command": raw["build_command"],
        "context_files": context,
        "context_files_block": "\n\n".join(f"{file['path']}:\n```\n{file['content']}\n```" for file in context),
        "test_files": raw.get("test_files") or [],
        "test_command": raw.get("test_command") or "",
    }


BENCHMARK = Benchmark(
    name="compute-eval",
    category="code",
    title="ComputeEval: CUDA programs that compile and run",
    sources=(
        Source(
            split="eval",
            hf="nvidia/compute-eval",
            hf_split="eval",
            format="parquet",
            gated=True,
            note="Accept the conditions at https://huggingface.co/datasets/nvidia/compute-eval and set HF_TOKEN.",
        ),
    ),
    row=row,
    prompt="compute-eval/baseline",
    grader="compute-eval",
    metric="compute-eval",
    split="eval",
    licence="NVIDIA Evaluation Dataset License",
    homepage="https://huggingface.co/datasets/nvidia/compute-eval",
    needs_sandbox=True,
    unverified=True,
    traps=("Needs nvcc and a GPU that the sandbox shows to code; answers are unscored where one is missing.",),
)
