# SPDX-License-Identifier: Apache-2.0
"""Pipelines serve Python without the commands."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys
from newskills.config.command_line import Parsed
from newskills.launch.clusters.config import from_keys
from newskills.pipelines.generation.jobs import prepare
from newskills.pipelines.generation.options import GenerateOptions

folder = sys.argv[1]
cluster = from_keys({"executor": "slurm", "job_dir": f"{folder}/jobs", "skip_hf_home_check": True}, "here", {})
options = GenerateOptions(
    model=["small"],
    server_type=["openai"],
    server_address=["http://node:8000"],
    input_file=f"{folder}/in.jsonl",
    output_dir=f"{folder}/out",
    num_random_seeds=3,
    skip_hf_home_check=True,
    dry_run=True,
)
given = {"prompt_config": "generic/default", "server.api_key": "EMPTY"}
ready = prepare(Parsed(options, given, frozenset()), cluster)
print(*(job.name for job in ready.submission.pipeline.jobs))
print(*(name for name in sys.modules if name.startswith("newskills.commands")))
"""


def test_jobs_are_planned_without_the_commands(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"question": "1+1?"}\n')
    words = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "generate-rs0 generate-rs1 generate-rs2\n\n"
