# SPDX-License-Identifier: Apache-2.0
"""Folders as tar archives on their way into and out of environments."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import IO

from newskills.base.errors import DataError


def pack_folder(source: Path, archive: IO[bytes]) -> None:
    """As an archive of root's files. Raises DataError."""

    def of_root(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        return member

    try:
        with tarfile.open(fileobj=archive, mode="w") as packed:
            packed.add(source, arcname=".", filter=of_root)
            end = packed.offset + 2 * tarfile.BLOCKSIZE
        archive.truncate(end)  # podman stops to read there, and has been seen to fail over zeros that follow
    except OSError as error:
        raise DataError(f"{source} cannot be read: {error.strerror or error}.") from error
    archive.seek(0)


def unpack_folder(archive: IO[bytes], target: Path, source: str, max_bytes: int) -> None:
    """What a model left there: no links out of the folder, no devices, no more than `max_bytes`. Raises DataError."""
    archive.seek(0)
    size = 0
    try:
        with tarfile.open(fileobj=archive) as packed:
            for member in packed:
                size += member.size
                if size > max_bytes:
                    raise DataError(f"{source} holds more than {max_bytes:,} bytes.")
                packed.extract(member, target, filter="data")
    except (tarfile.TarError, OSError) as error:
        raise DataError(f"{source} cannot be copied: {error}.") from error
