# SPDX-License-Identifier: Apache-2.0
"""Where the questions are: the `data` of a description → sources, and the first rows of files of this machine."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Literal

from msgspec.structs import replace

from newskills.base.benchmark import Source
from newskills.base.errors import DataError
from newskills.base.records import Row
from newskills.benchmarks.downloads.readers import read_source
from newskills.benchmarks.downloads.sources import local_files
from newskills.benchmarks.files.format import DataPlace, FewShot
from newskills.benchmarks.files.guess import LOOKED_AT
from newskills.benchmarks.files.names import is_text_file
from newskills.benchmarks.files.positions import KeyPath, MarkedDocument

EXAMPLES = "examples"
"""Split that holds solved examples."""


def source_of(data: DataPlace | str, document: MarkedDocument, path: KeyPath, home: Path, split: str) -> Source:
    """Return the source of `split`. Raises ConfigError for a place that names nothing, or several things."""
    if isinstance(data, str):
        is_address = data.startswith(("http://", "https://"))
        data = DataPlace(url=data) if is_address else DataPlace(path=data)
    given_places = [name for name in ("path", "url", "hf") if getattr(data, name)]
    if len(given_places) != 1:
        raise document.fault(path, "data needs one of path, url and hf.", hint="For example: data: questions.csv")
    records = (data.records,) if isinstance(data.records, str) else data.records
    table = bool(data.separator or data.header)
    usual: Literal["json", "rows", "text"] = "json" if records else "rows"
    if isinstance(data.path, str) and is_text_file(data.path):
        usual = "text"
    source = Source(
        split=split,
        format=data.format or usual,
        records=records,
        separator=data.separator,
        columns=data.header,
        encoding=data.encoding,
        sha256=data.sha256,
        revision=data.revision,
    )
    if data.format and table:
        raise document.fault(path, "separator and header are for CSV files: leave out format.")
    if data.hf:
        return replace(source, hf=data.hf, config=data.config, hf_split=data.split or "test", format="parquet")
    if misplaced := next((name for name in ("config", "split") if getattr(data, name)), ""):
        raise document.fault((*path, misplaced), f"{misplaced} is for data sets of the hub (hf: owner/name).")
    if data.url:
        return replace(source, url=data.url)
    return replace(source, path=_join_paths(data.path, home))


def examples_source(few_shot: FewShot, data: DataPlace | str, document: MarkedDocument, home: Path) -> Source:
    """Return the source of solved examples. Raises ConfigError where nothing says where they are."""
    if few_shot.data is not None:
        return source_of(few_shot.data, document, ("few_shot", "data"), home, EXAMPLES)
    if few_shot.split and isinstance(data, DataPlace) and data.hf:
        return source_of(replace(data, split=few_shot.split), document, ("data",), home, EXAMPLES)
    raise document.fault(
        ("few_shot",),
        "nothing says where the examples come from; rows that are asked about cannot be examples.",
        hint="For example: few_shot: {data: train.csv}, or {split: train} for a data set of the hub",
    )


def _join_paths(path: str | Sequence[str], home: Path) -> str:
    """Return one path, or several as a list in braces, each relative to `home`."""
    paths = [path] if isinstance(path, str) else list(path)
    if len(paths) == 1:
        return os.path.expanduser(paths[0])
    relative = [os.path.relpath(home / os.path.expanduser(one_path), home) for one_path in paths]
    return f"{{{','.join(text.replace(',', chr(92) + ',') for text in relative)}}}"


def first_rows(source: Source, home: Path) -> list[Row]:
    """Return the first rows of files of this machine; none where they come from elsewhere. Raises DataError."""
    if not source.path:
        return []
    if (home / source.path).is_dir():
        raise DataError(f"{home / source.path} is a folder; name its files: data: {{path: [a.jsonl, b.jsonl]}}")
    files = local_files(source, home)
    states = tuple((str(file), (state := file.stat()).st_size, state.st_mtime_ns) for file in files.values())
    rows = _first_rows(source, states)
    if not rows:
        raise DataError(f"{', '.join(file for file, _, _ in states)} has no rows.")
    return rows


@lru_cache(maxsize=64)
def _first_rows(source: Source, states: tuple[tuple[str, int, int], ...]) -> list[Row]:
    rows: list[Row] = []
    for file, _, _ in states:
        rows += [raw.row for raw in islice(read_source(Path(file), source), LOOKED_AT // len(states) + 1)]
    return rows
