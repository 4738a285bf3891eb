# SPDX-License-Identifier: Apache-2.0
"""`ns retrieve_similar`: the first step of a contamination check, which problems resemble each other."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills.pipelines.data.retrieve_similar import RetrieveSimilarOptions, retrieve_similar_problems, run

COMMAND = Command(
    name="retrieve_similar",
    summary="For each problem of one data set, find the most similar problems of another, by shared words "
    "(TF-IDF) or, with --model, by meaning (embeddings). A model then decides which are the same: ns "
    "generate --generation_type=check_contamination.",
    options=RetrieveSimilarOptions,
    run=run,
    result=retrieve_similar_problems,
    examples=(
        "ns retrieve_similar --retrieve_from=train.jsonl --compare_to=test.jsonl --output_file=similar.jsonl --top_k=5",
        "ns generate --generation_type=check_contamination --input_file=similar.jsonl --output_dir=contamination "
        "--server_type=openai --model=gpt-4o-mini",
    ),
)
