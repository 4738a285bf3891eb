# SPDX-License-Identifier: Apache-2.0
"""Where what can be made again is kept."""

from __future__ import annotations

import os
from pathlib import Path

from newskills_sandbox.variables import CACHE_VARIABLE


def cache_folder() -> Path:
    """Return the folder `NEWSKILLS_CACHE`, or `newskills` among the user's caches."""
    if chosen := os.environ.get(CACHE_VARIABLE):
        return Path(chosen).expanduser()
    caches = os.environ.get("XDG_CACHE_HOME", "")
    folder = caches if caches.strip() else "~/.cache"
    return Path(folder).expanduser() / "newskills"
