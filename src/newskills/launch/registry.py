# SPDX-License-Identifier: Apache-2.0
"""The executors by name, and what others need to know of each: nothing compares an executor's name."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from newskills.base.registry import DescribedRegistry


class ExecutorProperties(Struct, frozen=True, kw_only=True):
    """What an executor does with jobs; the usual values are those of a cluster with a queue.

    this_machine       jobs run on the machine that submits them: it sees their GPUs and their end, there is one node
    in_process         the launching process may do the work itself, instead of a job
    shares_first_node  all groups of a job begin on one node; else each has nodes of its own
    shares_disks       nodes see the disks of the machine that submits, and its Python
    containers         what a container holds: each command, the whole job (image of `ray.image`), or nothing
    squashed_images    images may be .sqsh files
    tasks_per_node     a command may be several processes on each of several nodes
    has_accounts       jobs are charged to accounts, and wait in partitions of a scheduler
    has_time_limits    jobs end at a time limit; copies of them go on from there
    uses_ray           the section `ray` of the cluster config says how its nodes are reached
    trial              "module:function" of (shell, cluster, environ) for `ns doctor --cluster`, → its findings
    node_size          "module:function" of (cluster, partition, environ) that asks for GPUs and the time limit of a
                       node, → `NodeSize`; empty: nobody can say
    """

    this_machine: bool = False
    in_process: bool = False
    shares_first_node: bool = False
    shares_disks: bool = True
    containers: Literal["command", "job", "none"] = "command"
    squashed_images: bool = False
    tasks_per_node: bool = True
    has_accounts: bool = True
    has_time_limits: bool = True
    uses_ray: bool = False
    trial: str = ""
    node_size: str = ""


class NodeSize(Struct, frozen=True):
    """What a node of a partition has: GPUs (0: unknown), and seconds that a job may take (None: no limit)."""

    gpus: int = 0
    limit: int | None = None


EXECUTORS = DescribedRegistry(
    "executor",
    {
        "none": (
            "newskills.launch.executors.none:make",
            ExecutorProperties(
                this_machine=True,
                in_process=True,
                shares_first_node=True,
                containers="none",
                has_accounts=False,
                has_time_limits=False,
            ),
        ),
        "local": (
            "newskills.launch.executors.local:make",
            ExecutorProperties(
                this_machine=True,
                shares_first_node=True,
                has_accounts=False,
                has_time_limits=False,
                trial="newskills.launch.clusters.trial:try_engine",
            ),
        ),
        "slurm": (
            "newskills.launch.executors.slurm:make",
            ExecutorProperties(
                squashed_images=True,
                trial="newskills.launch.clusters.trial:try_slurm",
                node_size="newskills.launch.clusters.node_size:of_slurm",
            ),
        ),
        "ray": (
            "newskills.launch.executors.ray:make",
            ExecutorProperties(
                shares_first_node=True,
                shares_disks=False,
                containers="job",
                tasks_per_node=False,
                has_accounts=False,
                uses_ray=True,
                trial="newskills.launch.clusters.trial:try_ray",
                node_size="newskills.launch.clusters.node_size:of_ray",
            ),
        ),
    },
    usual=ExecutorProperties(),
    group="newskills.executors",
)
