# SPDX-License-Identifier: Apache-2.0
"""How large the nodes of a cluster are, asked of the cluster itself."""

from __future__ import annotations

import re
from collections.abc import Mapping

from newskills.base.errors import NewskillsError, RemoteError
from newskills.base.registry import load_function
from newskills.launch.clusters.config import ClusterConfig
from newskills.launch.clusters.times import seconds_of
from newskills.launch.machines.ssh import shell_of
from newskills.launch.ray.api import RayApi
from newskills.launch.registry import NodeSize

_GPUS = re.compile(r"gpu:(?:[^:,(]+:)?(\d+)")


def node_size(cluster: ClusterConfig, partition: str | None, environ: Mapping[str, str]) -> NodeSize:
    """Return what a node of the partition has; empty where the cluster does not say, or its executor cannot ask."""
    place = cluster.properties.node_size
    if not place:
        return NodeSize()
    size: NodeSize = load_function(place)(cluster, partition, environ)
    return size


def of_slurm(cluster: ClusterConfig, partition: str | None, environ: Mapping[str, str]) -> NodeSize:
    """Return GPUs of a node of the partition (None: the usual one) and its longest job, as sinfo prints them."""
    try:
        ran = shell_of(cluster, environ).run(["sinfo", "-h", "-o", "%P|%G|%l"])
    except RemoteError:
        return NodeSize()
    if ran.code != 0:
        return NodeSize()
    for line in ran.out.splitlines():
        name, _, rest = line.partition("|")
        generic, _, limit = rest.partition("|")
        if name.rstrip("*") == partition or (partition is None and name.endswith("*")):
            match = _GPUS.search(generic)
            gpus = int(match[1]) if match else 0
            seconds = seconds_of(limit) if limit[:1].isdigit() else None
            return NodeSize(gpus, seconds)
    return NodeSize()


def of_ray(cluster: ClusterConfig, partition: str | None, environ: Mapping[str, str]) -> NodeSize:
    """Return GPUs of the largest node that has what jobs of the partition take; Ray itself limits no time."""
    wanted = {**cluster.ray.resources, **cluster.ray.partitions.get(partition or "", {})}
    try:
        nodes = RayApi(cluster.ray.address, environ, shell_of(cluster, environ)).nodes()
    except NewskillsError:
        return NodeSize()
    return NodeSize(int(max((node.resources.get("GPU", 0.0) for node in nodes if node.has(wanted)), default=0.0)))
