# SPDX-License-Identifier: Apache-2.0
"""Replies to real users, with a checklist (WildBench, arXiv:2406.04770), and emotions (EQ-Bench, arXiv:2312.06281)."""

import ast
import json

from newskills.base.benchmark import Benchmark, Judge, Source
from newskills.base.records import Row

_GROUPS = {
    **dict.fromkeys(("Information seeking", "Advice seeking"), "information"),
    **dict.fromkeys(("Creative Writing", "Editing", "Brainstorming", "Role playing", "Others"), "creative"),
    **dict.fromkeys(("Reasoning", "Planning"), "planning-reasoning"),
    **dict.fromkeys(("Math", "Data Analysis"), "math-data"),
    "Coding & Debugging": "coding",
}
"""Tag → group of tasks of the authors' leaderboard."""


def wildbench_row(raw: Row, index: int) -> Row:
    messages = [{"role": turn["role"], "content": turn["content"]} for turn in raw["conversation_input"]]
    return {
        "id": raw["session_id"],
        "messages": messages,
        "conversation": "\n\n".join(f"{turn['role'].capitalize()}: {turn['content']}" for turn in messages),
        "history": "".join(f"{turn['role'].upper()}: {turn['content']}\n\n" for turn in messages[:-1]),
        "user_query": messages[-1]["content"],
        "checklist": "\n".join(f"- {item}" for item in raw["checklist"]),
        "primary_tag": raw["primary_tag"],
        "task_groups": [_GROUPS[tag] for tag in (raw["primary_tag"], *raw["secondary_tags"])],
        "subset_for_metrics": raw["primary_tag"],
    }


def eq_bench(raw: Row, index: int) -> Row:
    reference = raw["reference_answer_fullscale"]
    if isinstance(reference, str):
        if reference.lstrip().startswith('{"'):
            reference = json.loads(reference)
        else:
            reference = ast.literal_eval(reference)
    emotions = {reference[f"emotion{place}"]: float(reference[f"emotion{place}_score"]) for place in range(1, 5)}
    return {
        "question": raw["prompt"],
        "emotions": emotions,
        "expected_answer": "\n".join(f"{name}: {value:g}" for name, value in emotions.items()),
    }


BENCHMARKS = (
    Benchmark(
        name="wildbench",
        category="chat-judge",
        title="WildBench: hard requests of real users",
        sources=(Source(hf="allenai/WildBench", config="v2"),),
        row=wildbench_row,
        prompt="",
        defaults={"prompt_format": "openai"},
        grader="",
        metric="wildbench",
        judge=Judge(prompt="judge/wildbench", grader="rating"),
        items={"test": 1024},
        licence="AI2 ImpACT",
        homepage="https://huggingface.co/datasets/allenai/WildBench",
        citation="arXiv:2406.04770",
        unverified=True,
        traps=(
            "wb_score is the authors' WB-Score, of 100 (they also print a tenth of it); wb_task_score weighs tasks.",
            "Published scores are those of GPT-4o by the authors' prompt, which is used where it is downloaded.",
        ),
    ),
    Benchmark(
        name="eq_bench",
        category="chat-judge",
        title="EQ-Bench: intensities of emotions in dialogues",
        sources=(Source(split="validation", hf="pbevan11/EQ-Bench"),),
        row=eq_bench,
        prompt="generic/default",
        grader="eq_bench",
        metric="eq_bench",
        split="validation",
        items={"validation": 171},
        licence="MIT",
        homepage="https://github.com/EQ-bench/EQ-Bench",
        citation="arXiv:2312.06281",
        unverified=True,
        traps=("Replies without four numbers are left out of the score, as the authors do: look at parseable.",),
    ),
)
