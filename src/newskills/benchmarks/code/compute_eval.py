# SPDX-License-Identifier: Apache-2.0
"""CUDA programs (NVIDIA ComputeEval)."""

from newskills.base.benchmark import Benchmark, Evidence, Source
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
    evidence=(
        Evidence(
            "https://github.com/NVIDIA/compute-eval/blob/19ba74fd6fccabe3aeb36969b91248107b49b7a2/DATASET_CARD.md",
            "fields build_command, context_files, prompt, task_id, test_command, test_files",
            "2026-11-23",
        ),
        Evidence(
            "https://github.com/Spencerx/NeMo-Skills/tree/e06c9b900177be3f60d6a3f99135bb5de9af9bed/nemo_skills/dataset/compute-eval",
            "split eval; no configuration",
            "2026-11-23",
        ),
    ),
    traps=("Needs nvcc and a GPU that the sandbox shows to code; answers are unscored where one is missing.",),
)
