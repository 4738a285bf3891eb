# SPDX-License-Identifier: Apache-2.0
"""The small files of a run: metrics, settings, how the run ended. What cannot be read is absent, never an error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from newskills._version import __version__
from newskills.base.errors import DataError
from newskills.base.reading.json_values import object_or_empty
from newskills.base.records import Row
from newskills.run.records.paths import OutputPaths
from newskills.run.reporting.summarize import BENCHMARK_FILE, EXTENDED_FILE, METRICS_FILE
from newskills.view.discovery import BenchmarkFiles, OutputFile
from newskills.view.folders import Folders

MAX_FILE_BYTES = 64 << 20
"""Bytes of a JSON file that is read."""
_decoder = msgspec.json.Decoder(dict[str, Any])


def read_json(folders: Folders, path: Path) -> Row:
    """Return the object in the file; an empty one where there is none."""
    try:
        return _decoder.decode(folders.read(path, MAX_FILE_BYTES))
    except (DataError, OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return {}


def metrics_of(folders: Folders, results: BenchmarkFiles) -> tuple[Row, Row]:
    """Return (modes of metrics.json, content of metrics_extended.json) of a benchmark: of its folder, else of the
    run's."""
    folder = results.folder
    metrics = read_json(folders, folder / METRICS_FILE)
    extended = read_json(folders, folder / EXTENDED_FILE)
    if results.name in metrics:
        name = results.name
    else:
        name = next(iter(metrics), results.name)
    return object_or_empty(metrics.get(name)), object_or_empty(extended.get(name))


def read_description(folders: Folders, results: BenchmarkFiles) -> Row:
    """Read benchmark.json: version, prompt, grader, data."""
    return read_json(folders, results.folder / BENCHMARK_FILE)


def state_of(folders: Folders, file: OutputFile) -> Row:
    """Read `<output>.run.json`: settings, tokens, cost, times, how the run ended."""
    return read_json(folders, OutputPaths(file.output).state)


def finite_number(value: Any) -> float | None:
    """Return `value` where it is a finite number, else None."""
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300:
        return value
    return None


def is_newer(version: str) -> bool:
    """Return whether `version`, as `0.2.0`, is later than that of this newskills; false where it is empty."""
    return _release_numbers(version) > _release_numbers(__version__)


def _release_numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:3] if part.isdigit())
