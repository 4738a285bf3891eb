# SPDX-License-Identifier: Apache-2.0
"""The options of `ns prepare_training_data`."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from newskills.pipelines.options import AtLeastOne, DryRun, doc
from newskills.train.data.overlap import NGRAM, SHARE

DECONTAMINATION = {"group": "decontamination"}


class PrepareTrainingDataOptions(Struct, frozen=True, kw_only=True):
    config_name: Annotated[
        Literal["math_sft", "stem_sft", "agent_sft", "code_sft", "math_rl"],
        doc("recipe: solutions, conversations, what agents did, code, or problems for reinforcement learning"),
    ] = "math_sft"
    dataset: Annotated[
        str | None,
        doc("published training set: downloaded, or read from ++input_files (JSONL, JSON, Parquet, also gzipped)"),
    ] = None
    benchmark: Annotated[
        str | None,
        doc(
            "benchmark whose prompt wraps the problems, as in its evaluation (needs ++tokenizer; more ++ "
            "keys change it)"
        ),
    ] = None
    split: Annotated[str | None, doc("split of the published set (default: its first split)")] = None
    data_dir: Annotated[
        str | None, doc("folder of prepared data (default: NEMO_SKILLS_DATA_DIR, or the user's cache)")
    ] = None
    mirror: Annotated[str | None, doc("folder of an offline mirror (default: NEWSKILLS_MIRROR)")] = None
    offline: Annotated[bool | None, doc("never use the network")] = None
    workers: Annotated[
        int, Meta(ge=0, description="worker processes; 0 = one per CPU. The result does not depend on it")
    ] = 0
    executor: Annotated[
        Literal["none", "ray"],
        doc("ray: on the nodes of RAY_ADDRESS, or of this machine, by Ray Data. The result stays the same"),
    ] = "none"
    dry_run: DryRun = False
    decontaminate: Annotated[
        list[str],
        doc(
            "benchmarks (or JSONL files with `problem`) whose problems are removed from the training data, "
            "by shared words (n-grams)",
            DECONTAMINATION,
        ),
    ] = []
    decontaminate_ngram: Annotated[AtLeastOne, doc("words per n-gram", DECONTAMINATION)] = NGRAM
    decontaminate_share: Annotated[
        float,
        Meta(
            gt=0,
            le=1,
            description="share of the shorter text's n-grams that must be in both texts",
            extra=DECONTAMINATION,
        ),
    ] = SHARE
