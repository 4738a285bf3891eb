# SPDX-License-Identifier: Apache-2.0
"""What a model says about groups of failures. A claim counts only with ids that exist and quotes that stand there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from newskills.base.records import Row
from newskills.view.diagnosis.diagnose import Claim, RunDiagnosis
from newskills.view.diagnosis.groups import GROUPS, FailureGroup
from newskills.view.records import as_text
from newskills.view.scans.question import last_object, render_transcript, shorten_middle
from newskills.view.scans.reading import SampleRow
from newskills.view.scans.transcript import Transcript

PROMPT = "judge/failure-claims"
_CHARACTERS, _LONGEST_CLAIM, _MOST_CLAIMS = 4_000, 400, 10
KeptSamples = Mapping[tuple[str, FailureGroup], Sequence[SampleRow]]
"""(benchmark, group) → some of its samples."""


def claim_rows(kept: KeptSamples) -> list[Row]:
    """Return the rows that ask a model about each group of each benchmark."""
    return [
        {
            "id": f"{benchmark} {group}",
            "group": GROUPS[group].title,
            "rule": GROUPS[group].rule,
            "samples": "\n\n".join(map(_sample_text, rows)),
        }
        for (benchmark, group), rows in kept.items()
    ]


def _sample_text(row: SampleRow) -> str:
    transcript = render_transcript(Transcript(**row.for_worker))
    return f"### id: {row.row.get('id')}\n{shorten_middle(transcript, _CHARACTERS)}"


def with_claims(diagnosis: RunDiagnosis, kept: KeptSamples, replies: Mapping[str, str | None]) -> RunDiagnosis:
    """Return the diagnosis with the claims that hold, and how many were dropped for which reason."""
    benchmarks = []
    for benchmark in diagnosis.benchmarks:
        groups = []
        for share in benchmark.groups:
            rows = kept.get((benchmark.benchmark, share.group), ())
            claims, dropped = checked_claims(replies.get(f"{benchmark.benchmark} {share.group}"), rows)
            groups.append(replace(share, claims=tuple(claims), dropped=dict(dropped)))
        benchmarks.append(replace(benchmark, groups=tuple(groups)))
    return replace(diagnosis, benchmarks=tuple(benchmarks))


def checked_claims(reply: str | None, rows: Sequence[SampleRow]) -> tuple[list[Claim], Counter[str]]:
    """Return the claims of a reply that hold, and why others were dropped."""
    dropped: Counter[str] = Counter()
    if not reply:
        dropped["no reply"] += 1
        return [], dropped
    listed = (last_object(reply, "claims") or {}).get("claims")
    if not isinstance(listed, list):
        dropped["unreadable reply"] += 1
        return [], dropped
    transcripts: dict[str, list[Transcript]] = {}
    for row in rows:
        transcripts.setdefault(str(row.row.get("id")), []).append(Transcript(**row.for_worker))
    claims: list[Claim] = []
    for item in listed:
        claim, fault = _read_claim(item, transcripts)
        if claim is None or len(claims) >= _MOST_CLAIMS:
            dropped[fault or "too many claims"] += 1
        else:
            claims.append(claim)
    return claims, dropped


def _read_claim(item: Any, transcripts: Mapping[str, Sequence[Transcript]]) -> tuple[Claim | None, str]:
    """Return a claim, or why it does not hold."""
    if not isinstance(item, dict):
        return None, "unreadable claim"
    text, ids, quotes = as_text(item.get("text")).strip(), item.get("ids"), item.get("quotes")
    if not text or not isinstance(ids, list) or not isinstance(quotes, list):
        return None, "unreadable claim"
    names = [as_text(identity) for identity in ids]
    if not names:
        return None, "no id"
    if not all(name in transcripts for name in names):
        return None, "id does not exist"
    if not quotes:
        return None, "no quote"
    cited = [transcript for name in names for transcript in transcripts[name]]
    for quote in quotes:
        if not isinstance(quote, str) or not any(transcript.holds(quote) for transcript in cited):
            return None, "quote does not stand in its samples"
    return Claim(text=text[:_LONGEST_CLAIM], ids=tuple(names), quotes=tuple(quotes)), ""
