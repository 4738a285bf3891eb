# SPDX-License-Identifier: Apache-2.0
"""The options of `ns validate`."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from newskills.environments.config import EnvironmentConfig
from newskills.pipelines.options import DryRun, doc


class ValidateOptions(Struct, frozen=True, kw_only=True):
    benchmarks: Annotated[
        list[str],
        doc(
            "names, groups, or your own files; `all` = every benchmark whose data is on this machine or in "
            "the mirror",
            {"positional": True},
        ),
    ] = []
    category: Annotated[str | None, doc("with `all`: only benchmarks of these categories, comma separated")] = None
    data_dir: Annotated[
        str | None, doc("folder of prepared data (default: NEMO_SKILLS_DATA_DIR, or the user's cache)")
    ] = None
    mirror: Annotated[str | None, doc("folder of an offline mirror (default: NEWSKILLS_MIRROR)")] = None
    offline: Annotated[bool | None, doc("never use the network")] = None
    extra_benchmark_map: Annotated[
        str | None, doc("JSON file that maps names to folders with more benchmarks")
    ] = None
    max_samples: Annotated[
        Annotated[int, Meta(ge=-1)] | None,
        doc("rows per benchmark whose replies are graded; -1 = all (default: 200; 25 where code is run)"),
    ] = None
    json: Annotated[str | None, doc("file for all findings, as a JSON list")] = None
    dry_run: DryRun = False


class ValidateKeys(Struct, frozen=True, kw_only=True):
    """`++` keys of `ns validate`."""

    environment: EnvironmentConfig = EnvironmentConfig()
