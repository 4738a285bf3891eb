# SPDX-License-Identifier: Apache-2.0
"""What the package depends on: newskills of its own version."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class SameVersion(MetadataHookInterface):
    """Takes the version from the package, so that it stands in one place."""

    def update(self, metadata: dict[str, Any]) -> None:
        text = Path(self.root, "src/newskills_evaluator/_version.py").read_text(encoding="utf-8")
        version = re.search(r'__version__ = "([^"]+)"', text)
        assert version is not None
        metadata["dependencies"] = [f"newskills=={version[1]}"]
