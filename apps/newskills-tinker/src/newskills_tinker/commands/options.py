# SPDX-License-Identifier: Apache-2.0
"""What the commands of both trainings take beside their keys."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from newskills.pipelines.options import DryRun, doc


class TinkerOptions(Struct, frozen=True, kw_only=True):
    """What `ns tinker rl` and `ns tinker sft` take beside their keys."""

    data_dir: Annotated[str | None, doc("folder of prepared data")] = None
    dry_run: DryRun = False
