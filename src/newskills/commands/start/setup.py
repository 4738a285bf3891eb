# SPDX-License-Identifier: Apache-2.0
"""`ns setup`: asks about a cluster, writes its config, tries it."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills.pipelines.start.setup_options import SetupOptions

COMMAND = Command(
    name="setup",
    summary="Describe a cluster: asks questions, writes <config_dir>/<name>.yaml, and tests it. Each answer "
    "can also be given as an option.",
    options=SetupOptions,
    run="newskills.pipelines.start.setup:run",
    result="newskills.pipelines.start.setup:set_up_cluster",
    examples=(
        "ns setup",
        "ns setup --non_interactive --executor=slurm --name=big --ssh_host=login --job_dir=/lustre/me/jobs "
        "--partition=batch --time_limit=04:00:00",
        "ns setup --non_interactive --executor=local --containers vllm=vllm/vllm-openai:v0.11.0 --mounts /data:/data "
        "--hf_home=/data/hf",
    ),
)
