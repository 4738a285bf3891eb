# SPDX-License-Identifier: Apache-2.0
"""What a scanner gives, and whether that can be believed: a quote that does not stand in the transcript counts as
invalid."""

from __future__ import annotations

import math
from typing import Any

from msgspec import Struct

from newskills.base.errors import guard
from newskills.base.records import Failure
from newskills.view.scans.transcript import Transcript

NO_FINDING = "no"
"""Label of a transcript in which a scanner by rule found nothing."""
LONGEST_LABEL = 64
MOST_QUOTES = 20
LONGEST_QUOTE = 500


class Finding(Struct, frozen=True, kw_only=True):
    """What a scanner found in a transcript: a label, a value and quotes that show it."""

    label: str
    value: float = 1.0
    quotes: tuple[str, ...] = ()


class ScanLine(Struct, frozen=True, kw_only=True):
    """A line of the results: a sample by its id and its line in the records (from 0), and what a scanner made of it.

    `label` None: no valid result, and `invalid` says why.
    """

    id: str
    label: str | None
    value: float | None = None
    quotes: tuple[str, ...] = ()
    invalid: str = ""
    place: int = -1


def check_returned(identity: str, returned: Any, transcript: Transcript) -> ScanLine:
    """Check what a scanner returned. Never raises: nonsense becomes an invalid line."""
    if isinstance(returned, Failure):
        if returned.cause == "timeout":
            reason = "timeout: stopped at its time limit"
        else:
            reason = f"failed: {returned.message}"
        return ScanLine(id=identity, label=None, invalid=reason[:LONGEST_QUOTE])
    if returned is None:
        return ScanLine(id=identity, label=NO_FINDING, value=0.0)
    reason = fault_of(returned, transcript)
    if reason:
        return ScanLine(id=identity, label=None, invalid=reason)
    return ScanLine(id=identity, label=returned.label, value=float(returned.value), quotes=tuple(returned.quotes))


def fault_of(returned: Any, transcript: Transcript) -> str:
    """Return what is wrong with a finding; an empty text where nothing is."""
    if not isinstance(returned, Finding):
        return f"nonsense: expected a Finding or None, got {type(returned).__name__}"
    if not isinstance(returned.label, str) or not 0 < len(returned.label.strip()) <= LONGEST_LABEL:
        return f"nonsense: a label has 1 to {LONGEST_LABEL} characters"
    if (
        isinstance(returned.value, bool)
        or not isinstance(returned.value, int | float)
        or not math.isfinite(returned.value)
    ):
        return "nonsense: the value is not a finite number"
    if not isinstance(returned.quotes, tuple | list) or len(returned.quotes) > MOST_QUOTES:
        return f"nonsense: quotes are a list of at most {MOST_QUOTES} texts"
    for quote in returned.quotes:
        if not isinstance(quote, str) or not transcript.holds(quote):
            return f"quote: {str(quote)[:100]!r} does not stand in the transcript"
    return ""


def scan_one(scanner: Any, identity: str, transcript: Transcript) -> ScanLine:
    """Run one scanner by rule on a transcript, and check what it returns. Never raises."""
    return check_returned(identity, guard(lambda: scanner(transcript)), transcript)
