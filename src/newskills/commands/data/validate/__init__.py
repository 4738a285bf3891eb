# SPDX-License-Identifier: Apache-2.0
"""`ns validate NAME…`: whether benchmarks measure what they should, found without a model."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from newskills.commands.command import Command
from newskills.pipelines.options import DryRun, doc


class Options(Struct, frozen=True, kw_only=True):
    benchmarks: Annotated[
        list[str],
        doc(
            "names, groups, or files of your own; `all` = all whose data is here or in the mirror",
            {"positional": True},
        ),
    ] = []
    category: Annotated[str | None, doc("`all`, of this category")] = None
    data_dir: Annotated[
        str | None, doc("where prepared data lies (default: NEMO_SKILLS_DATA_DIR, or the user's cache)")
    ] = None
    mirror: Annotated[str | None, doc("folder of an offline mirror (default: NEWSKILLS_MIRROR)")] = None
    offline: Annotated[bool | None, doc("never use the network")] = None
    extra_benchmark_map: Annotated[str | None, doc("JSON file name → folder of further benchmarks")] = None
    max_samples: Annotated[
        Annotated[int, Meta(ge=-1)] | None,
        doc("rows of each benchmark whose replies are graded; -1 = all (default: 200, where code is run 25)"),
    ] = None
    json: Annotated[str | None, doc("file for everything that was found, as a JSON list")] = None
    dry_run: DryRun = False


COMMAND = Command(
    name="validate",
    summary="Check benchmarks without a model. Rows: as many as they should be, none lost, none twice, a prompt for "
    "each. Replies: a row's own answer is right, in several spellings; silence, the prompt, one reply for all, and the "
    "answers of other rows are right no more often than by chance. Exit code 1 where something is wrong.",
    options=Options,
    run="newskills.commands.data.validate.work:run",
    examples=(
        "ns validate gsm8k mmlu",
        "ns validate ./sums.py",
        "ns validate all --category=science --mirror /data/mirror --json report.json",
    ),
)
