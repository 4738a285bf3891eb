# SPDX-License-Identifier: Apache-2.0
"""The folders that a viewer was given, and the promise that nothing outside of them is read."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from newskills.base.errors import DataError
from newskills.base.store import no_folder

KEPT_FOLDER = ".view"
"""Beside the records: what the viewer keeps of them."""


class Folders:
    """What may be read: files whose real path, all symbolic links followed, lies in one of `given`."""

    def __init__(self, places: Sequence[Path]) -> None:
        """Take the folders, without those that lie in another one. Raises DataError for what is no folder."""
        for folder in places:
            if not folder.is_dir():
                raise no_folder(folder, "Name a folder that `ns eval`, `ns quickstart` or a training has written.")
        roots = [folder.resolve() for folder in places]
        self.roots = tuple(
            root
            for number, root in enumerate(roots)
            if root not in roots[:number]
            and not any(root != other and root.is_relative_to(other) for other in roots)
        )

    def holds(self, path: Path) -> bool:
        """Return whether `path`, wherever its links lead, lies in a given folder."""
        try:
            real = path.resolve(strict=True)
        except (OSError, RuntimeError, ValueError):
            return False
        return any(real.is_relative_to(root) for root in self.roots)

    def open(self, path: Path) -> IO[bytes]:
        """Open a file to read its bytes. Raises DataError for a file outside of the given folders, or one that cannot
        be read."""
        if not self.holds(path):
            raise DataError(f"{path} is not in the folders that are shown.")
        try:
            file = path.open("rb", buffering=1 << 20)
        except OSError as error:
            raise DataError(f"Cannot read {path}: {error.strerror}.") from error
        if os.path.isdir("/proc/self/fd"):
            real = Path(os.path.realpath(f"/proc/self/fd/{file.fileno()}"))
        else:
            real = None
        if real is not None and not any(real.is_relative_to(root) for root in self.roots):
            file.close()
            raise DataError(f"{path} is not in the folders that are shown.")
        return file

    def read(self, path: Path, most: int) -> bytes:
        """Return the first `most` bytes. Raises DataError."""
        with self.open(path) as file:
            return file.read(most)

    def name(self, path: Path) -> str:
        """Return `path` as readers know it: below the given folder, with that folder's name where there are
        several."""
        for root in self.roots:
            if path.is_relative_to(root):
                below = path.relative_to(root)
                if len(self.roots) > 1 or not below.parts:
                    parts = (root.name, *below.parts)
                else:
                    parts = below.parts
                return "/".join(parts)
        return path.name
