# SPDX-License-Identifier: Apache-2.0
"""`ns scan DIR`: questions asked of all transcripts."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills.pipelines.results.scan_options import ScanOptions

COMMAND = Command(
    name="scan",
    summary="Ask questions of all transcripts: by rule (refusals, loops, ignored errors of tools, …), or by a model, "
    "as a YAML file says. Labels and quotes are kept beside the records: ns view and ns samples --where know them. A "
    "quote that does not stand in the transcript makes the result invalid.",
    options=ScanOptions,
    run="newskills.pipelines.results.scan:run",
    result="newskills.pipelines.results.scan:scan_transcripts",
    any_keys=True,
    examples=(
        "ns scan results",
        "ns scan results --scanners refusal loop --benchmarks gsm8k",
        "ns scan results --scanners gives_up.yaml --model=gpt-4.1-mini --server_type=openai --labels labels.jsonl",
    ),
)
