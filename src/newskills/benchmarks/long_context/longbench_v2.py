# SPDX-License-Identifier: Apache-2.0
"""Choices over long texts: LongBench v2 (Bai et al. 2024, arXiv:2412.15204) and LongCodeBench (arXiv:2505.07897)."""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.options import rows_with


def longbench_row(raw: Row, index: int) -> Row:
    if raw["answer"] not in ("A", "B", "C", "D"):
        raise ValueError(f"the answer is {raw['answer']!r}, A to D is expected")
    kept = ("context", "question", "choice_A", "choice_B", "choice_C", "choice_D", "domain", "sub_domain")
    return {
        "id": raw["_id"],
        "index": index,
        **{name: raw[name] for name in kept},
        "difficulty": raw["difficulty"],
        "length": raw["length"],
        "expected_answer": raw["answer"],
        "subset_for_metrics": raw["length"],
    }


def longcode_row(raw: Row, index: int) -> Row:
    if raw["correct_letter"] not in ("A", "B", "C", "D"):
        raise ValueError(f"correct_letter is {raw['correct_letter']!r}, A to D is expected")
    return {
        "messages": [{"role": "user", "content": raw["prompt"]}],
        "expected_answer": raw["correct_letter"],
        "repo": raw["repo"],
        "prompt_goal": raw.get("prompt_goal"),
        "is_hard": raw.get("is_hard"),
    }


BENCHMARKS = (
    Benchmark(
        name="longbench-v2",
        category="long-context",
        title="LongBench v2: choices over texts of up to two million words",
        sources=(Source(hf="THUDM/LongBench-v2", hf_split="train"),),
        row=longbench_row,
        options={
            "difficulty": rows_with("difficulty", "only these levels", "easy", "hard"),
            "length": rows_with("length", "only these lengths", "short", "medium", "long"),
        },
        prompt="eval/longbench/default",
        grader="multichoice",
        metric="multichoice",
        items={"test": 503},
        licence="Apache-2.0",
        homepage="https://longbench2.github.io",
        citation="arXiv:2412.15204",
        chance=0.25,
        unverified=True,
        traps=(
            "Subsets are short, medium and long; texts are given whole, the authors cut out their middle.",
            "Tokens are not counted (there is no context_tokens).",
        ),
    ),
    Benchmark(
        name="longcodebench",
        category="long-context",
        title="LongCodeQA: choices about whole repositories",
        sources=(
            Source(
                url="https://huggingface.co/datasets/Steefano/LCB/resolve/main/LongCodeQA.zip",
                format="json",
                members="*.json",
            ),
        ),
        row=longcode_row,
        prompt="",
        defaults={"prompt_format": "openai"},
        grader="multichoice",
        metric="multichoice",
        licence="unstated",
        homepage="https://huggingface.co/datasets/Steefano/LCB",
        citation="arXiv:2505.07897",
        chance=0.25,
        unverified=True,
        traps=("Prompts are up to a million tokens long.",),
    ),
)
