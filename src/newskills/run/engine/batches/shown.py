# SPDX-License-Identifier: Apache-2.0
"""How the batches of a folder are doing, for people."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec

from newskills.base.errors import NewskillsError
from newskills.models.batch_apis import make_batch_service
from newskills.models.config import ServerConfig
from newskills.run.engine.batches.ledger import BATCHES_FOLDER, BatchRecord, read_records
from newskills.run.engine.progress import format_duration

TABLE_HEAD = ("batch", "model", "requests", "done", "state", "seen", "submitted as")


def batches_below(folder: Path) -> dict[Path, list[BatchRecord]]:
    """Return the batches in `folder` and below, by the folder of each, the oldest first."""
    places = sorted(path for path in folder.rglob(BATCHES_FOLDER) if path.is_dir())
    found_records = {place: sorted(read_records(place), key=lambda record: record.written) for place in places}
    return {place: records for place, records in found_records.items() if records}


async def look_again(place: Path, records: list[BatchRecord], environ: Mapping[str, str]) -> list[str]:
    """Ask the providers for batches that have not ended, and note in the records what they say; nothing is written.
    Return why one could not be asked."""
    troubles = []
    for record in records:
        if record.ended or not record.handle:
            continue
        try:
            service = make_batch_service(
                msgspec.convert(record.server, ServerConfig), folder=place, environ=environ
            )
            try:
                look = await service.look(record.handle)
            finally:
                await service.close()
        except NewskillsError as error:
            troubles.append(f"{record.name}: {error}")
        else:
            record.state, record.done, record.looked = look.state, look.done, time.time()
    return troubles


def batch_rows(records: list[BatchRecord]) -> list[tuple[str, ...]]:
    """Return a row of `TABLE_HEAD` for each batch."""
    return [
        (
            record.name,
            record.model,
            f"{record.rows:,}",
            f"{record.answered if record.ended else record.done:,}",
            _record_state(record),
            f"{format_duration(max(0.0, time.time() - record.looked))} ago" if record.looked else "",
            record.handle or "not yet",
        )
        for record in records
    ]


def look_at(place: Path, records: list[BatchRecord], environ: Mapping[str, str]) -> list[str]:
    """Do as `look_again`, without a running event loop."""
    return asyncio.run(look_again(place, records, environ))


def _record_state(record: BatchRecord) -> str:
    left = ", ".join(
        f"{number:,} {word}"
        for number, word in ((record.refused, "refused"), (record.unanswered, "asked again"))
        if number
    )
    if not record.ended:
        return record.state or "being submitted"
    remark = f" ({left})" if left else ""
    return f"{record.state}, collected" + remark
