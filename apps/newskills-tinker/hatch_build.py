# SPDX-License-Identifier: Apache-2.0
"""What the package depends on: newskills of its own version, and what pyproject.toml adds."""

from __future__ import annotations

from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class SameVersion(MetadataHookInterface):
    """Takes the version from the package, so that it stands in one place."""

    def update(self, metadata: dict[str, Any]) -> None:
        metadata["dependencies"] = [f"newskills=={metadata['version']}", *self.config.get("dependencies", [])]
