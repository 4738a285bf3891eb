# SPDX-License-Identifier: Apache-2.0
"""`ns mirror build|check`: benchmark data for machines without a network."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills.pipelines.data.mirror import MirrorOptions, build_or_check_mirror, run

COMMAND = Command(
    name="mirror",
    summary="Make a folder of benchmark data for machines without a network, or check one. Commands use it "
    "with --mirror DIR or NEWSKILLS_MIRROR. An interrupted build resumes where it stopped.",
    options=MirrorOptions,
    run=run,
    result=build_or_check_mirror,
    examples=("ns mirror build gsm8k mmlu /data/mirror", "ns mirror check /data/mirror"),
)
