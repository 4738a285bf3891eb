# SPDX-License-Identifier: Apache-2.0
"""Where prepared data lies. Apart from what prepares it, so that lists load little."""

from __future__ import annotations

import os
from pathlib import Path


def data_dir(folder: str | Path | None = None) -> Path:
    """Where prepared data lies: `folder`, `NEWSKILLS_DATA_DIR`, `NEMO_SKILLS_DATA_DIR`, or `data` in the cache folder.

    The cache folder is `NEWSKILLS_CACHE`, or the one the system has for the user.
    """
    chosen = folder or os.environ.get("NEWSKILLS_DATA_DIR") or os.environ.get("NEMO_SKILLS_DATA_DIR")
    if chosen:
        return Path(chosen).expanduser()
    if cache := os.environ.get("NEWSKILLS_CACHE"):
        return Path(cache).expanduser() / "data"
    from platformdirs import user_cache_path

    return user_cache_path("newskills", appauthor=False) / "data"


def folder_of(name: str, root: Path) -> Path:
    """`<root>/<name>`; dots in the name become sub-folders."""
    return root / name.replace(".", "/")


def check_file(rows: Path, benchmark: str, *, shared: bool) -> Path:
    """The record of the check of `benchmark` on the prepared file `rows`, which it may share with another."""
    return rows.with_name(f"{rows.name}.{benchmark}.check.json" if shared else f"{rows.name}.check.json")
