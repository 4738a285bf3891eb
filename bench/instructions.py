# SPDX-License-Identifier: Apache-2.0
"""IFEval-like rows graded per second of CPU by the worker pool, all processes counted."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from typing import Any

from bench.measure import Line, Options, tree_cpu
from newskills.base.pool.workers import WorkerPool
from newskills.base.records import Score

ROWS, SECONDS, CORES = 100_000, 10, 2
INSTRUCTIONS: tuple[tuple[str, dict[str, Any], int], ...] = (
    ("punctuation:no_comma", {}, 66),
    ("length_constraints:number_words", {"num_words": 200, "relation": "at least"}, 52),
    ("length_constraints:number_sentences", {"num_sentences": 12, "relation": "less than"}, 52),
    ("keywords:forbidden_words", {"forbidden_words": ["field", "thanks", "issue"]}, 49),
    ("detectable_format:number_highlighted_sections", {"num_highlights": 3}, 48),
    ("keywords:frequency", {"keyword": "river", "frequency": 3, "relation": "at least"}, 42),
    ("startend:quotation", {}, 41),
    ("combination:repeat_prompt", {"prompt_to_repeat": "Write about a river."}, 41),
    ("change_case:english_lowercase", {}, 39),
    ("keywords:existence", {"keywords": ["river", "stone"]}, 39),
    ("detectable_format:title", {}, 37),
    ("keywords:letter_frequency", {"letter": "q", "let_frequency": 4, "let_relation": "less than"}, 33),
    ("language:response_language", {"language": "de"}, 9),
    ("language:response_language", {"language": "hi"}, 22),
    ("detectable_format:number_bullet_lists", {"num_bullets": 3}, 31),
    ("detectable_content:number_placeholders", {"num_placeholders": 3}, 27),
    ("length_constraints:number_paragraphs", {"num_paragraphs": 4}, 27),
    ("startend:end_checker", {"end_phrase": "Is there anything else I can help with?"}, 26),
    ("detectable_content:postscript", {"postscript_marker": "P.S."}, 26),
    ("change_case:capital_word_frequency", {"capital_frequency": 3, "capital_relation": "less than"}, 25),
    ("change_case:english_capital", {}, 25),
    ("combination:two_responses", {}, 24),
    ("detectable_format:json_format", {}, 17),
    ("detectable_format:multiple_sections", {"section_spliter": "SECTION", "num_sections": 3}, 14),
    (
        "length_constraints:nth_paragraph_first_word",
        {"num_paragraphs": 4, "nth_paragraph": 2, "first_word": "stone"},
        12,
    ),
    ("detectable_format:constrained_response", {}, 10),
)
"""Kind, arguments, and how often IFEval has it."""

WORDS = (
    "the river ran over a stone and we were there to see it go down into the valley because nobody had told us that "
    "this was the last day of summer when all of the boats come back with their nets full of fish for the market"
)


def bench(options: Options) -> Iterator[Line]:
    count = options.rows(ROWS)
    rows = [row(random.Random(number), number) for number in range(count)]
    config = {"name": "if", "config": {}}
    before = tree_cpu(os.getpid())
    with WorkerPool("newskills.graders.worker:make", config, result_type=Score) as pool:
        outcomes = {getattr(score, "outcome", "failed") for score in pool.map(rows)}
        cpu = tree_cpu(os.getpid()) - before
    rate, wanted = count / max(cpu, 0.01), ROWS / SECONDS / CORES
    line = Line(bench="grading", what="IFEval-like rows, pool included", ours=rate, unit="rows/CPU s")
    line.target, line.met = f"≥ {wanted:,.0f}", rate >= wanted and outcomes == {"correct", "wrong"}
    line.note = f"{ROWS:,} rows in {ROWS / rate / CORES:.1f} s on {CORES} cores"
    yield line


def row(draw: random.Random, number: int) -> dict[str, Any]:
    """A prompt with one or two instructions, and a reply of 50 to 300 words that ends in its number."""
    weights = [weight for *_, weight in INSTRUCTIONS]
    chosen = draw.choices(INSTRUCTIONS, weights, k=1 + (number % 2))
    words = WORDS.split()
    sentences = [
        " ".join(draw.choices(words, k=draw.randint(5, 18))).capitalize() for _ in range(draw.randint(6, 20))
    ]
    return {
        "id": str(number),
        "instruction_id_list": [kind for kind, _, _ in chosen],
        "kwargs": [arguments for _, arguments, _ in chosen],
        "generation": f"{'. '.join(sentences)}.\n\nThat makes **{number}**.",
    }
