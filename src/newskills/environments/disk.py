# SPDX-License-Identifier: Apache-2.0
"""How much commands write in the containers of a run, asked of the engine as seldom as can be."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

LOOK_EVERY = 0.5
SHARE = 16
"""Files are counted where the disk has lost this part of what may be written."""
WrittenFiles = Callable[[], Awaitable[Path | None]]
"""Asks for the folder of this machine with what was written in a container."""


class Storage:
    """The disk on which the engine of a run keeps its containers. Any of them tells where that is."""

    def __init__(self, limit: int) -> None:
        """Create the limit: bytes that may be written in a container; 0 for any number."""
        self.limit = limit
        self._place: Path | None = None
        self._is_known = not limit
        self._asking = asyncio.Lock()

    async def find(self, written: WrittenFiles) -> None:
        """Find the place of written files, once. Raises what `written` raises."""
        async with self._asking:
            if not self._is_known:
                folder = await written()
                self._place = folder.parents[1] if folder is not None else None  # <place>/<container>/<folder>
                self._is_known = True

    def free(self) -> int | None:
        """Return the free bytes; None where they are not known, or nothing is bounded."""
        if self._place is not None:
            return shutil.disk_usage(self._place).free
        return None


class DiskWatch:
    """Of one container: its files are only counted while the disk fills up, whichever of its commands does so."""

    def __init__(self, storage: Storage, written: WrittenFiles, least: int = 0) -> None:
        """Create the watch; `least`: bytes that this container needs, where the others may write less."""
        self._storage, self._written = storage, written
        self._folder: Path | None = None
        self._free: int | None = None
        self._limit = max(storage.limit, least)
        self._most = self._limit
        self._step = self._limit // SHARE
        self._is_full = False

    async def begin(self) -> None:
        """Begin to watch: note the free space of the disk with the container's files. Raises what asking for its files
        raises."""
        await self._storage.find(self._find_folder)
        self._free = self._storage.free()

    async def until_full(self) -> None:
        """Return when more was written than may be; never where that cannot be known. Raises as `begin`."""
        if self._is_full:  # what an earlier command has left is no fault of this one
            self._most, self._is_full = self._step + max(self._limit, await self._size()), False
            self._free = self._storage.free()
        while (free := self._storage.free()) is not None and self._free is not None:
            if free <= self._free - self._step:
                self._free = free
                size = await self._size()
                if size > self._most:
                    self._is_full = True
                    return
                self._most = max(self._limit, min(self._most, self._step + size))
            self._free = max(self._free, free)
            await asyncio.sleep(LOOK_EVERY)
        await asyncio.Event().wait()

    async def _size(self) -> int:
        folder = await self._find_folder()
        if folder is not None:
            return await asyncio.to_thread(_folder_bytes, folder)
        return 0

    async def _find_folder(self) -> Path | None:
        if self._folder is None:
            self._folder = await self._written()
        return self._folder


def _folder_bytes(folder: Path) -> int:
    """Return the bytes on disk below `folder`."""
    total, places = 0, [str(folder)]
    while places:
        with contextlib.suppress(OSError), os.scandir(places.pop()) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    total += entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        places.append(entry.path)
    return total
