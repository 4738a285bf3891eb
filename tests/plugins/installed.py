# SPDX-License-Identifier: Apache-2.0
"""The distribution of docs/examples/plug-in, installed as pip would: its package, and its entry points in metadata."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "docs/examples/plug-in"


def metadata(folder: Path) -> Path:
    """Write what pip writes of the distribution into `folder`, which is then one that Python looks for packages in."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    info = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n", encoding="utf-8"
    )
    lines = [
        line
        for group, points in project["entry-points"].items()
        for line in (f"[{group}]", *(f"{name} = {place}" for name, place in points.items()))
    ]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def variables(folder: Path) -> dict[str, str]:
    """The environment of a command that has the distribution; `folder` as of `metadata`."""
    places = (str(folder), str(EXAMPLE), os.environ.get("PYTHONPATH", ""))
    return {"PYTHONPATH": os.pathsep.join(place for place in places if place)}
