# SPDX-License-Identifier: Apache-2.0
"""The options of `ns average_checkpoints`."""

from __future__ import annotations

from typing import Annotated

from newskills.pipelines.options import PlacementOptions, doc


class AverageOptions(PlacementOptions, frozen=True, kw_only=True):
    checkpoints: Annotated[
        list[str],
        doc("Hugging Face folders of the same model (several words); with --steps the folder they lie in"),
    ]
    output_model: Annotated[str, doc("folder to write; must not be there yet")]
    steps: Annotated[
        str | None, doc("the folders step_N of --checkpoints with these numbers, comma separated")
    ] = None
    remove: Annotated[list[str], doc("folders that are removed once the mean is there, and only then")] = []  # noqa: RUF012 - copied
    remove_checkpoints_after_average: Annotated[bool, doc("remove the checkpoints themselves in that way")] = False
