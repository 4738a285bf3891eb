# SPDX-License-Identifier: Apache-2.0
"""What tests of imports do with what they import."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.commands.running import ns

from newskills.exchange.importers import ImportedBenchmark, ImportSource, read

STAMP = "2026-01-02T03-04-05.678901"


def imported(path: Path, out: Path, *more: str) -> dict[str, Any]:
    """metrics.json of what `ns import` and `ns summarize_results` make of `path`."""
    done = ns(f"ns import {path} --output_dir {out}", *more, cwd=out.parent)
    assert done.returncode == 0, done.stderr
    shown = ns(f"ns summarize_results {out} --accept_lost 100", cwd=out.parent)
    assert shown.returncode == 0, shown.stderr
    return json.loads((out / "metrics.json").read_text())


def only(path: Path, **options: Any) -> ImportedBenchmark:
    (one,) = read(ImportSource(path=path, **options))
    return one


# NeMo-Skills
