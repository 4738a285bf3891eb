# SPDX-License-Identifier: Apache-2.0
"""`ns prepare_data NAME…`: fetch and normalise benchmark data."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills.pipelines.data.prepare_options import PrepareDataOptions

COMMAND = Command(
    name="prepare_data",
    summary="Download benchmark data, check it, and write it as <data_dir>/<name>/<split>.jsonl with a "
    "record of where it came from. Needs no other set-up. With --cluster, a job does it there. Some "
    "benchmarks have options of their own: ns prepare_data NAME --help shows them.",
    options=PrepareDataOptions,
    run="newskills.pipelines.data.prepare:run",
    result="newskills.pipelines.data.prepare:prepare_data",
    prepare="newskills.pipelines.data.prepare:prepare",
    more_help="newskills.pipelines.data.prepare:more_help",
    examples=(
        "ns prepare_data gsm8k math aime24",
        "ns prepare_data mmlu-prox --languages de fr",
        "ns prepare_data gsm8k --mirror /data/mirror --offline",
        "ns prepare_data gsm8k --cluster=slurm --data_dir=/lustre/me/data",
    ),
)
