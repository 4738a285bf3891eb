# SPDX-License-Identifier: Apache-2.0
"""Which public texts speak of the live source of a benchmark: a line of `evidence.jsonl` for each that has some."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct

FILE = Path(__file__).with_name("evidence.jsonl")


class Evidence(Struct, frozen=True, forbid_unknown_fields=True):
    """A public text that says what the live source holds, read where its rows could not be had.

    url         card of the data set, its loading script, or published code that reads it
    compared    what of the mapping stands there: fields, configurations, splits, rows
    date        when it was read, ISO 8601
    """

    url: str
    compared: str
    date: str


class BenchmarkEvidence(Struct, frozen=True, forbid_unknown_fields=True):
    """A line of the file."""

    name: str
    evidence: tuple[Evidence, ...]


@cache
def all_evidence() -> dict[str, tuple[Evidence, ...]]:
    """Return what the file says, by the names of the benchmarks."""
    lines = msgspec.json.Decoder(BenchmarkEvidence).decode_lines(FILE.read_bytes())
    return {line.name: line.evidence for line in lines}


def evidence_of(name: str) -> tuple[Evidence, ...]:
    """Return the texts that speak of the source of the benchmark called `name`."""
    return all_evidence().get(name, ())
