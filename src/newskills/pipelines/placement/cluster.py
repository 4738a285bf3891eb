# SPDX-License-Identifier: Apache-2.0
"""Which cluster a command means, and what its placement options say."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from newskills.base.errors import ConfigError
from newskills.base.plan import HardwareConfig
from newskills.config.fields import leaves
from newskills.launch.clusters.config import ClusterConfig, load_cluster
from newskills.launch.clusters.mounts import is_inside, parse_mounts, to_container, to_host
from newskills.launch.experiments import job_root
from newskills.launch.package import PACKAGES_FOLDER
from newskills.pipelines.arguments import read_json
from newskills.pipelines.notices import print_note
from newskills.pipelines.options import ClusterOptions, PlacementOptions
from newskills.pipelines.placement.packaged_code import PackagedCode, is_code

EVERYWHERE = ("cluster", "config_dir", "expname", "log_dir", "dry_run", "show_scripts", "reuse_code")
"""Placement options that have a meaning on this machine, too."""
WRITTEN = ("--output_dir", "--output_model", "--final_hf_path", "--log_dir")
"""Options with folders that jobs write to."""


def cluster_of(options: ClusterOptions) -> ClusterConfig:
    """Return the cluster of `--cluster`, with `--mount_paths`. Raises ConfigError, DataError, UnknownNameError."""
    say = print_note if options.cluster else (lambda text: None)
    cluster = load_cluster(options.cluster, options.config_dir, os.environ, say=say)
    more = [mount.strip() for mount in (options.mount_paths or "").split(",") if mount.strip()]
    mounts = [*cluster.mounts, *more]
    parse_mounts(mounts)
    return msgspec.structs.replace(cluster, mounts=mounts)


def target_cluster(
    options: PlacementOptions, given_options: frozenset[str], num_jobs: int | None = None
) -> ClusterConfig | None:
    """Return the cluster to submit to; None: the work is done by this process, which then has the cluster's variables.

    This process does it where the executor lets it, unless it is to be several jobs or to wait for others.
    """
    from newskills.launch.clusters.variables import job_variables

    cluster = cluster_of(options)
    if not cluster.properties.in_process or num_jobs not in (None, 1) or options.run_after:
        return cluster
    os.environ.update(job_variables(cluster, os.environ, say=print_note).plain)
    idle = [f"--{name}" for name in leaves(PlacementOptions) if name in given_options and name not in EVERYWHERE]
    if idle:
        print_note(f"{', '.join(idle)}: no effect here, only on clusters")
    return None


def hardware_of(options: PlacementOptions, *, gpus: int = 0, nodes: int = 1, **more: Any) -> HardwareConfig:
    """Return the hardware that a group of commands needs, as the options say. Raises ConfigError."""
    settings = {"sbatch_kwargs": read_json(options.sbatch_kwargs, "--sbatch_kwargs"), **more}
    return HardwareConfig(
        num_nodes=nodes,
        num_gpus=gpus,
        partition=options.partition,
        account=options.account,
        qos=options.qos,
        time_min=options.time_min,
        exclusive=options.exclusive,
        **settings,
    )


class ClusterPaths(Struct, frozen=True, kw_only=True):
    """The two names of a file: `seen` by the clients, and `host`'s own, where this machine has the same disks.

    packaged  what clients find below /nemo_run/code
    """

    cluster: ClusterConfig
    contained: bool
    packaged: PackagedCode

    def path_in_job(self, path: str, option: str) -> str:
        """Return a path of the user's as clients see it: absolute. Raises ConfigError."""
        if is_code(path):
            return self._packaged_path(path, option)
        if os.path.isabs(path):
            return os.path.normpath(path)
        if self.cluster.ssh_tunnel is not None:
            raise ConfigError(f"{option}={path}: give an absolute path of cluster '{self.cluster.name}'.")
        return self.client_path(os.path.abspath(os.path.expanduser(path)), option)

    def client_path(self, path: str, option: str) -> str:
        """Return the path of a file of this machine as clients see it. Raises ConfigError where they do not."""
        path = os.path.abspath(path)
        if not self.contained or is_code(path):
            return path
        mounts = parse_mounts(self.cluster.mounts)
        if (in_container := to_container(path, mounts)) is not None:
            return in_container
        there = f"its mounts are {', '.join(map(str, mounts))}" if mounts else "it has no mounts"
        raise ConfigError(
            f"{option}: the containers of cluster '{self.cluster.name}' do not see {path} ({there}).",
            hint="Add a mount to the cluster config, or give --mount_paths=SRC:DST.",
        )

    def code_in_job(self, place: str) -> str:
        """Return a file of code (`file.py::name`) as jobs find it: where it is, if they see this machine's disks, else
        in the packaged code."""
        file, colons, name = place.partition("::")
        if not self.contained and self.local_path(os.path.abspath(file)):
            file = os.path.abspath(file)
        return f"{file}{colons}{name}"

    def host_path(self, container_path: str) -> str:
        """Return the path on the machine that submits of the file that clients know as `container_path`."""
        if not self.contained:
            return container_path
        if is_code(container_path):
            return self.packaged.path_on_host(container_path)
        return to_host(container_path, parse_mounts(self.cluster.mounts)) or container_path

    def local_path(self, container_path: str) -> str | None:
        """Return the path on this machine of the file that clients know as `container_path`; None: it may be elsewhere,
        or is not there."""
        path = self.host_path(container_path)
        if self.in_code(container_path):
            return self.packaged.local_source(container_path)
        if self.cluster.ssh_tunnel is None and os.path.exists(path):
            return path
        return None

    def in_code(self, container_path: str) -> bool:
        """Return whether clients would see a packaged file at this path."""
        return is_code(container_path) or is_inside(
            container_path, f"{job_root(self.cluster, os.environ)}/{PACKAGES_FOLDER}"
        )

    def _packaged_path(self, path: str, option: str) -> str:
        """Return a path below /nemo_run/code as clients find it, checked to be there. Raises ConfigError."""
        if option in WRITTEN:
            raise ConfigError(f"{option}={path}: jobs cannot write there; it is their packaged code.")
        self.packaged.check_path(path, option)
        if self.contained:
            return os.path.normpath(path)
        return self.packaged.path_on_host(path)


def paths_of(cluster: ClusterConfig, container: str, options: PlacementOptions | None = None) -> ClusterPaths:
    """Return the paths of a cluster; `container`: that of the clients. Raises UnknownNameError."""
    from newskills.launch.clusters.config import image_of

    contained = image_of(cluster, container) is not None
    return ClusterPaths(cluster=cluster, contained=contained, packaged=PackagedCode(cluster, options))


def make_mount_sources(cluster: ClusterConfig, environ: Mapping[str, str]) -> None:
    """Make the missing folders of mounts, for `--check_mounted_paths`. Raises ConfigError."""
    from newskills.launch.machines.ssh import shell_of

    sources = [mount.src for mount in parse_mounts(cluster.mounts)]
    if not sources:
        return
    shell = shell_of(cluster, environ)
    missing = [path for path, there in zip(sources, shell.exists(sources), strict=True) if not there]
    if missing and (made := shell.run(["mkdir", "-p", "--", *missing])).code != 0:
        raise ConfigError(f"--check_mounted_paths: {made.err.strip()} (on {shell.name})")
