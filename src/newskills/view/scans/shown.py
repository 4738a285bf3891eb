# SPDX-License-Identifier: Apache-2.0
"""What scanners said, as text of 80 columns. Quotes are texts of models: what a terminal would obey is escaped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from newskills.base.records import Number
from newskills.base.tables import WIDTH, table_lines, wrap_text
from newskills.base.terminal import counted, printable
from newskills.view.scans.agreement import ScanAgreement
from newskills.view.scans.finding import NO_FINDING
from newskills.view.scans.scanning import ScanResult

_MAX_QUOTE_CHARS = 50


def as_text(results: Sequence[ScanResult], agreement: Sequence[ScanAgreement], folder: str) -> str:
    """Return tables of what was reported, of how it agrees with labels, and the next command."""
    lines = list(_scan_lines(results, agreement))
    reported = [result for result in results if result.reported]
    if reported:
        first = reported[0]
        label = next(label for label in first.labels if label != NO_FINDING)
        if " " in label:
            where = f'{first.scanner} = "{label}"'
        else:
            where = f"{first.scanner} = {label}"
        shown = f"{folder.rstrip('/')}/{first.run}" if first.run else folder
        lines += ["", f"next: ns samples {shown} --where '{where}'"]
    return printable("\n".join(lines)) + "\n"


def _scan_lines(results: Sequence[ScanResult], agreement: Sequence[ScanAgreement]) -> Iterator[str]:
    for number, place in enumerate(dict.fromkeys(result.place for result in results)):
        if number:
            yield ""
        own = [result for result in results if result.place == place]
        yield f"{place} · {counted(own[0].samples, 'sample')}"
        rows = [row for result in own for row in _label_rows(result)]
        yield from table_lines(rows, ("scanner", "label", "samples", "share", "example"), WIDTH)
    invalid = [result for result in results if result.invalid]
    if invalid:
        yield ""
    for result in invalid:
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in result.invalid.items())
        yield from wrap_text(
            f"{result.scanner} of {result.place}: no valid result: {reasons}.", WIDTH, hanging="  "
        )
    for scanner_agreement in agreement:
        yield from _agreement_lines(scanner_agreement)


def _label_rows(result: ScanResult) -> Iterator[tuple[str, ...]]:
    labels = {label: count for label, count in result.labels.items() if label != NO_FINDING}
    for label, count in labels.items():
        example = next((example for example in result.examples if example.label == label), None)
        shown = f"{example.id}: {_short_quote(example.quote)}" if example else ""
        yield (result.scanner, label, f"{count:,}", f"{100 * count / result.samples:.1f} %", shown)
    if not labels:
        yield (result.scanner, NO_FINDING, "0", "0.0 %", "")


def _short_quote(quote: str) -> str:
    flat = " ".join(quote.split())
    if len(flat) <= _MAX_QUOTE_CHARS:
        return flat
    return f"{flat[: _MAX_QUOTE_CHARS - 1]}…"


def _agreement_lines(agreement: ScanAgreement) -> Iterator[str]:
    kappa = "no sample with both"
    if agreement.kappa is not None:
        kappa = _format_number(agreement.kappa, 2)
    yield ""
    left = [f"{agreement.invalid:,} without a valid result", f"{agreement.missing:,} not in the results"]
    yield from wrap_text(
        f"{agreement.scanner} and {counted(agreement.n, 'labelled sample')}: kappa {kappa}; {', '.join(left)}",
        WIDTH,
        hanging="  ",
    )
    rows = [
        (
            label.label,
            *("–" if number is None else _format_number(number, 1) for number in (label.precision, label.recall)),
        )
        for label in agreement.labels
    ]
    yield from table_lines(rows, ("label", "precision %", "recall %"), WIDTH)


def _format_number(number: Number, digits: int) -> str:
    return f"{number.value:.{digits}f} [{number.low:.{digits}f}, {number.high:.{digits}f}]"
