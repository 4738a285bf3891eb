# SPDX-License-Identifier: Apache-2.0
"""The records of a load test, from which all its figures can be computed again: one JSON line for each request.

The lines of a level follow its `level` line; an `end` line closes it. A level without one was cut short, and is
measured anew by the next run: the last `level` line of a name counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from newskills.base.errors import DataError
from newskills.base.records import Row
from newskills.base.store import bounded_lines, open_for_reading

LOG = "requests.jsonl"
LoadKind = Literal["concurrency", "rate"]


class LoadLevel(Struct, frozen=True, kw_only=True):
    """One load: so many requests in flight (concurrency), or so many that arrive per second (rate; 0: all at once).

    burstiness    shape of the gamma distribution of the gaps between arrivals: 1 = Poisson, below: burstier, 0: even
    burst         requests that arrive together
    most          requests in flight, however many have arrived; 0 = any number
    requests      to be sent; 0 = until the time is over
    seconds       for which requests are sent; 0 = until all are
    """

    kind: LoadKind
    value: float
    requests: int = 0
    seconds: float = 0.0
    burstiness: float = 1.0
    burst: int = 1
    most: int = 0
    seed: int = 0

    @property
    def name(self) -> str:
        if self.value:
            return f"{self.kind}={self.value:g}"
        return f"{self.kind}=inf"


class LevelStart(Struct, frozen=True, kw_only=True, tag_field="line", tag="level"):
    """`workload`: what is sent, and to whom; levels of one test have the same."""

    level: str
    load: LoadLevel
    workload: Row
    unix_time: float


class MeasuredRequest(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="line", tag="request"):
    """One request. `due` and `sent` in seconds since the level began; `tokens` (when events with tokens came) and
    `ended` in seconds since the request was sent.

    due            when it was to be sent; later requests of a closed loop are due when they are sent
    input_tokens   as the server counts them, and so are the other counts; None: it said nothing
    error          kind of the failure; empty: the request was answered
    """

    number: int
    due: float
    sent: float
    ended: float
    tokens: list[float] = []
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None
    finish_reason: str | None = None
    error: str = ""
    status: int | None = None
    message: str = ""


class LevelEnd(Struct, frozen=True, kw_only=True, tag_field="line", tag="end"):
    """`seconds` from the first request's sending to the last one's end; `cpu_seconds` of this client meanwhile.

    `recounted_…`: some replies, with their output tokens as the server's usage and as a tokenizer counts them.
    """

    level: str
    seconds: float
    cpu_seconds: float
    max_in_flight: int
    recounted_replies: int = 0
    recounted_usage: int = 0
    recounted_tokens: int = 0


class MeasuredLevel(Struct, kw_only=True):
    """A level with its requests; `end` is None where it was cut short."""

    start: LevelStart
    requests: list[MeasuredRequest] = msgspec.field(default_factory=list)
    end: LevelEnd | None = None


_lines = msgspec.json.Decoder(LevelStart | MeasuredRequest | LevelEnd)


def read_levels(path: Path) -> dict[str, MeasuredLevel]:
    """Read the levels of a log by name, in the order of their first lines; none where there is no file.

    Raises DataError for a line that is no record of a load test.
    """
    levels: dict[str, MeasuredLevel] = {}
    current: MeasuredLevel | None = None
    for number, line in _numbered_lines(path):
        try:
            record = _lines.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise DataError(f"{path}, line {number}: no record of a load test ({error}).") from error
        if isinstance(record, LevelStart):
            current = levels[record.level] = MeasuredLevel(start=record)
        elif current is None:
            raise DataError(f"{path}, line {number}: a request before the first level.")
        elif isinstance(record, LevelEnd):
            current.end = record
        else:
            current.requests.append(record)
    return levels


def _numbered_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield whole lines; one that a kill cut off is left out."""
    if not path.exists():
        return
    with open_for_reading(path) as file:
        for number, line in enumerate(bounded_lines(file), 1):
            if line is not None and line.endswith(b"\n"):
                yield number, line
