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
            "names, groups, or your own files; `all` = every benchmark whose data is on this machine or in "
            "the mirror",
            {"positional": True},
        ),
    ] = []
    category: Annotated[str | None, doc("with `all`: only benchmarks of these categories, comma separated")] = None
    data_dir: Annotated[
        str | None, doc("folder of prepared data (default: NEMO_SKILLS_DATA_DIR, or the user's cache)")
    ] = None
    mirror: Annotated[str | None, doc("folder of an offline mirror (default: NEWSKILLS_MIRROR)")] = None
    offline: Annotated[bool | None, doc("never use the network")] = None
    extra_benchmark_map: Annotated[
        str | None, doc("JSON file that maps names to folders with more benchmarks")
    ] = None
    max_samples: Annotated[
        Annotated[int, Meta(ge=-1)] | None,
        doc("rows per benchmark whose replies are graded; -1 = all (default: 200; 25 where code is run)"),
    ] = None
    json: Annotated[str | None, doc("file for all findings, as a JSON list")] = None
    dry_run: DryRun = False


COMMAND = Command(
    name="validate",
    summary="Check benchmarks without a model. Rows: the expected number, none missing, none duplicated, a "
    "prompt for each. Replies: a row's own answer is graded correct, in several spellings; an empty "
    "reply, the prompt itself, one reply for all rows, the answers of other rows, and replies that name "
    "many answers are graded correct no more often than by chance. The exit code is 1 if a check fails.",
    options=Options,
    run="newskills.commands.data.validate.work:run",
    examples=(
        "ns validate gsm8k mmlu",
        "ns validate ./sums.py",
        "ns validate all --category=science --mirror /data/mirror --json report.json",
    ),
)
