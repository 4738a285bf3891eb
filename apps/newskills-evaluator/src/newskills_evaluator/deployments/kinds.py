# SPDX-License-Identifier: Apache-2.0
"""Types of deployments: who makes the command of each, and what is particular about it."""

from __future__ import annotations

from msgspec import Struct

from newskills.base.registry import DescribedRegistry


class DeploymentProperties(Struct, frozen=True, kw_only=True):
    """What is particular about a type of deployment.

    engine       server type of `ns start_server` that it starts; empty: a command of its own
    sizes        options of tensor, pipeline and data parallel sizes; empty: none for that size
    memory       option of the share of a GPU's memory; empty: none
    takes_gpus   it uses as many GPUs of this machine as its sizes multiply to
    joins_by_ray one process reaches the other nodes through Ray
    health       path that answers once it is ready, where the configuration names none
    """

    engine: str = ""
    sizes: tuple[str, str, str] = ("", "", "")
    memory: str = ""
    takes_gpus: bool = True
    joins_by_ray: bool = False
    health: str = ""


_VLLM = ("--tensor-parallel-size", "--pipeline-parallel-size", "--data-parallel-size")
_VLLM_MEMORY = "--gpu-memory-utilization"
_MAKERS = "newskills_evaluator.deployments.servers"

DEPLOYMENTS = DescribedRegistry(
    "deployment",
    {
        "vllm": (
            f"{_MAKERS}:engine_script",
            DeploymentProperties(engine="vllm", sizes=_VLLM, memory=_VLLM_MEMORY),
        ),
        "vllm_ray": (
            f"{_MAKERS}:engine_script",
            DeploymentProperties(engine="vllm", sizes=_VLLM, memory=_VLLM_MEMORY, joins_by_ray=True),
        ),
        "sglang": (
            f"{_MAKERS}:engine_script",
            DeploymentProperties(engine="sglang", sizes=("--tp-size", "--pp-size", "--dp-size")),
        ),
        "trtllm": (
            f"{_MAKERS}:engine_script",
            DeploymentProperties(engine="trtllm", sizes=("--tp_size", "--pp_size", "")),
        ),
        "nim": (f"{_MAKERS}:nim_script", DeploymentProperties(health="/v1/health/ready")),
        "generic": (f"{_MAKERS}:generic_script", DeploymentProperties(takes_gpus=False)),
        "none": ("", DeploymentProperties(takes_gpus=False)),
    },
    usual=DeploymentProperties(),
)
"""Type → maker of its own command, for a configuration without `deployment.command`. `none` has no server."""
