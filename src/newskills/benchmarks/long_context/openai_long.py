# SPDX-License-Identifier: Apache-2.0
"""OpenAI's conversations with needles (MRCR) and walks on graphs (Graphwalks), both of 2025."""

import json

from newskills.base.benchmark import Benchmark, Option, RowMapper, Source
from newskills.base.records import Row
from newskills.benchmarks.options import rows_with


def mrcr_row(raw: Row, index: int) -> Row:
    messages = raw["prompt"] if isinstance(raw["prompt"], list) else json.loads(raw["prompt"])
    if not raw["answer"].startswith(raw["random_string_to_prepend"]):
        raise ValueError("the answer does not begin with random_string_to_prepend")
    kept = ("random_string_to_prepend", "n_needles", "desired_msg_index", "total_messages", "n_chars")
    return {
        "messages": messages,
        "expected_answer": raw["answer"],
        **{name: raw[name] for name in kept},
        "subset_for_metrics": f"{raw['n_needles']} needles",
    }


def graphwalks_row(raw: Row, index: int) -> Row:
    nodes = raw.get("answer_nodes", raw.get("answer"))
    if isinstance(nodes, str):
        nodes = json.loads(nodes)
    if not isinstance(nodes, list):
        raise ValueError(f"answer_nodes is {nodes!r}, a list is expected")
    return {
        "messages": [{"role": "user", "content": raw["prompt"]}],
        "expected_answer": nodes,
        "prompt_chars": raw["prompt_chars"],
        "problem_type": raw["problem_type"],
        "subset_for_metrics": raw["problem_type"],
    }


_OPTIONS: dict[str, dict[str, Option]] = {
    "mrcr": {"needles_subset": rows_with("n_needles", "only with so many needles", "2", "4", "8")},
    "graphwalks": {"problem_types": rows_with("problem_type", "only these kinds of walks", "parents", "bfs")},
}


def _benchmark(name: str, title: str, row: RowMapper, items: int, *traps: str) -> Benchmark:
    return Benchmark(
        name=name,
        category="long-context",
        title=title,
        sources=(Source(split="all", hf=f"openai/{name}", hf_split="train"),),
        row=row,
        options=_OPTIONS[name],
        prompt="",
        defaults={"prompt_format": "openai", "context_overflow": "wrong"},
        grader=name,
        metric=name,
        split="all",
        items={"all": items} if items else {},
        licence="MIT",
        homepage=f"https://huggingface.co/datasets/openai/{name}",
        unverified=True,
        traps=(
            *traps,
            "Prompts are up to a million tokens long: those that the model cannot take count as failures.",
            "Tokens are not counted (there is no n_tokens): filter by the length in characters.",
        ),
    )


BENCHMARKS = (
    _benchmark(
        "mrcr",
        "MRCR: one of several like texts of a long conversation, again",
        mrcr_row,
        2400,
        "An answer that does not begin with the random text scores 0, however good.",
        "accuracy is the mean likeness, as OpenAI and NeMo-Skills give it (two replies of 100% and 50% make 75%); "
        "exact_match is the share of replies that are the right text (50%).",
    ),
    _benchmark(
        "graphwalks",
        "Graphwalks: parents and breadth-first walks on graphs in text",
        graphwalks_row,
        0,
        "Only a last line of the form Final Answer: [a, b] is read.",
        "The right nodes may be a list, or a list written as JSON text, as NeMo-Skills prepares them.",
    ),
)
