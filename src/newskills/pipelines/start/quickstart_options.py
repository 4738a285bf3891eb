# SPDX-License-Identifier: Apache-2.0
"""The options of `ns quickstart`."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from newskills.pipelines.options import DryRun, doc


class QuickstartOptions(Struct, frozen=True, kw_only=True):
    output_dir: Annotated[
        str, doc("folder for the results; a run in the same folder resumes where it stopped")
    ] = "results/quickstart"
    model: Annotated[str, doc("smollm2, or the path of another .gguf file")] = "smollm2"
    data_dir: Annotated[str | None, doc("folder of prepared data")] = None
    share: Annotated[
        float,
        Meta(
            gt=0,
            le=10,
            description="share of the usual problems, to evaluate and to train on, and of the training steps; more "
            "than 1 only with --no_train",
        ),
    ] = 1.0
    train: Annotated[
        bool,
        doc(
            "train the model on a skill; --no_train: only evaluate it on two benchmarks, without newskills[train]"
        ),
    ] = True
    dry_run: DryRun = False
