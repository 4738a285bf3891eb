# SPDX-License-Identifier: Apache-2.0
"""Raw rows → prepared rows, by the functions of a benchmark's file; what these raise names the row and their line."""

from __future__ import annotations

import inspect
import re
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from newskills.base.benchmark import OTHER_SPLIT, Benchmark, Drop
from newskills.base.errors import DataError, NewskillsError
from newskills.base.records import Row
from newskills.benchmarks.assets import AssetFolder
from newskills.benchmarks.downloads.readers import RawRow
from newskills.benchmarks.files.described import DescribedBenchmark

_CHANGED = (
    "Compare its fields with the benchmark's page; where the source has changed, look for a newer newskills."
)
_NOT_UNIQUE = (
    "If the column 'id' does not tell rows apart, give it another name in a YAML file: columns: {passage: id}"
)
_OURS = Path(__file__).parents[2]
_Item = TypeVar("_Item")
_Argument = TypeVar("_Argument")


class _MissingFieldError(KeyError):
    """A field that the raw row lacks, not some other dictionary."""


class _RawFields(dict[str, Any]):
    def __missing__(self, key: str) -> Any:
        raise _MissingFieldError(key)


def made_by(
    maker: Callable[[_Argument], Iterable[_Item]], argument: _Argument, problem: Callable[[str], str]
) -> Iterator[_Item]:
    """Yield the items that a benchmark's own function makes. Raises DataError with the `problem` for any exception but
    a NewskillsError, which passes."""
    try:
        yield from maker(argument)
    except NewskillsError:
        raise
    except Exception as error:
        raise DataError(f"{problem(_describe_error(error, maker))}.", hint=_changed_source_hint(maker)) from error


def _describe_error(error: Exception, maker: Callable[..., Any]) -> str:
    """Return a text that says what was raised, and where in the benchmark's file."""
    text = str(error)
    if isinstance(error, KeyError):
        text = f"the key {text} is missing"
    elif not text:
        text = type(error).__name__
    elif not isinstance(error, ValueError):
        text = f"{type(error).__name__}: {text}"
    file = _written_in(maker)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    if frames:
        return f"{text} ({Path(file).name}, line {frames[-1].lineno})"
    return text


def _written_in(maker: Callable[..., Any]) -> str:
    code = getattr(inspect.unwrap(getattr(maker, "func", maker)), "__code__", None)
    return code.co_filename if code is not None else ""


def _changed_source_hint(maker: Callable[..., Any]) -> str:
    return _CHANGED if Path(_written_in(maker)).is_relative_to(_OURS) else ""


class RowMapping:
    """Maps raw rows, checks the prepared ones, and counts both sides."""

    def __init__(self, benchmark: Benchmark, split: str, assets: AssetFolder) -> None:
        self.benchmark = benchmark
        self.mapper = benchmark.variants.get(split, benchmark.row)
        self.prefix = f"{benchmark.data or benchmark.name}-{split}"
        self.assets = assets
        self.seen = 0
        self.dropped: Counter[str] = Counter()
        self._places: dict[str, str] = {}
        self._generated = re.compile(rf"{re.escape(self.prefix)}-(\d+)(?:-\d+)?\Z")
        self._numbered = False

    def rows(self, raw: Iterable[RawRow]) -> Iterator[Row]:
        """Yield the prepared rows. Raises DataError for a row that cannot be mapped, and for what the mapping gives
        that is no row."""
        for index, (row, where) in enumerate(raw):
            self.seen += 1
            mapped = self._map(row, index, where)
            if isinstance(mapped, Drop):
                self.dropped[mapped.reason] += 1
                continue
            several = list(self._without_drops(mapped))
            if mapped and not several:
                continue
            if self.benchmark.keep and several and not (several := list(filter(self._is_kept, several))):
                self.dropped[OTHER_SPLIT.reason] += 1
                continue
            if not several:
                self.dropped["the mapping gave no row"] += 1
            for part, prepared in enumerate(several):
                number = f"{index}" if len(several) == 1 else f"{index}-{part}"
                yield self._store_row(prepared, number, where)

    def _without_drops(self, mapped: Iterable[Row | Drop]) -> Iterator[Row]:
        for item in mapped:
            if isinstance(item, Drop):
                self.dropped[item.reason] += 1
            else:
                yield item

    def _is_kept(self, row: Row) -> bool:
        return all(str(row.get(field)) in values for field, values in self.benchmark.keep.items())

    def _map(self, row: Row, index: int, where: str) -> list[Row | Drop] | Drop:
        if self.mapper is None:
            return [row]
        try:
            mapped = self.mapper(_RawFields(row), index)
            if isinstance(mapped, Drop):
                return mapped
            several: list[Any] = [mapped] if mapped is None or isinstance(mapped, dict | str) else list(mapped)
        except NewskillsError:
            raise
        except _MissingFieldError as error:
            raise DataError(
                f"{where}: the field {error} is missing, which {self.benchmark.name} expects; "
                f"the row has {', '.join(sorted(set(map(str, row)) - {'_file'})) or 'none'}.",
                hint=_changed_source_hint(self.mapper),
            ) from error
        except Exception as error:
            raise DataError(
                f"{where}: the row does not fit {self.benchmark.name}: {_describe_error(error, self.mapper)}.",
                hint=_changed_source_hint(self.mapper),
            ) from error
        if strange := [item for item in several if not isinstance(item, dict | Drop)]:
            raise DataError(
                f"{where}: the mapping of {self.benchmark.name} gave {strange[0]!r:.60}, which is not a row; "
                "it returns a dictionary, several of them, or Drop."
            )
        return several

    def _store_row(self, row: Row, number: str, where: str) -> Row:
        identity = self._identity(row, number, where)
        if row.get("expected_answer", "given") in (None, ""):
            raise DataError(f"{where}: the field 'expected_answer' is empty.")
        stored = {"id": identity, **self.assets.store_assets(row, where)} | {"id": identity}
        if self.mapper is not None:
            stored.pop("_file", None)
        return stored

    def _identity(self, row: Row, number: str, where: str) -> str:
        """Return the row's own id, or one made of its number; only own ids are remembered, so that files without them
        may have any size. Raises DataError for one that is used before."""
        if "id" not in row:
            self._numbered = True
            if (identity := f"{self.prefix}-{number}") in self._places:
                raise DataError(f"{where}: the id '{identity}' is used before, at {self._places[identity]}.")
            return identity
        identity = str(row["id"])
        made = self._generated.match(identity) if self._numbered else None
        if made is not None and int(made[1]) < self.seen - 1:
            raise DataError(f"{where}: the id '{identity}' is used before, at row {int(made[1]) + 1}.")
        if identity in self._places:
            raise DataError(
                f"{where}: the id '{identity}' is used before, at {self._places[identity]}.",
                hint=_NOT_UNIQUE if isinstance(self.benchmark, DescribedBenchmark) else "",
            )
        self._places[identity] = where
        return identity
