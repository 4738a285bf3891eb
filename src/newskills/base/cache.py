# SPDX-License-Identifier: Apache-2.0
"""Where newskills keeps what it can fetch or make again."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """`NEWSKILLS_CACHE`, or the folder that the system has for the user's caches."""
    if chosen := environ.get("NEWSKILLS_CACHE"):
        return Path(chosen).expanduser()
    from platformdirs import user_cache_path

    return user_cache_path("newskills", appauthor=False)
