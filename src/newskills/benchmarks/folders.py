# SPDX-License-Identifier: Apache-2.0
"""Where prepared data lies. Apart from what prepares it, so that lists load little."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from newskills.base.cache import data_dir

__all__ = ["PreparedFile", "check_file", "data_dir", "folder_of", "prepared_files"]

_META = ".meta.json"
_RECORD = f".jsonl{_META}"
"""Of a prepared split, beside its rows."""


def folder_of(name: str, root: Path) -> Path:
    """Return the folder `<root>/<name>`; dots in the name become sub-folders."""
    return root / name.replace(".", "/")


class PreparedFile(NamedTuple):
    """A split that is prepared: its rows lie in `<root>/<name>/<split>.jsonl`."""

    name: str
    split: str
    rows: int


def prepared_files(root: Path) -> list[PreparedFile]:
    """Return what has been prepared below `root`, by name; records that cannot be read are left out."""
    files = []
    for folder, names, members in os.walk(root):
        names[:] = [name for name in names if name != "assets" and not name.startswith(".")]
        for member in members:
            if member.endswith(_RECORD) and member.removesuffix(_META) in members:
                name = os.path.relpath(folder, root).replace(os.sep, ".")
                if (rows := _row_count(Path(folder, member))) is not None:
                    files.append(PreparedFile(name, member.removesuffix(_RECORD), rows))
    return sorted(files)


def _row_count(record: Path) -> int | None:
    import json

    try:
        return int(json.loads(record.read_bytes())["rows"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def check_file(rows: Path, benchmark: str, *, shared: bool) -> Path:
    """Return the path of the record of the check of `benchmark` on the prepared file `rows`, which it may share with
    another."""
    return rows.with_name(f"{rows.name}.{benchmark}.check.json" if shared else f"{rows.name}.check.json")
