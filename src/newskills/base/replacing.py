# SPDX-License-Identifier: Apache-2.0
"""Files that are written beside their place and take it in one step. Standard library only.

While a process writes one it holds a lock on it, so that others can tell what a killed process has left.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import re
from collections.abc import Container, Iterator
from pathlib import Path
from typing import IO

_TEMPORARY = re.compile(r"\.(?P<name>.+)\.\d+\.tmp\Z", re.DOTALL | re.ASCII)


@contextlib.contextmanager
def replacing_file(path: Path, *, durable: bool = True) -> Iterator[IO[bytes]]:
    """Yield a binary file that replaces `path` on success and leaves no trace on failure; make the folder.

    `durable`: it is on the disk when this returns. Raises OSError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    for left in _left_in(path.parent).pop(path.name, ()):
        _remove_file(left)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with _open_locked(temporary) as file:
            yield file
            file.flush()
            if durable:
                os.fsync(file.fileno())
            temporary.replace(path)
        if durable:
            sync_folder(path.parent)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


def remove_abandoned(folder: Path, names: Container[str]) -> None:
    """Delete what killed processes have left of files called `names` that they were writing in `folder`."""
    for name, leftovers in _temporary_files(folder).items():
        if name in names:
            for left in leftovers:
                _remove_file(left)


def sync_folder(folder: Path) -> None:
    """Write the names in `folder` to the disk: they survive a power cut from here on. Raises OSError."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


@functools.lru_cache(maxsize=256)
def _left_in(folder: Path) -> dict[str, list[Path]]:
    """Return the temporary files in `folder`, looked up once: a folder may have thousands of files, and what is left
    there comes from earlier processes."""
    return _temporary_files(folder)


def _temporary_files(folder: Path) -> dict[str, list[Path]]:
    temporaries: dict[str, list[Path]] = {}
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if (match := _TEMPORARY.match(entry.name)) is not None:
                temporaries.setdefault(match["name"], []).append(Path(entry.path))
    return temporaries


def _open_locked(temporary: Path) -> IO[bytes]:
    while True:
        file = temporary.open("wb", buffering=1 << 20)
        with contextlib.suppress(OSError):  # some file systems have no locks: there, nothing is ever removed
            fcntl.flock(file, fcntl.LOCK_EX)
        if os.fstat(file.fileno()).st_nlink:
            return file
        file.close()  # taken for abandoned before it was locked


def _remove_file(left: Path) -> None:
    """Remove a file, unless somebody holds it."""
    with contextlib.suppress(OSError), left.open("r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        left.unlink()
