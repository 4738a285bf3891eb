# SPDX-License-Identifier: Apache-2.0
"""Folders as tar archives on their way into and out of environments."""

from __future__ import annotations

import copy
import os
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from newskills.base.errors import DataError


def pack_folder(source: Path, archive: IO[bytes]) -> None:
    """Pack what is in a folder as an archive of root's files. Raises DataError.

    The folder itself is no member, but where it is empty: its mode would become that of the folder that it is unpacked
    in, such as /tmp.
    """

    try:
        with tarfile.open(fileobj=archive, mode="w") as packed:
            for name in sorted(os.listdir(source)) or ["."]:
                packed.add(source / name, arcname=name, filter=_of_root)
            end = packed.offset + 2 * tarfile.BLOCKSIZE
        archive.truncate(end)  # podman stops to read there, and has been seen to fail over zeros that follow
    except OSError as error:
        raise DataError(f"{source} cannot be read: {error.strerror or error}.") from error
    archive.seek(0)


def pack_files(files: Mapping[str, str], archive: IO[bytes]) -> None:
    """Pack files and folders (place here → place inside) as root's. Scripts may be executed, whatever their modes are
    here: prepared data keeps the bytes of files alone. Raises DataError."""

    try:
        with tarfile.open(fileobj=archive, mode="w") as packed:
            for source, target in files.items():
                root = Path(source)
                for path in sorted(root.rglob("*")) if root.is_dir() else [root]:
                    member = packed.gettarinfo(str(path), str(Path(target.lstrip("/"), path.relative_to(root))))
                    if not member.isreg():
                        packed.addfile(_of_root(member))
                        continue
                    with path.open("rb") as opened:
                        member.mode = 0o755 if opened.peek(2)[:2] == b"#!" else 0o644
                        packed.addfile(_of_root(member), opened)
            end = packed.offset + 2 * tarfile.BLOCKSIZE
        archive.truncate(end)
    except OSError as error:
        raise DataError(f"A file of the task cannot be read: {error}.") from error
    archive.seek(0)


def unpack_folder(archive: IO[bytes], target: Path, source: str, max_bytes: int) -> None:
    """Unpack into `target` the archive of a folder that a model left: no links out of the folder, no devices, no more
    than `max_bytes`. Raises DataError."""
    archive.seek(0)
    size = 0
    try:
        with tarfile.open(fileobj=archive) as packed:
            for member in packed:
                size += member.size
                if size > max_bytes:
                    raise DataError(f"{source} holds more than {max_bytes:,} bytes.")
                _extract_member(packed, member, target)
    except (tarfile.TarError, OSError) as error:
        raise DataError(f"{source} cannot be copied: {error}.") from error


def _extract_member(packed: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> None:
    if hasattr(tarfile, "data_filter"):
        packed.extract(member, target, filter="data")
    else:  # Python 3.11.0 to 3.11.3, as Debian 12 has it
        packed.extract(checked_member(member, target), target, set_attrs=not member.issym())


def _of_root(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def checked_member(member: tarfile.TarInfo, target: Path) -> tarfile.TarInfo:
    """Return a copy of `member` as the filter `data` of later versions of tarfile lets it through (PEP 706). Raises
    tarfile.TarError."""
    made = copy.copy(member)
    made.name = member.name.lstrip("/")
    _check_inside(target, made.name)
    if member.issym():
        _check_inside(target, member.linkname, made.name)
    elif member.islnk():
        _check_inside(target, member.linkname)
    elif not (member.isreg() or member.isdir()):
        raise tarfile.ExtractError(f"{member.name!r} is a special file")
    made.mode = member.mode & 0o755 | 0o600 | (0o100 if member.isdir() else 0)
    return made


def _check_inside(target: Path, name: str, link: str = "") -> None:
    place = os.path.realpath(target / os.path.dirname(link) / name)
    root = os.path.realpath(target)
    if os.path.isabs(name) or os.path.commonpath((place, root)) != root:
        raise tarfile.ExtractError(f"{(link or name)!r} leads out of the folder")
