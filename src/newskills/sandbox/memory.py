# SPDX-License-Identifier: Apache-2.0
"""How much memory the machine has left."""

from __future__ import annotations

from pathlib import Path

from newskills.sandbox.inside.budget import FREE_RESERVE


def is_ample(wanted: int) -> bool:
    """Whether `wanted` bytes, but never more than half of the machine's, are free beside what is kept for it."""
    lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    sizes = {name: 1024 * int(value.split()[0]) for name, _, value in (line.partition(":") for line in lines)}
    return sizes["MemAvailable"] - FREE_RESERVE >= min(wanted, sizes["MemTotal"] // 2)
