# SPDX-License-Identifier: Apache-2.0
"""`ns doctor`: what this machine has, what is missing, and the next command for each gap. Changes nothing."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills.pipelines.start.doctor import DoctorOptions, run, run_doctor

COMMAND = Command(
    name="doctor",
    summary="Check this machine: extras, API keys (names only), data, servers, and how to install what is "
    "missing.",
    options=DoctorOptions,
    run=run,
    result=run_doctor,
    examples=("ns doctor", "ns doctor --cluster=slurm", "ns doctor --server_address http://127.0.0.1:8000/v1"),
)
