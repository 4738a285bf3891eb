# SPDX-License-Identifier: Apache-2.0
"""Where results of scanners lie: `scans/<scanner>/labels[-rsN].jsonl` beside the records, one line for each sample.

`scan.json` says which scanner, with which version, models and labels, and how large the records were.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import Struct

from newskills.base.errors import ConfigError, storage_error
from newskills.base.store import bounded_lines, open_for_reading
from newskills.run.reporting.results import SCANS_FOLDER
from newskills.view.filters.columns import SAMPLE_COLUMNS, SampleColumn, SampleFacts
from newskills.view.scans.finding import ScanLine

HEAD_FILE = "scan.json"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_lines = msgspec.json.Decoder(ScanLine)


class ScanHead(Struct, frozen=True, kw_only=True):
    """What a folder of results is about. `records`: output file → its bytes when it was scanned."""

    scanner: str
    kind: Literal["rule", "model"]
    looks_for: str
    labels: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    version: str = ""
    newskills: str = ""
    records: dict[str, int] = {}


class ScannedFile(NamedTuple):
    """An output file of a benchmark in a run, by the names that filters know it by."""

    run: str
    benchmark: str
    seed: int | None
    path: Path


def check_name(name: str) -> str:
    """Return a scanner's name, which is a folder and a name in filters. Raises ConfigError."""
    if not _NAME.fullmatch(name) or name in SAMPLE_COLUMNS:
        raise ConfigError(
            f"A scanner cannot be called '{name}'.",
            hint="Its name is a word of letters, digits, _ and -, and not that of a column of samples.",
        )
    return name


def scan_folder(output: Path, scanner: str) -> Path:
    """Return the folder of a scanner's results, beside the records."""
    return output.parent / SCANS_FOLDER / scanner


def made_folder(folder: Path) -> Path:
    """Make a folder and return it. Raises StorageError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise storage_error(error, folder) from error
    return folder


def labels_path(output: Path, scanner: str) -> Path:
    """Return the file with the labels of an output file."""
    return scan_folder(output, scanner) / f"labels{output.name.removeprefix('output')}"


def read_head(folder: Path) -> ScanHead | None:
    """Read `scan.json` of a folder; None where there is none that can be read."""
    try:
        return msgspec.json.decode((folder / HEAD_FILE).read_bytes(), type=ScanHead)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None


def scanners_beside(benchmark: Path) -> dict[str, ScanHead]:
    """Return the scanners that have results beside the records of a benchmark's folder, by name."""
    if (benchmark / SCANS_FOLDER).is_dir():
        places = sorted((benchmark / SCANS_FOLDER).iterdir())
    else:
        places = []
    heads = {place.name: read_head(place) for place in places if _NAME.fullmatch(place.name)}
    return {name: head for name, head in heads.items() if head is not None}


def read_labels(output: Path, scanner: str) -> Iterator[ScanLine]:
    """Yield the results of a scanner for an output file; lines that cannot be read are left out."""
    path = labels_path(output, scanner)
    if not path.is_file():
        return
    with open_for_reading(path) as file:
        for line in bounded_lines(file):
            with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError):
                yield _lines.decode(line or b"")


def scan_columns(files: Iterable[ScannedFile]) -> Mapping[str, SampleColumn]:
    """Return the columns of samples, and one for each scanner that has results beside these files."""
    listed = list(files)
    names = dict.fromkeys(name for file in listed for name in scanners_beside(file.path.parent))
    paths = {(file.run, file.benchmark, file.seed): file.path for file in listed}
    return {
        **{name: _scanner_column(name, paths) for name in names if name not in SAMPLE_COLUMNS},
        **SAMPLE_COLUMNS,
    }


def _scanner_column(scanner: str, paths: Mapping[tuple[str, str, int | None], Path]) -> SampleColumn:
    @cache
    def labels(file: tuple[str, str, int | None]) -> dict[str, str | None]:
        if file in paths:
            return {line.id: line.label for line in read_labels(paths[file], scanner)}
        return {}

    def values(samples: Sequence[SampleFacts]) -> list[Any]:
        return [
            labels((sample.run, sample.benchmark, sample.seed)).get(str(sample.row.get("id")))
            for sample in samples
        ]

    return SampleColumn(name=scanner, kind="word", meaning="label of a scanner", fields=("id",), values=values)
