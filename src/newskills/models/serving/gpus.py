# SPDX-License-Identifier: Apache-2.0
"""How many GPUs a process on this machine may use."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from newskills.base.errors import ConfigError

VISIBLE = "CUDA_VISIBLE_DEVICES"


def visible_gpus() -> int:
    """Count NVIDIA GPUs without loading a driver library; CUDA_VISIBLE_DEVICES is honoured."""
    present = [p for p in Path("/dev").glob("nvidia*") if re.fullmatch(r"nvidia\d+", p.name)]
    chosen = os.environ.get(VISIBLE)
    if chosen is None:
        return len(present)
    wanted = [part for part in chosen.split(",") if part.strip() not in ("", "-1")]
    return min(len(wanted), len(present))


def gpu_shares(wanted: Mapping[str, int]) -> dict[str, dict[str, str]]:
    """Return name of a server → variables that give it GPUs of its own, where several servers `wanted` some.

    Raises ConfigError where there are too few.
    """
    if sum(count > 0 for count in wanted.values()) < 2:
        return {name: {} for name in wanted}
    chosen = os.environ.get(VISIBLE)
    if chosen is None:
        devices = [str(n) for n in range(visible_gpus())]
    else:
        devices = chosen.split(",")[: visible_gpus()]
    if sum(wanted.values()) > len(devices):
        raise ConfigError(
            f"The servers need {sum(wanted.values())} GPUs together, but this machine has {len(devices)} for "
            "them.",
            hint="Give fewer --server_gpus, or --server_address of running servers.",
        )
    shares = {}
    for name, count in wanted.items():
        shares[name] = {VISIBLE: ",".join(devices[:count])} if count else {}
        devices = devices[count:]
    return shares
