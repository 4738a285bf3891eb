# SPDX-License-Identifier: Apache-2.0
"""The options of `ns average_checkpoints`."""

from __future__ import annotations

from typing import Annotated

from newskills.pipelines.options import PlacementOptions, doc


class AverageOptions(PlacementOptions, frozen=True, kw_only=True):
    checkpoints: Annotated[
        list[str],
        doc("Hugging Face folders of the same model (several words); with --steps: the folder that contains them"),
    ]
    output_model: Annotated[str, doc("folder to write; must not exist yet")]
    steps: Annotated[str | None, doc("step numbers N of the folders step_N in --checkpoints, comma separated")] = (
        None
    )
    remove: Annotated[list[str], doc("folders to remove after the average is written")] = []  # noqa: RUF012 - copied
    remove_checkpoints_after_average: Annotated[
        bool, doc("remove the averaged checkpoints after the average is written")
    ] = False
