# SPDX-License-Identifier: Apache-2.0
"""Limits that the system sets to this process: open files, address space, processes."""

from __future__ import annotations

import contextlib
import os
import resource
from collections.abc import Iterator
from pathlib import Path


def allow_open_files(wanted: int = 0) -> None:
    """Raise the soft limit of open files to the hard one, or to `wanted` where that is less.

    The usual soft limit of 1,024 is soon used up by a socket for each request.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = hard == resource.RLIM_INFINITY
    if not wanted:
        limit = hard
    elif unlimited:
        limit = wanted
    else:
        limit = min(hard, wanted)
    if soft != resource.RLIM_INFINITY and (limit == resource.RLIM_INFINITY or soft < limit):
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))


def count_files_left() -> int | None:
    """Return how many files this process may still open; None: no limit."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return None
    return max(0, soft - len(os.listdir("/proc/self/fd")))


def describe_limits() -> str:
    """Return the limits that may keep processes from starting, as `address space 390 MiB (ulimit -v)`; else nothing."""
    return ", ".join(_limit_texts())


def _limit_texts() -> Iterator[str]:
    space, _ = resource.getrlimit(resource.RLIMIT_AS)
    if space != resource.RLIM_INFINITY:
        yield f"address space {space >> 20:,} MiB (ulimit -v)"
    data, _ = resource.getrlimit(resource.RLIMIT_DATA)
    if data != resource.RLIM_INFINITY:
        yield f"data {data >> 20:,} MiB (ulimit -d)"
    processes, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    if processes != resource.RLIM_INFINITY and processes < 1000:
        yield f"{processes:,} processes (ulimit -u)"
    for value, file in _group_limits():
        yield f"{value} ({file} of the control group)"


def _group_limits() -> Iterator[tuple[str, str]]:
    """Yield (value, file) of limits of this process's control groups, of either version of the interface."""
    root = Path("/sys/fs/cgroup")
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text("utf-8").splitlines():
            _, controllers, group = line.split(":", 2)
            for file in ("pids.max", "memory.max"):
                with contextlib.suppress(OSError):
                    value = (root / controllers / group.lstrip("/") / file).read_text("utf-8").strip()
                    if value.isdigit():
                        yield value, file
