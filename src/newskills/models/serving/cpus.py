# SPDX-License-Identifier: Apache-2.0
"""How many threads an inference engine may use on this machine."""

from __future__ import annotations

import os
from pathlib import Path

SYSFS = Path("/sys/devices/system/cpu")
CGROUP = Path("/sys/fs/cgroup")


def usable_cores(sysfs: Path = SYSFS, cgroup: Path = CGROUP) -> int:
    """Return the number of physical cores that this process may run on, at least 1.

    CPU affinity, hardware threads that share a core (they also share its arithmetic units), and a container's CPU
    quota (cgroup v2 `cpu.max`, v1 `cpu.cfs_quota_us`) are taken into account.
    """
    if hasattr(os, "sched_getaffinity"):
        allowed = os.sched_getaffinity(0)
    else:
        allowed = set(range(os.cpu_count() or 1))
    cores = {_sibling_threads(cpu, sysfs) for cpu in allowed}
    return max(1, min(len(cores), _quota_cpus(cgroup) or len(cores)))


def _sibling_threads(cpu: int, sysfs: Path) -> str:
    """Return the hardware threads of `cpu`'s core, as the kernel writes them: equal texts, equal core."""
    try:
        return (sysfs / f"cpu{cpu}/topology/thread_siblings_list").read_text().strip()
    except OSError:
        return str(cpu)


def _quota_cpus(cgroup: Path) -> int | None:
    """Return the CPUs of the quota, rounded up; None where no quota can be read."""
    try:
        quota, period = (cgroup / "cpu.max").read_text().split()[:2]
    except (OSError, ValueError):
        try:
            quota = (cgroup / "cpu/cpu.cfs_quota_us").read_text().strip()
            period = (cgroup / "cpu/cpu.cfs_period_us").read_text().strip()
        except OSError:
            return None
    if not quota.isdigit() or not period.isdigit():
        return None
    return max(1, -(-int(quota) // int(period)))
