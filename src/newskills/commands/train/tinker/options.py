# SPDX-License-Identifier: Apache-2.0
"""Options of `ns tinker rl` and `ns tinker sft`."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from newskills.pipelines.options import DryRun, doc


class Options(Struct, frozen=True, kw_only=True):
    data_dir: Annotated[str | None, doc("folder of prepared data")] = None
    dry_run: DryRun = False
