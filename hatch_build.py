# SPDX-License-Identifier: Apache-2.0
"""What the package depends on: in a checkout our libraries come along, in a release each is a distribution.

A source distribution names the libraries, and so does each wheel that is built from it: hatchling takes dynamic fields
from its PKG-INFO. A wheel that is built from a checkout holds them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface


class Dependencies(MetadataHookInterface):
    """Takes the dependencies from pyproject.toml; they have to be dynamic so that a release can add to them."""

    def update(self, metadata: dict[str, Any]) -> None:
        metadata["dependencies"] = list(self.config["dependencies"])


class LibrariesApart(BuildHookInterface[Any]):
    """Adds the libraries, at the version of newskills itself, to the dependencies of a source distribution."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        names = sorted(path.parent.name for path in Path(self.root).glob("libs/*/pyproject.toml"))
        build_data["dependencies"] += [f"{name}=={self.metadata.version}" for name in names]
