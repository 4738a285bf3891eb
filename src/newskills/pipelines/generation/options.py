# SPDX-License-Identifier: Apache-2.0
"""The options of `ns generate`."""

from __future__ import annotations

from typing import Annotated, Literal

from newskills.pipelines.options import SEEDS, AtLeastOne, WorkOptions, doc


class GenerateOptions(WorkOptions, frozen=True, kw_only=True):
    output_dir: Annotated[str | None, doc("folder of the results (default: results/<expname>)")] = None
    input_file: Annotated[str | None, doc("JSONL file of rows")] = None
    input_dir: Annotated[str | None, doc("folder whose output-rs{seed}.jsonl are the inputs, seed by seed")] = None
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
            "math_judge: ask whether predicted_answer and expected_answer are the same; check_contamination: whether a "
            "problem is the same as one of its similar_items; autoformalize: problems into statements of Lean 4; "
            "prover: proofs of such, mended by what Lean says; majority, weighted_vote, best_of_n, genselect, "
            "gensynthesis: one answer out of several"
        ),
    ] = None
    generation_module: Annotated[
        str | None,
        doc(
            "a task of your own: module::maker or file.py::maker of a solver (without ::, its SOLVER); or a module of "
            "NeMo-Skills by its name, nemo_skills.inference.NAME"
        ),
    ] = None
    num_random_seeds: Annotated[
        AtLeastOne | None, doc("samples of each row, at temperature 0.7 unless told", SEEDS)
    ] = None
    random_seeds: Annotated[str | list[int] | None, doc("these seeds: 1,2,5 or 0..4", SEEDS)] = None
    preprocess_cmd: Annotated[str | None, doc("your shell command before the run")] = None
    postprocess_cmd: Annotated[str | None, doc("your shell command after each finished (and merged) seed")] = None
