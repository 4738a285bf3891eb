# SPDX-License-Identifier: Apache-2.0
"""How many GPUs a process on this machine may use."""

from __future__ import annotations

import os
import re
from pathlib import Path


def visible_gpus() -> int:
    """Counts NVIDIA GPUs without loading a driver library; honours CUDA_VISIBLE_DEVICES."""
    present = [p for p in Path("/dev").glob("nvidia*") if re.fullmatch(r"nvidia\d+", p.name)]
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    if chosen is None:
        return len(present)
    wanted = [part for part in chosen.split(",") if part.strip() not in ("", "-1")]
    return min(len(wanted), len(present))
