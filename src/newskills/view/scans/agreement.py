# SPDX-License-Identifier: Apache-2.0
"""How a scanner agrees with labelled samples: precision and recall of each label, and Cohen's kappa."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from newskills.base.records import Number
from newskills.run.reporting.results import BenchmarkResults
from newskills.view.labels import LabelledSample, kappa_of, share_of
from newskills.view.scans.files import read_labels
from newskills.view.scans.finding import NO_FINDING


class LabelAgreement(Struct, frozen=True, kw_only=True):
    """One label against all others, in percent. None: nothing has the label on the side that is counted."""

    label: str
    precision: Number | None
    recall: Number | None


class ScanAgreement(Struct, frozen=True, kw_only=True):
    """A scanner and labelled samples: Cohen's kappa with its interval (bootstrap over problems), -1 to 1.

    n        samples with a label on both sides
    invalid  labelled samples of which the scanner has no valid result; they count as missed in recall
    missing  labelled samples that are not in the results
    kappa    None: there is no sample with both
    """

    scanner: str
    n: int
    invalid: int
    missing: int
    kappa: Number | None
    labels: tuple[LabelAgreement, ...]


def scan_agreements(
    labelled: Sequence[LabelledSample], items: Sequence[BenchmarkResults], scanners: Sequence[str]
) -> list[ScanAgreement]:
    """Return the agreement of each scanner with the samples that are labelled for it."""
    made = []
    for scanner in dict.fromkeys(scanners):
        wanted = [sample for sample in labelled if sample.scanner in (None, scanner)]
        if wanted:
            made.append(_scanner_agreement(scanner, wanted, items))
    return made


def _scanner_agreement(
    scanner: str, wanted: Sequence[LabelledSample], items: Sequence[BenchmarkResults]
) -> ScanAgreement:
    labels: dict[tuple[str, int | None, str, str], str | None] = {}
    for item in items:
        for output, seed in zip(item.files, item.seeds, strict=True):
            for line in read_labels(output, scanner):
                labels[item.benchmark, seed, line.id, item.run] = line.label
    by_id: dict[str, list[tuple[str, int | None, str, str]]] = {}
    for key in labels:
        by_id.setdefault(key[2], []).append(key)
    problems: dict[tuple[str, str], list[tuple[str, str | None]]] = {}
    missing = 0
    for sample in wanted:
        keys = [
            key
            for key in by_id.get(sample.id, [])
            if sample.benchmark in (None, key[0]) and sample.seed in (None, key[1])
        ]
        missing += not keys
        for key in keys:
            problems.setdefault((key[0], key[2]), []).append((sample.label, labels[key]))
    pairs = [pair for own in problems.values() for pair in own]
    both = [[(expected, label) for expected, label in own if label is not None] for own in problems.values()]
    n = sum(map(len, both))
    names = dict.fromkeys(expected for expected, _ in pairs) | dict.fromkeys(
        label for own in both for _, label in own
    )
    return ScanAgreement(
        scanner=scanner,
        n=n,
        invalid=len(pairs) - n,
        missing=missing,
        kappa=kappa_of([own for own in both if own]),
        labels=tuple(
            _label_agreement(name, pairs) for name in sorted(names, key=lambda name: (name == NO_FINDING, name))
        ),
    )


def _label_agreement(name: str, pairs: Sequence[tuple[str, str | None]]) -> LabelAgreement:
    hits = sum(pair == (name, name) for pair in pairs)
    return LabelAgreement(
        label=name,
        precision=share_of(hits, sum(label == name for _, label in pairs)),
        recall=share_of(hits, sum(expected == name for expected, _ in pairs)),
    )
