# SPDX-License-Identifier: Apache-2.0
"""The executors by name."""

from __future__ import annotations

from newskills.base.registry import Registry

EXECUTORS = Registry(
    "executor",
    {
        "none": "newskills.launch.executors.none:make",
        "local": "newskills.launch.executors.local:make",
        "slurm": "newskills.launch.executors.slurm:make",
        "ray": "newskills.launch.executors.ray:make",
    },
    group="newskills.executors",
)
