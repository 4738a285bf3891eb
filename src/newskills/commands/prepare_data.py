# SPDX-License-Identifier: Apache-2.0
"""`ns prepare_data NAME…`: fetch and normalise benchmark data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from newskills.commands._command import Command
from newskills.commands._options import JOB, AtLeastOne, PlacementOptions, doc

if TYPE_CHECKING:
    pass


class Options(PlacementOptions, frozen=True, kw_only=True):
    benchmarks: Annotated[
        list[str], doc("names, or groups of them; `all` = every benchmark of the catalog", {"positional": True})
    ] = []  # noqa: RUF012 - copied
    dataset: Annotated[
        str | None, doc("one name (older spelling), also of a published training set: openmathinstruct-2, …")
    ] = None
    data_dir: Annotated[
        str | None, doc("where <name>/<split>.jsonl goes (default: NEMO_SKILLS_DATA_DIR, or the user's cache)")
    ] = None
    split: Annotated[list[str], doc("only these splits (default: all there are)")] = []  # noqa: RUF012 - copied
    mirror: Annotated[str | None, doc("folder of an offline mirror (default: NEWSKILLS_MIRROR)")] = None
    offline: Annotated[bool | None, doc("never use the network")] = None
    extra_benchmark_map: Annotated[str | None, doc("JSON file name → folder of further benchmarks")] = None
    parallelism: Annotated[int, Meta(ge=1, description="benchmarks prepared at the same time")] = 20
    retries: Annotated[int, Meta(ge=0, description="further attempts after a failed download")] = 3
    skip_data_dir_check: Annotated[
        bool, doc("accepted as in the reference system; no set is too large for the user's cache")
    ] = False
    num_gpus: Annotated[int | None, doc("GPUs of the job", JOB)] = None
    num_nodes: Annotated[AtLeastOne, doc("nodes of the job; the first one prepares", JOB)] = 1


COMMAND = Command(
    name="prepare_data",
    summary="Fetch benchmark data, check it, and lay it out as <data_dir>/<name>/<split>.jsonl with a record of "
    "where it came from. Needs no other set-up. With --cluster a job does it there. Benchmarks may have options of "
    "their own: ns prepare_data NAME --help shows them.",
    options=Options,
    run="newskills.commands._preparing:run",
    result="newskills.commands._preparing:result",
    prepare="newskills.commands._preparing:prepare",
    more_help="newskills.commands._preparing:more_help",
    examples=(
        "ns prepare_data gsm8k math aime24",
        "ns prepare_data mmlu-prox --languages de fr",
        "ns prepare_data gsm8k --mirror /data/mirror --offline",
        "ns prepare_data gsm8k --cluster=slurm --data_dir=/lustre/me/data",
    ),
)
