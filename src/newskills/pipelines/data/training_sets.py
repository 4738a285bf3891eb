# SPDX-License-Identifier: Apache-2.0
"""Published training sets: fetched and laid out as `<data dir>/<name>/<split>.jsonl`, with a record of their origin."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import msgspec
from msgspec import Struct

from newskills._version import __version__
from newskills.base.benchmark import Format, Source
from newskills.base.errors import ConfigError, suggest
from newskills.base.reading.row_files import COMPRESSED_SUFFIXES
from newskills.base.records import Row
from newskills.base.store import read_rows, write_json, write_rows
from newskills.benchmarks.downloads.fetch import Fetcher, FetchOptions
from newskills.benchmarks.downloads.readers import RawRow, read_source
from newskills.benchmarks.downloads.sources import open_source
from newskills.benchmarks.folders import data_dir
from newskills.pipelines.dry_run import Step
from newskills.train.data.published import Schema, is_published, schema_of

FORMATS: dict[str, Format] = {
    ".jsonl": "jsonl",
    ".json": "json",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".csv": "csv",
    ".tsv": "tsv",
}


class SplitRecord(Struct, kw_only=True):
    """The record beside a laid-out split."""

    dataset: str
    split: str
    licence: str
    newskills: str
    rows: int
    bytes: int
    left_out: int
    sources: list[Row]


def split_of(schema: Schema, split: str | None) -> str:
    """Return `split`, or the first that the set has. Raises ConfigError."""
    if not schema.splits:
        raise ConfigError(
            f"{schema.name} is a file format, not a data set to download.",
            hint="Give input files: ++input_files=FILE.",
        )
    if split is not None and split not in schema.splits:
        raise ConfigError(f"{schema.name} has no split '{split}'{suggest(split, schema.splits)}")
    return split or next(iter(schema.splits))


def training_sets(names: Iterable[str]) -> tuple[list[Schema], list[str]]:
    """Return (published training sets among `names`, the other names)."""
    schemas, others = [], []
    for name in names:
        if is_published(name):
            schemas.append(schema_of(name))
        else:
            others.append(name)
    return schemas, others


def training_steps(sets: Iterable[Schema], splits: Sequence[str], place: str | None) -> Iterator[Step]:
    """Yield the steps that `lay_out_all` would take. Raises ConfigError."""
    for schema in sets:
        for split in splits or (None,):
            path = split_file(schema, split_of(schema, split), place)
            yield ("reads" if path.is_file() else "fetches"), path, f"{schema.name}, {schema.licence}"


def lay_out_all(
    sets: Iterable[Schema], splits: Sequence[str], place: str | None, fetch: FetchOptions
) -> Iterator[str]:
    """Lay out `splits` of each set (default: the first), and yield a line about each. Raises as `lay_out`."""
    for schema in sets:
        for split in splits or (None,):
            path, laid = lay_out(schema, split_of(schema, split), place, fetch)
            yield f"{schema.name:<24} {laid.split:<8} {laid.rows:>7} rows in {path}"


def split_file(schema: Schema, split: str, place: str | None) -> Path:
    return data_dir(place) / schema.name / f"{split}.jsonl"


def lay_out(schema: Schema, split: str, place: str | None, fetch: FetchOptions) -> tuple[Path, SplitRecord]:
    """Return the file, written if it is not there, and its record. Raises DataError: no network, refused, a row of
    another form."""
    path = split_file(schema, split, place)
    record = path.with_name(f"{path.name}.meta.json")
    if (existing := _matching_record(path, record)) is not None:
        return path, existing
    tally: Counter[str] = Counter()
    with open_source(source_of(schema, split), Fetcher(data_dir(place) / ".downloads", fetch)) as download:
        rows = write_rows(path, _map_rows(schema, download.rows(), tally))
        laid = SplitRecord(
            dataset=schema.name,
            split=split,
            licence=schema.licence,
            newskills=__version__,
            rows=rows,
            bytes=path.stat().st_size,
            left_out=tally["left out"],
            sources=download.origin,
        )
    write_json(record, laid)
    return path, laid


def source_of(schema: Schema, split: str) -> Source:
    """Return the source of the split."""
    if schema.hf:
        config, _, own = schema.splits[split].partition("/")
        return Source(split=split, hf=schema.hf, config=config, hf_split=own)
    form = FORMATS[f".{schema.format}"]
    return Source(split=split, url=schema.url.replace("{split}", split), format=form)


def rows_of_file(path: Path) -> Iterator[Row]:
    """Read rows of a file that is not plain JSONL, by the end of its name (`.gz` or `.zst` besides).

    Raises DataError, ConfigError.
    """
    suffix = path.suffix
    if suffix in COMPRESSED_SUFFIXES:
        suffix = path.with_suffix("").suffix
    if suffix not in FORMATS:
        raise ConfigError(
            f"{path}: expected a file that ends in {', '.join(FORMATS)}, optionally with .gz or .zst."
        )
    if suffix in (".json", ".arrow"):  # which may be objects by key, and lists further down
        return (raw.row for raw in read_source(path, Source(format=FORMATS[suffix])))
    return read_rows(path)


def _matching_record(path: Path, record: Path) -> SplitRecord | None:
    """Return the record, if the file is the one it was written for, else None."""
    try:
        laid = msgspec.json.decode(record.read_bytes(), type=SplitRecord)
        current = laid.newskills == __version__ and path.stat().st_size == laid.bytes
    except (OSError, msgspec.DecodeError):
        return None
    if current:
        return laid
    return None


def _map_rows(schema: Schema, raw: Iterable[RawRow], tally: Counter[str]) -> Iterator[Row]:
    for row, where in raw:
        mapped = schema.map_row(row, partial(str, where))
        if mapped is None:
            tally["left out"] += 1
        else:
            yield mapped
