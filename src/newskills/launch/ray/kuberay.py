# SPDX-License-Identifier: Apache-2.0
"""A Ray cluster on Kubernetes, as KubeRay's operator reads it (kind RayCluster of ray.io/v1)."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

SHARED, MEMORY = "newskills", "shared-memory"
GPU_RESOURCE = "nvidia.com/gpu"
PORTS = {"gcs": 6379, "dashboard": 8265, "client": 10001}
HEAD = {"cpu": "2", "memory": "8Gi"}
"""The supervisors of experiments run there, at some 200 MB each."""


class RayPods(Struct, frozen=True, kw_only=True):
    """What a manifest is made from.

    name         of the cluster; its dashboard is http://NAME-head-svc:8265 inside of Kubernetes
    image        for all pods: Ray, and Python with what newskills needs
    ray_version  of Ray in that image
    claim        persistent volume claim, ReadWriteMany, that all pods mount at `mount`
    workers      pods; with `most` more than them, the autoscaler adds pods as jobs wait for them
    """

    name: str
    image: str
    ray_version: str
    claim: str
    mount: str
    workers: int
    most: int
    cpus: int
    gpus: int
    memory: str


def cluster_manifest(pods: RayPods) -> dict[str, Any]:
    """Return the manifest of a Ray cluster; jobs run on workers only, since the head has no CPUs to give."""
    size = {"cpu": str(pods.cpus), "memory": pods.memory}
    if pods.gpus:
        size[GPU_RESOURCE] = str(pods.gpus)
    ports = [{"name": name, "containerPort": port} for name, port in PORTS.items()]
    spec: dict[str, Any] = {
        "rayVersion": pods.ray_version,
        "authOptions": {"mode": "token"},
        "headGroupSpec": {
            "rayStartParams": {"dashboard-host": "0.0.0.0", "num-cpus": "0"},  # noqa: S104 - in the pod
            "template": _pod_template(pods, "ray-head", HEAD, {"ports": ports}),
        },
        "workerGroupSpecs": [
            {
                "groupName": "workers",
                "replicas": pods.workers,
                "minReplicas": pods.workers if pods.most == pods.workers else 0,
                "maxReplicas": pods.most,
                "rayStartParams": {},
                "template": _pod_template(pods, "ray-worker", size, {}),
            }
        ],
    }
    if pods.most > pods.workers:
        spec["enableInTreeAutoscaling"] = True
    return {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": pods.name}, "spec": spec}


def _pod_template(pods: RayPods, name: str, size: dict[str, str], more: dict[str, Any]) -> dict[str, Any]:
    container = {
        "name": name,
        "image": pods.image,
        **more,
        "resources": {"requests": dict(size), "limits": dict(size)},
        "volumeMounts": [{"name": SHARED, "mountPath": pods.mount}, {"name": MEMORY, "mountPath": "/dev/shm"}],  # noqa: S108
    }
    volumes = [
        {"name": SHARED, "persistentVolumeClaim": {"claimName": pods.claim}},
        {"name": MEMORY, "emptyDir": {"medium": "Memory"}},
    ]
    return {"spec": {"containers": [container], "volumes": volumes}}
