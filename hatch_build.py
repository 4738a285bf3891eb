# SPDX-License-Identifier: Apache-2.0
"""What the package depends on and what is made for it: in a checkout our libraries come along, in a release each is a
distribution; `_api/__init__.pyi` is made from the options of the commands.

A source distribution names the libraries, and so does each wheel that is built from it: hatchling takes dynamic fields
from its PKG-INFO. A wheel that is built from a checkout holds them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface


class Dependencies(MetadataHookInterface):
    """Takes the dependencies from pyproject.toml; they have to be dynamic so that a release can add to them."""

    def update(self, metadata: dict[str, Any]) -> None:
        metadata["dependencies"] = list(self.config["dependencies"])


class Built(BuildHookInterface[Any]):
    """Makes the signatures of the Python API; a source distribution holds them, and names the libraries, at the version
    of newskills itself, among its dependencies."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        if (root / "apps").is_dir():  # a checkout: signatures are those of all commands
            place = os.pathsep.join(filter(None, [str(root / "src"), os.environ.get("PYTHONPATH")]))
            words = [sys.executable, "-c", "from newskills._api.stub import write_stub; write_stub()"]
            subprocess.run(words, env={**os.environ, "PYTHONPATH": place}, check=True)
        if self.target_name == "sdist":
            names = sorted(path.parent.name for path in root.glob("libs/*/pyproject.toml"))
            build_data["dependencies"] += [f"{name}=={self.metadata.version}" for name in names]
