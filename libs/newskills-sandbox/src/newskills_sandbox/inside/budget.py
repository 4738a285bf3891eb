# SPDX-License-Identifier: Apache-2.0
"""What a session uses while code runs, and whether that is too much. At isolation level a the kernel counts files and
processes; at the others they are looked for, often enough that what slips through between two looks is small."""

from __future__ import annotations

import contextlib
import os
import stat
import time
from itertools import chain

from newskills_sandbox.inside import folders, processes, root

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from typing import Any

FREE_RESERVE = 256 << 20
"""Memory that the machine keeps: below it, cells that use much are ended; below half of it, all."""
WALK_SHARE = 10
"""Looking at files may take one part in so many of the time."""
_BLOCK = 512  # st_blocks, whatever the file system's own are


class Budget:
    """`meminfo`: descriptor of /proc/meminfo."""

    def __init__(self, settings: dict[str, Any], meminfo: int) -> None:
        self._limits, self._folder = settings["limits"], settings["folder"]
        self._namespaced = settings["isolation_level"] == "a"
        self._meminfo = meminfo
        self._next_walk = 0.0
        self._shares: dict[int, int] = {}

    def exceeded(self, pids: Collection[int]) -> str:
        """Return what is used up: memory, processes or disk; empty while all is well. `pids`: the session's
        processes."""
        if self._too_much_memory(pids):
            return "memory"
        if self._namespaced:
            return ""
        if processes.threads(pids) > self._limits["processes"]:
            return "processes"
        now = time.monotonic()
        if now < self._next_walk:
            return ""
        count, used = self._written_files(pids)
        self._next_walk = now + WALK_SHARE * (time.monotonic() - now)
        if used > self._limits["disk"] or count > self._limits["files"]:
            return "disk"
        return ""

    def clear(self) -> None:
        """Remove the session's files, of which there were too many. Its processes must have ended."""
        folders.clear(self._folder)

    def _too_much_memory(self, pids: Collection[int]) -> bool:
        most = self._limits["memory"]
        used = processes.memory(pids, most, self._shares) + processes.socket_memory(pids) + self._file_bytes()
        free = self._free_bytes()
        if free < FREE_RESERVE // 2:
            return True
        return used > most or (free < FREE_RESERVE and used > most // 4)

    def _file_bytes(self) -> int:
        """Count the bytes of files in memory."""
        if not self._namespaced:
            return 0
        files = os.statvfs(root.HOME)
        return (files.f_blocks - files.f_bfree) * files.f_frsize

    def _free_bytes(self) -> int:
        for line in os.pread(self._meminfo, 4096, 0).splitlines():
            if line.startswith(b"MemAvailable:"):
                return int(line.split()[1]) * 1024
        return FREE_RESERVE

    def _written_files(self, pids: Collection[int]) -> tuple[int, int]:
        """Return number and bytes of the session's files, including those that are open but have no name any more;
        counting stops above the limit of files."""
        count = used = 0
        for each in chain(folders.below(self._folder), _nameless_files(pids)):
            count += 1
            used += each.st_blocks * _BLOCK
            if count > self._limits["files"]:
                break
        return count, used


def _nameless_files(pids: Collection[int]) -> Iterator[os.stat_result]:
    seen = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            for name in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    status = os.stat(f"/proc/{pid}/fd/{name}")
                    if stat.S_ISREG(status.st_mode) and status.st_nlink == 0 and status.st_ino not in seen:
                        seen.add(status.st_ino)
                        yield status
