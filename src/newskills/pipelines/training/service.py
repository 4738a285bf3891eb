# SPDX-License-Identifier: Apache-2.0
"""What trainings at a Tinker service return."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from newskills.base.records import Row


class ServiceTraining(Struct, frozen=True, kw_only=True):
    """A training that is done. The weights stay at the service: `sampler_path` and `state_path` are their addresses
    (`tinker://…`), the last of `checkpoints`, a file; `metrics` are those of the last step."""

    checkpoints: Path
    sampler_path: str
    state_path: str
    metrics: Row
