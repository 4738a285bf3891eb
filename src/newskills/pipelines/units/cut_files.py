# SPDX-License-Identifier: Apache-2.0
"""Finished files that were cut since, seen from where jobs are submitted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from newskills.launch.machines.shell import Shell
from newskills.pipelines.placement.cluster import ClusterPaths
from newskills.run.planning.spec import Unit

_SIZES = 'while IFS= read -r file; do stat -c %s -- "$file" 2>/dev/null || echo -1; done'
"""Prints the size of each file that is named on its stdin; -1 for one that is not there."""


class _ExitRecord(msgspec.Struct):
    """What an exit record tells of the final file: bytes; 0 = not known."""

    size: int = 0


def cut_files(units: Sequence[Unit], paths: ClusterPaths, shell: Shell) -> set[Path]:
    """Return the files of finished units that have another size than their exit records say, or are empty; in two
    trips.

    The job itself counts the rows, and has nothing to do where they are all there.
    """
    if not units:
        return set()
    texts = shell.read([paths.host_path(str(unit.paths.state)) for unit in units])
    wanted = _recorded_sizes(units, texts)
    sizes = shell.run(["bash", "-c", _SIZES], stdin="".join(f"{paths.host_path(str(path))}\n" for path in wanted))
    there = zip(wanted.items(), map(int, sizes.out.split()), strict=False)
    return {path for (path, size), now in there if now == 0 or (now > 0 and 0 < size != now)}


def _recorded_sizes(units: Sequence[Unit], texts: Sequence[str | None]) -> Mapping[Path, int]:
    """Return file → bytes that it had in the end, a merged one those of all its chunks; 0 if unknown."""
    parts: dict[Path, list[int]] = {}
    chunks: dict[Path, int] = {}
    for unit, text in zip(units, texts, strict=True):
        parts.setdefault(unit.merged, []).append(_recorded_size(text))
        chunks[unit.merged] = unit.config.num_chunks or 1
    known_sizes = {path: sum(sizes) for path, sizes in parts.items() if len(sizes) == chunks[path] and all(sizes)}
    return dict.fromkeys(parts, 0) | known_sizes


def _recorded_size(text: str | None) -> int:
    try:
        return msgspec.json.decode(text or "{}", type=_ExitRecord).size
    except msgspec.MsgspecError:
        return 0
