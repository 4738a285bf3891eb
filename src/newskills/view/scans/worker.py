# SPDX-License-Identifier: Apache-2.0
"""What a worker pool runs to scan: `WorkerPool("newskills.view.scans.worker:make", {"scanners": [name, …]})`."""

from __future__ import annotations

from collections.abc import Callable

from newskills.base.records import Row
from newskills.view.scans import SCANNERS
from newskills.view.scans.finding import ScanLine, scan_one
from newskills.view.scans.transcript import Transcript


def make(config: Row) -> Callable[[Row], list[ScanLine]]:
    """Return the function that runs the scanners `config["scanners"]` on a sample. Raises UnknownNameError,
    ConfigError."""
    scanners = [SCANNERS.get(name) for name in config["scanners"]]

    def scan(sample: Row) -> list[ScanLine]:
        row = sample.pop("row")
        transcript = Transcript(row, **sample)
        return [scan_one(scanner, str(row.get("id")), transcript) for scanner in scanners]

    return scan
