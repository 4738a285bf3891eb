# SPDX-License-Identifier: Apache-2.0
"""The log of a run that people read: `<log_dir>/run.log`. Later processes go on in the same file."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Sequence
from pathlib import Path

from newskills._version import __version__
from newskills.base.records import Failure, Ledger
from newskills.base.terminal import counted, printable
from newskills.run.planning.spec import RunSpec, UnitResult, mask_addresses
from newskills.run.reporting.tables import finish_counts

LOG_FILE = "run.log"


class Journal:
    """Appends lines with time and process. Without a folder, or where it cannot be written, it keeps silent.

    No secret and no text of a model is ever handed to it.
    """

    def __init__(self, folder: str) -> None:
        self.path = Path(folder) / LOG_FILE if folder else None

    def write(self, text: str) -> None:
        """Write one entry; it is in the file at once."""
        if self.path is None:
            return
        stamp = f"{time.strftime('%Y-%m-%d %H:%M:%S%z')} {os.getpid()} "
        with contextlib.suppress(OSError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8", errors="replace") as file:
                file.write("".join(f"{stamp}{line}\n" for line in printable(mask_addresses(text)).splitlines()))

    def begin(self, spec: RunSpec, labels: Sequence[str]) -> None:
        """Write which units are worked on, and with which model."""
        models = dict.fromkeys(str(unit.config.server.model) for unit in spec.units)
        self.write(f"newskills {__version__} on {os.uname().nodename} begins: model {', '.join(models)}")
        for label in labels:
            self.write(f"to do: {label}")

    def note_failure(self, label: str, sample: str, failure: Failure) -> None:
        """Write a line on a row without a usable reply; what the server said is in the file of failed rows."""
        status = "" if failure.status is None else f", HTTP {failure.status}"
        self.write(f"{label}: row {sample} failed: {failure.kind} ({failure.cause}{status})")

    def end(self, units: Sequence[UnitResult], exit_code: int, retries: int, why: str) -> None:
        """Write the ledger of each unit with its times, and how the run ends."""
        for unit in units:
            self.write(_unit_line(unit))
        self.write(f"ends with exit code {exit_code} after {retries} retries. {why}".rstrip())


def _unit_line(unit: UnitResult) -> str:
    parts = [
        counted(unit.rows, "row"),
        f"{unit.kept} kept",
        f"{unit.generated} generated",
        f"{unit.failures} failed",
    ]
    if unit.output_tokens is not None:
        parts.append(f"{unit.output_tokens} tokens")
    if unit.ledger.total:
        parts.append(_ledger_text(unit.ledger))
    if finishes := finish_counts(unit.ledger):
        parts.append(f"finish reasons: {finishes}")
    if unit.note:
        parts.append(unit.note)
    return f"{unit.output}: {unit.status} after {unit.seconds:.1f} s: {', '.join(parts)}"


def _ledger_text(ledger: Ledger) -> str:
    counts = (
        f"{ledger.correct} correct, {ledger.wrong} wrong, {ledger.no_answer} no answer, {ledger.unscored} unscored"
    )
    causes = ", ".join(f"{cause} {n}" for cause, n in sorted(ledger.causes.items()))
    cause_text = f" (causes: {causes})" if causes else ""
    return counts + cause_text
