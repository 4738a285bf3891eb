# SPDX-License-Identifier: Apache-2.0
"""Rows of the calling Python process, in place of an input file."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from newskills.base.errors import ConfigError
from newskills.base.store import encode_line, write_rows
from newskills.config.command_line import Parsed
from newskills.pipelines.generation.options import GenerateOptions

ROWS = "rows"
"""Keyword of the Python function."""
FILE = "input.jsonl"
"""Name of the file in the output folder, from which the same call resumes."""


def file_of_rows(parsed: Parsed[GenerateOptions], folder: Path, *, elsewhere: bool) -> Path | None:
    """Return the file below `folder` with the rows that were passed, written unless it holds them already; None where
    none were passed. A dry run writes into a folder that goes with the process.

    Raises ConfigError for an input beside them, and where jobs `elsewhere` would have to read them.
    """
    rows: Iterable[Mapping[str, Any]] | None = parsed.objects.get(ROWS)
    if rows is None:
        return None
    options = parsed.options
    if (
        options.input_file
        or options.input_dir
        or "input_file" in parsed.overrides
        or "dataset" in parsed.overrides
    ):
        raise ConfigError("rows are the input: leave out input_file, input_dir and dataset.")
    if elsewhere:
        raise ConfigError("Jobs on a cluster cannot see rows of this process.", hint="Write them into a file.")
    if options.dry_run:
        folder = Path(tempfile.mkdtemp(prefix="newskills-rows-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    listed = [dict(row) for row in rows]
    path = folder / FILE
    if not path.is_file() or path.read_bytes() != b"".join(map(encode_line, listed)):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_rows(path, listed)
    return path
