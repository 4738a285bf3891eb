# SPDX-License-Identifier: Apache-2.0
"""The options of `ns generate`."""

from __future__ import annotations

from typing import Annotated, Literal

from newskills.pipelines.options import SEEDS, AtLeastOne, PromptSourceOption, WorkOptions, doc


class GenerateOptions(WorkOptions, frozen=True, kw_only=True):
    output_dir: Annotated[str | None, doc("folder for the results (default: results/<expname>)")] = None
    input_file: Annotated[
        str | None, doc("file of rows: JSONL, JSON array, CSV, TSV, Parquet; also .gz, .zst")
    ] = None
    input_dir: Annotated[
        str | None, doc("folder whose output-rs{seed}.jsonl files are the inputs, one per seed")
    ] = None
    generation_type: Annotated[
        Literal[
            "generate",
            "math_judge",
            "check_contamination",
            "autoformalize",
            "prover",
            "majority",
            "weighted_vote",
            "best_of_n",
            "genselect",
            "gensynthesis",
        ]
        | None,
        doc(
            "math_judge: ask whether predicted_answer and expected_answer are the same; check_contamination: "
            "ask whether a problem is the same as one of its similar_items; autoformalize: translate "
            "problems into Lean 4 statements; prover: prove Lean 4 statements, with repair after Lean's "
            "errors; majority, weighted_vote, best_of_n, genselect, gensynthesis: combine several samples "
            "into one answer"
        ),
    ] = None
    prompt_source: PromptSourceOption = None
    generation_module: Annotated[
        str | None,
        doc(
            "your own generation task: module::maker or file.py::maker of a solver (without ::, its SOLVER); "
            "or a NeMo-Skills module by name, nemo_skills.inference.NAME"
        ),
    ] = None
    num_random_seeds: Annotated[
        AtLeastOne | None, doc("samples per row, at temperature 0.7 unless set", SEEDS)
    ] = None
    random_seeds: Annotated[str | list[int] | None, doc("these seeds: 1,2,5 or 0..4", SEEDS)] = None
    preprocess_cmd: Annotated[str | None, doc("your shell command to run before the generation")] = None
    postprocess_cmd: Annotated[
        str | None, doc("your shell command to run after each finished (and merged) seed")
    ] = None
