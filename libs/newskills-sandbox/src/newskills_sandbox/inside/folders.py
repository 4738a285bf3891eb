# SPDX-License-Identifier: Apache-2.0
"""Folders that hostile code has filled: nested deeper than a path is long or a stack is high, closed to their owner."""

from __future__ import annotations

import contextlib
import os
import tempfile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_LONGEST = 4000  # of a path that the kernel takes, less a name
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def below(folder: str) -> Iterator[os.stat_result]:
    """List all that is in `folder` and its folders; links are not followed."""
    folders = [folder]
    while folders:
        path = folders.pop()
        with contextlib.suppress(OSError), _open_folder(path) as descriptor, os.scandir(descriptor) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    yield entry.stat(follow_symlinks=False)
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(f"{path}/{entry.name}")


def remove(folder: str) -> None:
    """Remove `folder` and all that is in it, as far as this user may. Nobody may write into it any more."""
    clear(folder)
    with contextlib.suppress(OSError):
        os.rmdir(folder)


def clear(folder: str) -> None:
    """Remove all that is in `folder`, which stays. Folders in others are moved up before they are emptied, so no path
    is long."""
    try:
        moved = tempfile.mkdtemp(dir=folder)
        folders = [path for path in _unlink_files(folder) if path != moved]
    except OSError:
        return
    count = 0
    while folders:
        path = folders.pop()
        with contextlib.suppress(OSError):
            for inner in _unlink_files(path):
                count += 1
                os.chmod(inner, 0o700)
                os.rename(inner, f"{moved}/{count}")
                folders.append(f"{moved}/{count}")
        with contextlib.suppress(OSError):
            os.rmdir(path)
    with contextlib.suppress(OSError):
        os.rmdir(moved)


def _unlink_files(folder: str) -> list[str]:
    """Remove everything but folders from `folder`, and return the paths of its folders. Raises OSError."""
    folders = []
    os.chmod(folder, 0o700)
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)
            else:
                with contextlib.suppress(OSError):
                    os.unlink(entry.path)
    return folders


@contextlib.contextmanager
def _open_folder(path: str) -> Iterator[int]:
    """Yield a descriptor of the folder; a folder that is closed to its owner is opened for it. Raises OSError."""
    with contextlib.ExitStack() as stack:
        place: int | None = None
        while len(path) > _LONGEST:
            cut = path.rindex("/", 0, _LONGEST)
            place = os.open(path[:cut], _OPEN, dir_fd=place)
            stack.callback(os.close, place)
            path = path[cut + 1 :]
        try:
            descriptor = os.open(path, _OPEN, dir_fd=place)
        except PermissionError:
            os.chmod(path, 0o700, dir_fd=place)
            descriptor = os.open(path, _OPEN, dir_fd=place)
        stack.callback(os.close, descriptor)
        yield descriptor
