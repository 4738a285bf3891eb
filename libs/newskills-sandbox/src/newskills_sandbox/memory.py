# SPDX-License-Identifier: Apache-2.0
"""How much memory the machine, or the control group that this process is in, has left."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from newskills_sandbox.inside.budget import FREE_RESERVE

_GROUPS = Path("/sys/fs/cgroup")
_LIMITS = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)
"""Of both versions of control groups: the limit, what is used, and the field of `memory.stat` that can be freed."""
MAX_RESERVE_BYTES = 4 << 30


def is_ample(wanted: int) -> bool:
    """Return whether `wanted` bytes, but never more than half of what there is, are free beside the usual reserve."""
    free, total = memory_left()
    return free - FREE_RESERVE >= min(wanted, total // 2)


def is_short(reserve_mb: int) -> bool:
    """Return whether less than `reserve_mb` MiB are free; 0: less than an eighth of all, and less than 4 GiB."""
    free, total = memory_left()
    return free < (reserve_mb << 20 or min(MAX_RESERVE_BYTES, total // 8))


def memory_left() -> tuple[int, int]:
    """Return (free bytes, all bytes) of the machine, or of the control group where that has less."""
    lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    sizes = {name: 1024 * int(value.split()[0]) for name, _, value in (line.partition(":") for line in lines)}
    free, total = sizes["MemAvailable"], sizes["MemTotal"]
    for group in _own_groups():
        for limit_file, used_file, field in _LIMITS:
            limit = _read_number(group / limit_file)
            if limit is None or limit >= total:
                continue
            fields = dict(entry.split() for entry in (group / "memory.stat").read_text("ascii").splitlines())
            used = _read_number(group / used_file) or 0
            free, total = min(free, max(0, limit - used + int(fields.get(field, 0)))), limit
    return free, total


@cache
def _own_groups() -> tuple[Path, ...]:
    try:
        lines = Path("/proc/self/cgroup").read_text("utf-8").splitlines()
    except OSError:
        return ()
    parts = [line.split(":", 2) for line in lines]
    return tuple(
        _GROUPS / controllers / group.lstrip("/")
        for _, controllers, group in parts
        if not controllers or "memory" in controllers.split(",")
    )


def _read_number(file: Path) -> int | None:
    """Return the number in a file; None where there is none ("max")."""
    try:
        return int(file.read_text("ascii"))
    except (OSError, ValueError):
        return None
