# SPDX-License-Identifier: Apache-2.0
"""Results of a cluster behind ssh, for as long as this machine looks at them: only the records come over."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from newskills.base.errors import ConfigError, DataError
from newskills.base.store import no_folder
from newskills.launch.clusters.config import ClusterConfig
from newskills.launch.machines.ssh import RemoteMachine, shell_of
from newskills.pipelines.options import ClusterOptions
from newskills.pipelines.placement.cluster import ClusterPaths, cluster_of
from newskills.pipelines.placement.packaged_code import PackagedCode

RECORDS = (
    "- *-logs*/",
    "+ */",
    "- *_chunk_*",
    "+ output*.jsonl",
    "+ output*.jsonl.run.json",
    "+ benchmark.json",
    "- *",
)
"""Filter rules of rsync for what a summary reads."""
METRICS = "metrics*.json"
DEPTH = 3
"""Components of the folder's path that are kept: the names of a benchmark, its group, and the folder around them."""


class ResultsPlace(Struct, frozen=True, kw_only=True):
    """A folder of results. `remote`: the machine that has it; None: this one."""

    folder: str
    remote: RemoteMachine | None = None

    @contextlib.contextmanager
    def local_folder(self) -> Iterator[Path]:
        """Yield the folder on this machine, a copy of the records where it lies elsewhere. Raises DataError,
        RemoteError."""
        if self.remote is None:
            if not Path(self.folder).is_dir():
                raise no_folder(Path(self.folder))
            yield Path(self.folder)
            return
        with tempfile.TemporaryDirectory(prefix="newskills-results-") as scratch:
            copy = Path(scratch, *Path(self.folder).parts[1:][-DEPTH:])
            self.remote.get_some(self.folder, copy, RECORDS)
            yield copy

    def send_metrics(self, copy: Path) -> None:
        """Send the metrics that were written into `copy` to where the records are. Raises StorageError, RemoteError."""
        if self.remote is None:
            return
        with tempfile.TemporaryDirectory(prefix="newskills-metrics-") as scratch:
            for file in copy.rglob(METRICS):
                target = Path(scratch, file.relative_to(copy))
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(file, target)
            self.remote.put(Path(scratch), self.folder)

    def list_records(self) -> list[tuple[str, str]]:
        """List (path, bytes) of the remote records. Raises DataError, RemoteError."""
        if self.remote is None:
            return []
        tests = ["-name", "output*.jsonl", "!", "-name", "*_chunk_*", "!", "-path", "*-logs*/*"]
        listing = self.remote.run(["find", self.folder, "-type", "f", *tests, "-printf", "%p\\t%s\\n"])
        if listing.code != 0:
            raise DataError(f"There is no folder {self.folder} on {self.remote.name}.")
        rows = [line.rpartition("\t") for line in sorted(listing.out.splitlines())]
        return [(path, size) for path, _, size in rows]


def results_place(results_dir: str, options: ClusterOptions) -> ResultsPlace:
    """Return where the results are that jobs of `--cluster` know as `results_dir`. Raises ConfigError,
    UnknownNameError."""
    cluster = cluster_of(options)
    if cluster.ssh_tunnel is None:
        if os.path.isabs(results_dir):
            results_dir = _path_on_host(results_dir, cluster)
        return ResultsPlace(folder=results_dir)
    if not os.path.isabs(results_dir):
        raise ConfigError(f"{results_dir}: give an absolute path of cluster '{cluster.name}'.")
    remote = shell_of(cluster, os.environ)
    assert isinstance(remote, RemoteMachine)
    return ResultsPlace(folder=_path_on_host(results_dir, cluster), remote=remote)


def _path_on_host(path: str, cluster: ClusterConfig) -> str:
    contained = bool(cluster.containers)
    paths = ClusterPaths(cluster=cluster, contained=contained, packaged=PackagedCode(cluster))
    return paths.host_path(os.path.normpath(path))
