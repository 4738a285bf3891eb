# SPDX-License-Identifier: Apache-2.0
"""Prepared data that jobs do not see where it lies: copied once, to a folder named by its content, beside the code."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Mapping
from functools import cache
from hashlib import blake2b
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from newskills.base.errors import ConfigError, StorageError
from newskills.launch.clusters.config import ClusterConfig
from newskills.launch.experiments import job_root
from newskills.launch.machines.shell import Shell
from newskills.pipelines.notices import print_note

FOLDER = "data"
DATA = "/nemo_run/data"
"""Where containers see what was copied."""
LARGEST = 4 << 30
"""Bytes of one benchmark that are copied unasked."""
_PUBLISH = 'mv -T -- "$1" "$2" 2>/dev/null || { rm -rf -- "$1"; [[ -d $2 ]]; }'


class Shipment(Struct, frozen=True, kw_only=True):
    """The folder `source` of this machine, as `place` on the machine that submits, which clients call `seen`."""

    source: str
    place: str
    seen: str
    bytes: int


def describe_shipment(folder: str, cluster: ClusterConfig, *, contained: bool) -> Shipment:
    """Describe how a folder is shipped; nothing is copied yet. Raises ConfigError for a folder that is too large,
    StorageError."""
    digest, size = _folder_digest(folder)
    if size > LARGEST:
        raise ConfigError(
            f"Jobs of cluster '{cluster.name}' do not see {folder}, and it is too large to copy automatically "
            f"({size / 2**30:.1f} GiB).",
            hint=f"Prepare it there: ns prepare_data {Path(folder).name} --cluster={cluster.name} "
            "--data_dir=… (and give the same --data_dir here), or mount it.",
        )
    name = f"{digest}/{Path(folder).name}"
    place = seen = f"{job_root(cluster, os.environ)}/{FOLDER}/{name}"
    if contained:
        seen = f"{DATA}/{name}"
    return Shipment(source=folder, place=place, seen=seen, bytes=size)


def with_mount(cluster: ClusterConfig, shipments: Iterable[Shipment]) -> ClusterConfig:
    """Return `cluster` with mounts that show the shipments to its containers."""
    roots = {str(Path(shipment.place).parents[1]) for shipment in shipments if shipment.seen != shipment.place}
    return replace(cluster, mounts=[*cluster.mounts, *(f"{root}:{DATA}:ro" for root in sorted(roots))])


def copy_shipments(shipments: Mapping[str, Shipment], shell: Shell) -> None:
    """Copy what is not there yet; each folder appears whole. Raises RemoteError, StorageError."""
    wanted = list(shipments.values())
    for shipment, there in zip(wanted, shell.exists([shipment.place for shipment in wanted]), strict=True):
        if there:
            continue
        print_note(
            f"{shipment.source} ({shipment.bytes / 1e6:.1f} MB) is copied to {shipment.place} on {shell.name}, once"
        )
        final = str(Path(shipment.place).parent)
        temporary = f"{Path(final).parent}/.{Path(final).name}.{secrets.token_hex(4)}"
        shell.put(Path(shipment.source), f"{temporary}/{Path(shipment.place).name}")
        if shell.run(["bash", "-c", _PUBLISH, "bash", temporary, final]).code != 0:
            raise StorageError(f"Cannot copy {shipment.source} to {shipment.place} on {shell.name}.")


@cache
def _folder_digest(folder: str) -> tuple[str, int]:
    """Return a digest of the names and contents of its files, hidden ones aside, and their bytes. Raises
    StorageError."""
    whole, size = blake2b(digest_size=12), 0
    try:
        for path in sorted(Path(folder).rglob("*")):
            if path.name.startswith(".") or not path.is_file():
                continue
            whole.update(f"{path.relative_to(folder)}\0{path.stat().st_size}\0".encode("utf-8", "surrogateescape"))
            with path.open("rb") as file:
                while block := file.read(1 << 20):
                    whole.update(block)
                    size += len(block)
    except OSError as error:
        raise StorageError(f"Cannot read {error.filename or folder}: {error.strerror}.") from error
    return whole.hexdigest(), size
