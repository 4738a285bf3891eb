# SPDX-License-Identifier: Apache-2.0
"""`ns kuberay`: the manifest of a Ray cluster on Kubernetes that fits a cluster config."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills.pipelines.jobs.kuberay import KuberayOptions, kuberay_manifest, run

COMMAND = Command(
    name="kuberay",
    summary="Print the manifest of a Ray cluster for KubeRay (kind RayCluster) that fits a cluster config with "
    "executor ray: a head that runs no jobs, workers, and a shared volume at job_dir.",
    options=KuberayOptions,
    run=run,
    result=kuberay_manifest,
    examples=(
        "ns kuberay --cluster=ray --image=registry/newskills-ray:1 --claim=shared --workers=4 --gpus=8 | "
        "kubectl apply -f -",
    ),
)
