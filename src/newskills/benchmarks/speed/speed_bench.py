# SPDX-License-Identifier: Apache-2.0
"""Prompts on which speculative decoding is measured: how many drafted tokens the model accepts (SPEED-Bench)."""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row

_SIZES = ("1k", "2k", "8k", "16k", "32k")


def row(raw: Row, index: int) -> Row:
    turns = [raw["turns"]] if isinstance(raw["turns"], str) else list(raw["turns"])
    if not turns or not all(isinstance(turn, str) and turn.strip() for turn in turns):
        raise ValueError("turns must be texts")
    return {
        "id": str(raw.get("question_id", f"speed-bench-{index}")),
        "messages": [{"role": "user", "content": turns[0]}],
        "turns": turns,
        "category": str(raw["category"]),
        "subset_for_metrics": str(raw["category"]),
    }


BENCHMARK = Benchmark(
    name="speed-bench",
    category="speed",
    title="SPEED-Bench: acceptance of speculative decoding",
    aliases=("spec-bench",),
    sources=(
        Source(split="qualitative", hf="nvidia/SPEED-Bench", config="qualitative", hf_split="test"),
        *(
            Source(
                split=f"throughput_{size}", hf="nvidia/SPEED-Bench", config=f"throughput_{size}", hf_split="test"
            )
            for size in _SIZES
        ),
    ),
    row=row,
    prompt="",
    solver="turns",
    defaults={"prompt_format": "openai"},
    grader="specdec",
    metric="specdec",
    split="qualitative",
    items={"qualitative": 880, **{f"throughput_{size}": 1536 for size in _SIZES}},
    licence="NVIDIA Evaluation Dataset License",
    homepage="https://huggingface.co/datasets/nvidia/SPEED-Bench",
    citation="arXiv:2604.09557",
    unverified=True,
    version="2",
    traps=(
        "`spec_acceptance_length` is tokens per step of the model over all turns of all conversations.",
        "Counts come from vLLM (0.29 or newer) with --per-request-spec-decode-metrics=summary; a server without them "
        "leaves every sample unscored.",
        "Prompts whose texts lie in other data sets hold placeholders there.",
    ),
)
