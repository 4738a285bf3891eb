# SPDX-License-Identifier: Apache-2.0
"""The chunks that several processes share, told in a few lines however many they are."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Sequence

from msgspec.structs import replace

from newskills.run.planning.spec import RunSpec, Unit
from newskills.run.records.paths import OutputPaths, chunk_path

Ranges = tuple[tuple[int, int], ...]
"""Chunks of one file: (first, behind the last) of each row of neighbours."""


class ChunkQueue:
    """Units by their place, in the order of the files; a unit is made when it is asked for.

    A spec that names each unit, as earlier versions wrote it, is a queue of them.
    """

    def __init__(self, spec: RunSpec) -> None:
        self.first = spec.first
        self._runs: list[tuple[Unit, int | None]] = []
        sizes = []
        each: list[Ranges] = [*spec.chunks, *[()] * (len(spec.units) - len(spec.chunks))]
        for unit, ranges in zip(spec.units, each, strict=True):
            for begin, end in ranges:
                self._runs.append((unit, begin))
                sizes.append(end - begin)
            if not ranges:
                self._runs.append((unit, unit.config.chunk_id))
                sizes.append(1)
        self._ends = list(itertools.accumulate(sizes))

    def __len__(self) -> int:
        if self._ends:
            return self._ends[-1]
        return 0

    def __getitem__(self, place: int) -> Unit:
        unit, chunk = self._at(place)
        if chunk is None:
            return unit
        return replace(unit, config=replace(unit.config, chunk_id=chunk))

    def name(self, place: int) -> str:
        """Return the name of the unit at this place."""
        return self._at(place)[0].name

    def paths(self, place: int) -> OutputPaths:
        """Return the output paths of the unit at this place."""
        unit, chunk = self._at(place)
        output = unit.merged if chunk is None else chunk_path(unit.merged, chunk)
        return OutputPaths(output)

    def files(self) -> list[range]:
        """Return the places of each file that users see in the end."""
        starts = [0, *self._ends][: len(self._ends)]
        files: list[range] = []
        before = None
        for (unit, _), begin, end in zip(self._runs, starts, self._ends, strict=True):
            if unit.merged == before:
                files[-1] = range(files[-1].start, end)
            else:
                files.append(range(begin, end))
            before = unit.merged
        return files

    def turn(self) -> list[int]:
        """Return all places, beginning with the one where this process starts."""
        return [*range(self.first, len(self)), *range(self.first)]

    def _at(self, place: int) -> tuple[Unit, int | None]:
        number = bisect.bisect_right(self._ends, place)
        unit, begin = self._runs[number]
        place_in_part = None
        if begin is not None:
            place_in_part = begin + place - (self._ends[number - 1] if number else 0)
        return unit, place_in_part


def queue_of(units: Sequence[Unit]) -> tuple[tuple[Unit, ...], tuple[Ranges, ...]]:
    """Group units whose settings differ only in the number of the chunk into `units` and `chunks` of a RunSpec."""
    alike: list[list[Unit]] = []
    for unit in units:
        first = alike[-1][0] if alike else None
        if first is not None and unit.config.chunk_id is not None and _is_same_unit(first, unit):
            alike[-1].append(unit)
        else:
            alike.append([unit])
    return tuple(group[0] for group in alike), tuple(_chunk_ranges(group) for group in alike)


def _is_same_unit(unit: Unit, other: Unit) -> bool:
    if unit.merged != other.merged:
        return False
    return unit == replace(other, config=replace(other.config, chunk_id=unit.config.chunk_id))


def _chunk_ranges(units: Sequence[Unit]) -> Ranges:
    ranges: list[tuple[int, int]] = []
    for chunk in sorted(unit.config.chunk_id for unit in units if unit.config.chunk_id is not None):
        if ranges and ranges[-1][1] == chunk:
            ranges[-1] = (ranges[-1][0], chunk + 1)
        else:
            ranges.append((chunk, chunk + 1))
    return tuple(ranges)
