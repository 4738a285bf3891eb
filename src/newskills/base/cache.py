# SPDX-License-Identifier: Apache-2.0
"""Where newskills keeps what it can fetch or make again."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the folder `NEWSKILLS_CACHE`, or the one that the system has for the user's caches."""
    if chosen := environ.get("NEWSKILLS_CACHE"):
        return Path(chosen).expanduser()
    from platformdirs import user_cache_path

    return user_cache_path("newskills", appauthor=False)


def data_dir(folder: str | Path | None = None) -> Path:
    """Return where prepared data lies: `folder`, `NEWSKILLS_DATA_DIR`, `NEMO_SKILLS_DATA_DIR`, or `data` in the
    cache folder.

    The cache folder is `NEWSKILLS_CACHE`, or the one the system has for the user.
    """
    chosen = folder or os.environ.get("NEWSKILLS_DATA_DIR") or os.environ.get("NEMO_SKILLS_DATA_DIR")
    if chosen:
        return Path(chosen).expanduser()
    return cache_folder() / "data"
