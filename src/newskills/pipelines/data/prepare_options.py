# SPDX-License-Identifier: Apache-2.0
"""The options of `ns prepare_data`."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from newskills.pipelines.options import JOB, AtLeastOne, PlacementOptions, doc


class PrepareDataOptions(PlacementOptions, frozen=True, kw_only=True):
    benchmarks: Annotated[
        list[str],
        doc(
            "names or groups of benchmarks; `all` = every benchmark of the catalog; `prompts` = official prompts",
            {"positional": True},
        ),
    ] = []  # noqa: RUF012 - copied
    dataset: Annotated[
        str | None, doc("one name (older spelling); also a published training set: openmathinstruct-2, …")
    ] = None
    data_dir: Annotated[
        str | None, doc("folder for <name>/<split>.jsonl (default: NEMO_SKILLS_DATA_DIR, or the user's cache)")
    ] = None
    split: Annotated[list[str], doc("only these splits (default: all)")] = []  # noqa: RUF012 - copied
    mirror: Annotated[str | None, doc("folder of an offline mirror (default: NEWSKILLS_MIRROR)")] = None
    force: Annotated[bool, doc("prepare again what is there and unchanged")] = False
    offline: Annotated[bool | None, doc("never use the network")] = None
    extra_benchmark_map: Annotated[
        str | None, doc("JSON file that maps names to folders with more benchmarks")
    ] = None
    parallelism: Annotated[int, Meta(ge=1, description="benchmarks prepared at the same time")] = 20
    retries: Annotated[int, Meta(ge=0, description="retries after a failed download")] = 3
    skip_data_dir_check: Annotated[
        bool, doc("accepted for compatibility with NeMo-Skills; data sets of any size go to the user's cache")
    ] = False
    num_gpus: Annotated[int | None, doc("GPUs of the job", JOB)] = None
    num_nodes: Annotated[AtLeastOne, doc("nodes of the job; the first one prepares", JOB)] = 1
