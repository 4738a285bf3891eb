# SPDX-License-Identifier: Apache-2.0
"""What one build is: checked settings, input files in order, and where its work lies. Workers get it as JSON."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from newskills.base.records import Row
from newskills.train.data.overlap import Overlap
from newskills.train.data.settings import RECIPES, DataRecipe, RecipeName, TrainingDataConfig

PARTITION_BYTES = 48 << 20
MOST_PARTITIONS = 4096


class InputFile(Struct, frozen=True, kw_only=True):
    """A JSONL file, called `shown` in messages.

    `base`: bytes of the files before it, so that `base + offset` is a line's place among all; `first`: byte offset of
    the first line that is read; `graded`: its rows need a verdict; `schema`: the published data set whose fields it
    has, empty for rows that have the fields already.
    """

    path: str
    shown: str
    size: int
    base: int
    first: int = 0
    graded: bool = False
    schema: str = ""


class BuildJob(Struct, frozen=True, kw_only=True):
    """`work`: a folder for chunks and partitions; `partitions`: how many, by the size of the input alone;
    `examples`: as in BuildRequest."""

    config: TrainingDataConfig
    recipe_name: RecipeName
    inputs: tuple[InputFile, ...]
    work: str
    partitions: int
    overlap: Overlap = Overlap()
    examples: dict[str, list[Row]] = {}

    @property
    def recipe(self) -> DataRecipe:
        return RECIPES[self.recipe_name]

    @property
    def total(self) -> int:
        """Bytes of all inputs."""
        return sum(file.size for file in self.inputs)

    def chunk_file(self, number: int) -> Path:
        return Path(self.work) / f"chunk-{number}"

    def partition_file(self, number: int) -> Path:
        return Path(self.work) / f"partition-{number}"

    def ranks_file(self, number: int) -> Path:
        return Path(self.work) / f"ranks-{number}"


def partitions_for(total: int) -> int:
    """Return a number of partitions such that one of them fits into memory easily."""
    return min(MOST_PARTITIONS, 1 + total // PARTITION_BYTES)
