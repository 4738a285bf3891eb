# SPDX-License-Identifier: Apache-2.0
"""What `ns kuberay` does: the manifest of a Ray cluster on Kubernetes that fits a cluster config."""

from __future__ import annotations

import os
import re
import sys
from typing import Annotated

from msgspec import Meta, Struct

from newskills.base.errors import ConfigError
from newskills.config.command_line import Parsed
from newskills.pipelines.options import doc

_NAME = re.compile(r"[a-z]([a-z0-9-]{0,44}[a-z0-9])?\Z", re.ASCII)
"""KubeRay adds `-head-svc` and the like to it, and Kubernetes allows 63 letters."""
_MEMORY = re.compile(r"[1-9]\d{0,12}(\.\d+)?([KMGTPE]i?|[kmun])?\Z", re.ASCII)


class KuberayOptions(Struct, frozen=True, kw_only=True):
    cluster: Annotated[str, doc("cluster config with executor ray; its job_dir must be on the volume")]
    image: Annotated[str, doc("image of all pods, with Ray, Python 3.11 or later and what newskills needs")]
    claim: Annotated[str, doc("persistent volume claim (ReadWriteMany) that all pods mount")]
    config_dir: Annotated[str | None, doc("folder of cluster configs")] = None
    name: Annotated[str, doc("name of the Ray cluster")] = "newskills"
    mount: Annotated[str | None, doc("path of the volume in the pods (default: job_dir)")] = None
    ray_version: Annotated[str, doc("version of Ray in the image; 2.52 or later supports tokens")] = "2.52.0"
    workers: Annotated[int, Meta(ge=0), doc("worker pods")] = 1
    max_workers: Annotated[
        int | None, doc("more than --workers: pods are added while jobs wait, and removed when idle")
    ] = None
    cpus: Annotated[int, Meta(ge=1), doc("CPUs of a worker")] = 8
    gpus: Annotated[int, Meta(ge=0), doc("GPUs of a worker")] = 0
    memory: Annotated[str, doc("memory of a worker, as Kubernetes writes it")] = "32Gi"


def run(parsed: Parsed[KuberayOptions]) -> int:
    """Print the manifest. Raises as `kuberay_manifest`."""
    sys.stdout.write(kuberay_manifest(parsed))
    return 0


def kuberay_manifest(parsed: Parsed[KuberayOptions]) -> str:
    """Return the manifest, for kubectl. Raises ConfigError for values that Kubernetes refuses, or a folder that no pod
    sees."""
    import yaml

    from newskills.launch.clusters.config import load_cluster
    from newskills.launch.clusters.mounts import is_inside
    from newskills.launch.ray.kuberay import RayPods, cluster_manifest

    options = parsed.options
    cluster = load_cluster(options.cluster, options.config_dir, os.environ)
    if not cluster.properties.uses_ray:
        raise ConfigError(
            f"Cluster '{cluster.name}' has executor {cluster.executor}; ns kuberay is for executor ray."
        )
    if not _NAME.match(options.name):
        raise ConfigError(f"--name={options.name}: expected at most 46 lower-case letters, digits and -.")
    if not _MEMORY.match(options.memory):
        raise ConfigError(f"--memory={options.memory}: expected an amount such as 32Gi.")
    mount = options.mount or cluster.job_dir
    if not mount.startswith("/") or not is_inside(cluster.job_dir, mount):
        raise ConfigError(f"job_dir {cluster.job_dir} of cluster '{cluster.name}' is not below --mount={mount}.")
    most = options.max_workers
    if most is None:
        most = options.workers
    if most < options.workers:
        raise ConfigError(f"--max_workers={most} is less than --workers={options.workers}.")
    pods = RayPods(
        name=options.name,
        image=options.image,
        ray_version=options.ray_version,
        claim=options.claim,
        mount=mount,
        workers=options.workers,
        most=most,
        cpus=options.cpus,
        gpus=options.gpus,
        memory=options.memory,
    )
    if most > options.workers and not cluster.ray.autoscaling:
        sys.stderr.write("note: set ray.autoscaling: true in the cluster config, so that jobs may wait for pods\n")
    return str(yaml.safe_dump(cluster_manifest(pods), sort_keys=False))
