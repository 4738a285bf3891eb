# SPDX-License-Identifier: Apache-2.0
"""The manifest of a Ray cluster on Kubernetes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.commands.running import ns

CONFIG = "executor: ray\njob_dir: /shared/jobs\nray: {autoscaling: true}\n"
LINE = "ns kuberay --cluster=./ray.yaml --image=registry/ray:1 --claim=shared"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "ray.yaml").write_text(CONFIG)
    (tmp_path / "slurm.yaml").write_text("executor: slurm\njob_dir: /shared/jobs\n")
    return tmp_path


def test_jobs_run_on_workers_that_see_the_folder_of_jobs(folder: Path) -> None:
    done = ns(f"{LINE} --workers=2 --max_workers=4 --gpus=8 --cpus=64 --memory=500Gi --mount=/shared", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    manifest = yaml.safe_load(done.stdout)
    assert (manifest["apiVersion"], manifest["kind"]) == ("ray.io/v1", "RayCluster")
    spec = manifest["spec"]
    assert spec["enableInTreeAutoscaling"] is True
    assert spec["headGroupSpec"]["rayStartParams"] == {"dashboard-host": "0.0.0.0", "num-cpus": "0"}
    (workers,) = spec["workerGroupSpecs"]
    assert [workers[key] for key in ("minReplicas", "replicas", "maxReplicas")] == [0, 2, 4]
    for group in (spec["headGroupSpec"], workers):
        (container,) = group["template"]["spec"]["containers"]
        assert container["image"] == "registry/ray:1"
        assert {"name": "newskills", "mountPath": "/shared"} in container["volumeMounts"]
        claims = [volume.get("persistentVolumeClaim") for volume in group["template"]["spec"]["volumes"]]
        assert {"claimName": "shared"} in claims
    size = {"cpu": "64", "memory": "500Gi", "nvidia.com/gpu": "8"}
    assert container["resources"] == {"requests": size, "limits": size}
    fixed = yaml.safe_load(ns(f"{LINE} --workers=3", cwd=folder).stdout)["spec"]
    assert "enableInTreeAutoscaling" not in fixed
    (workers,) = fixed["workerGroupSpecs"]
    assert [workers[key] for key in ("minReplicas", "replicas", "maxReplicas")] == [3, 3, 3]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ("--mount=/other", "is not below --mount=/other"),
        ("--name=My_Cluster", "lower-case letters"),
        ("--memory=much", "an amount such as 32Gi"),
        ("--workers=3 --max_workers=2", "--max_workers=2 is less than --workers=3"),
        ("--cluster=./slurm.yaml", "ns kuberay is for executor ray"),
    ],
)
def test_what_cannot_be_is_refused(folder: Path, options: str, problem: str) -> None:
    done = ns(f"{LINE} {options}", cwd=folder)
    assert done.returncode != 0
    assert problem in done.stderr


@pytest.mark.parametrize("options", ["", "--workers=0 --max_workers=4 --gpus=8"])
def test_the_manifest_fits_kuberays_schema(folder: Path, options: str) -> None:
    """NEWSKILLS_KUBERAY_CRD: helm-chart/kuberay-operator/crds/ray.io_rayclusters.yaml of ray-project/kuberay."""
    jsonschema = pytest.importorskip("jsonschema")
    if not (path := os.environ.get("NEWSKILLS_KUBERAY_CRD")):
        pytest.skip("NEWSKILLS_KUBERAY_CRD names no file")
    versions = yaml.safe_load(Path(path).read_text())["spec"]["versions"]
    schema = next(version for version in versions if version["name"] == "v1")["schema"]["openAPIV3Schema"]
    schema["properties"]["metadata"] = {}
    forbid_unknown(schema)
    jsonschema.validate(yaml.safe_load(ns(f"{LINE} {options}", cwd=folder).stdout), schema)


def forbid_unknown(node: Any) -> None:
    """Kubernetes drops unknown fields in silence; here they are errors."""
    if isinstance(node, dict):
        if isinstance(node.get("properties"), dict) and node.get("type") == "object":
            node.setdefault("additionalProperties", False)
        if node.get("x-kubernetes-int-or-string") is True:
            node.pop("type", None)
        for child in node.values():
            forbid_unknown(child)
    elif isinstance(node, list):
        for child in node:
            forbid_unknown(child)
