# SPDX-License-Identifier: Apache-2.0
"""`ns aimo regenerate_summary`: tables and files of scores anew from the records, without any model."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from newskills.commands.command import Command
from newskills.pipelines.options import DryRun, doc


class Options(Struct, frozen=True, kw_only=True):
    output_dir: Annotated[str, doc("folder of an evaluation of the aimo recipe", {"positional": True})]
    dry_run: DryRun = False


COMMAND = Command(
    name="aimo_regenerate_summary",
    summary="Rebuild the tables of ns aimo evaluate, evaluate_all and evaluate_checkpoints from the records.",
    options=Options,
    run="newskills_aimo.running.evaluation:run_summary",
    result="newskills_aimo.running.evaluation:summary_result",
    aliases={"results_dir": "output_dir"},
    examples=("ns aimo regenerate_summary results/aimo/rl_math",),
)
