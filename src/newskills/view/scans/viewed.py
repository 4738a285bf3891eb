# SPDX-License-Identifier: Apache-2.0
"""Results of scanners for the viewer: a column of labels for each, and what was said of one sample."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import msgspec

from newskills.base.records import Row
from newskills.run.reporting.results import SCANS_FOLDER
from newskills.view.filters.columns import SAMPLE_COLUMNS, SampleColumn
from newskills.view.folders import Folders
from newskills.view.library import IndexedBenchmark
from newskills.view.scans.files import ScannedFile, labels_path, read_labels, scan_columns, scanners_beside
from newskills.view.scans.finding import NO_FINDING, ScanLine

INVALID = "(invalid)"
"""Shown in place of a label where a result is not valid; the empty one stands for samples that were not scanned."""
MOST_SCANNERS, MOST_LABELS = 50, 255
_decoder = msgspec.json.Decoder(ScanLine)


class LabelColumn(NamedTuple):
    """The labels of all samples. `codes`: numbers of `labels`, a byte for each sample in the order of the files."""

    scanner: str
    labels: list[str]
    codes: bytes


def label_columns(folders: Folders, indexed: IndexedBenchmark, sizes: list[int]) -> list[LabelColumn]:
    """Return a column for each scanner that has results; `sizes`: samples of each file."""
    columns = []
    for scanner in _scanner_names(folders, indexed):
        labels, codes = [""], bytearray()
        for index, size in zip(indexed.indexes, sizes, strict=True):
            own_labels, own = _line_labels(folders, index.file.output, scanner)
            numbers = bytes(_label_number(labels, label) for label in own_labels)
            codes += own[:size].translate(numbers.ljust(256, b"\0")).ljust(size, b"\0")
        columns.append(LabelColumn(scanner, labels, bytes(codes)))
    return columns


def label_counts(folders: Folders, indexed: IndexedBenchmark, sizes: list[int]) -> dict[str, dict[str, int]]:
    """Return scanner → label → samples, for labels other than no."""
    counts = {}
    for column in label_columns(folders, indexed, sizes):
        by_label = Counter(column.codes)
        names = {column.labels[code]: count for code, count in by_label.most_common()}
        counts[column.scanner] = {label: count for label, count in names.items() if label not in ("", NO_FINDING)}
    return {scanner: labels for scanner, labels in counts.items() if labels}


def filter_columns(folders: Folders, indexed: IndexedBenchmark) -> Mapping[str, SampleColumn]:
    """Return the names of a filter over this benchmark: columns of samples, and its scanners."""
    outputs = [index.file.output for index in indexed.indexes]
    files = [
        ScannedFile(indexed.run.id, indexed.results.name, index.file.seed, index.file.output)
        for index in indexed.indexes
    ]
    own = {
        scanner
        for scanner in _scanner_names(folders, indexed)
        if all(folders.holds(path) for output in outputs if (path := labels_path(output, scanner)).exists())
    }
    return {name: column for name, column in scan_columns(files).items() if name in SAMPLE_COLUMNS or name in own}


def marks_of(folders: Folders, indexed: IndexedBenchmark, file: int, place: int) -> list[Row]:
    """Return what scanners said of one sample, those that found nothing left out."""
    marks = []
    heads = scanners_beside(indexed.results.folder)
    for scanner in _scanner_names(folders, indexed):
        output = indexed.indexes[file].file.output
        labels, codes = _line_labels(folders, output, scanner)
        if not (place < len(codes) and labels[codes[place]] not in ("", NO_FINDING)):
            continue
        line = _scan_line(folders, labels_path(output, scanner), place)
        if line is not None:
            looks_for = heads[scanner].looks_for if scanner in heads else ""
            marks.append({"scanner": scanner, "looks_for": looks_for, **msgspec.structs.asdict(line)})
    return marks


def _scanner_names(folders: Folders, indexed: IndexedBenchmark) -> list[str]:
    place = indexed.results.folder / SCANS_FOLDER
    if folders.holds(place):
        return list(scanners_beside(indexed.results.folder))[:MOST_SCANNERS]
    return []


def _line_labels(folders: Folders, output: Path, scanner: str) -> tuple[list[str], bytes]:
    """Return (labels, number of the label of each line of the records); nothing where the file is not to be read."""
    path = labels_path(output, scanner)
    if not folders.holds(path):
        return [""], b""
    status = path.stat()
    return _kept_codes(output, scanner, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=256)
def _kept_codes(output: Path, scanner: str, size: int, changed: int) -> tuple[list[str], bytes]:
    labels, codes = [""], bytearray()
    for line in read_labels(output, scanner):
        if 0 <= line.place <= size:  # a line of labels has more than one byte
            codes.extend(bytes(line.place + 1 - len(codes)))
            label = INVALID if line.label is None else line.label
            codes[line.place] = _label_number(labels, label)
    return labels, bytes(codes)


def _label_number(labels: list[str], label: str) -> int:
    """Return the label's number in the list, which grows; 0 where it is full."""
    if label not in labels:
        if len(labels) > MOST_LABELS:
            return 0
        labels.append(label)
    return labels.index(label)


def _scan_line(folders: Folders, path: Path, place: int) -> ScanLine | None:
    ending = b'"place":%d}' % place
    with folders.open(path) as file:
        for line in file:
            if line.rstrip().endswith(ending):
                with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError):
                    return _decoder.decode(line)
    return None
