# SPDX-License-Identifier: Apache-2.0
"""A diagnosis as blocks of a page, and as text of 80 columns. Texts of models are escaped by whoever writes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from newskills.base.tables import WIDTH, table_lines, wrap_text
from newskills.base.terminal import counted, printable
from newskills.view.diagnosis.diagnose import (
    BenchmarkDiagnosis,
    FailureSample,
    FailureShare,
    GroupChange,
    RunDiagnosis,
)
from newskills.view.diagnosis.groups import GROUPS
from newskills.view.documents.document import Block, Fold, Heading, LinkList, Paragraph, Preformatted, Table

_TABLE_HEAD = ("group", "samples", "share %", "points", "examples")
_METHOD_TEXT = (
    "Each sample that is not fully correct is in one group: the first rule that holds. Points are what the group costs "
    "of the score, which is the mean over problems of the mean over their scored samples; they add up to the loss. "
    "Samples without a score cost no points. Suspected faults of the grader or of the expected answer are suspicions: "
    "read the samples. Put an address that begins with # behind the one that ns view prints."
)


def as_text(diagnosis: RunDiagnosis, changes: Sequence[GroupChange], other: str) -> str:
    """Return the tables of all benchmarks, what would change most, and the difference to another run."""
    lines = [line for benchmark in diagnosis.benchmarks for line in _benchmark_lines(benchmark)]
    if changes:
        head, *rows = _change_rows(changes)
        lines += [f"{diagnosis.run} → {other}", *table_lines(rows, head, WIDTH), ""]
    return printable("\n".join(lines))


def _benchmark_lines(benchmark: BenchmarkDiagnosis) -> Iterator[str]:
    yield from wrap_text(_benchmark_summary(benchmark), WIDTH, hanging="  ")
    if not benchmark.groups:
        yield "No sample failed."
    else:
        rows = [_share_row(share) for share in benchmark.groups]
        yield from table_lines(rows, _TABLE_HEAD, WIDTH)
        largest = benchmark.groups[0]
        yield from wrap_text(f"{largest.title}: {largest.change}", WIDTH, hanging="  ")
        for share in benchmark.groups:
            for claim in share.claims:
                yield from wrap_text(f"{share.title}: {claim.text} ({', '.join(claim.ids)})", WIDTH, hanging="  ")
        if dropped := sum(sum(share.dropped.values()) for share in benchmark.groups):
            yield f"{counted(dropped, 'claim')} of the model failed the check and are left out."
    yield ""


def _benchmark_summary(benchmark: BenchmarkDiagnosis) -> str:
    if benchmark.score is None:
        score = "no score"
    else:
        score = f"score {benchmark.score:.2f}, loss {benchmark.loss:.2f} points"
    failures = f"{benchmark.failures:,} of {counted(benchmark.samples, 'sample')} failed"
    if benchmark.unscored:
        failures += f", {benchmark.unscored:,} unscored"
    return f"{benchmark.benchmark}: {score}; {failures}"


def _share_row(share: FailureShare) -> tuple[str, ...]:
    number = share.share
    return (
        share.title,
        f"{share.samples:,}",
        f"{number.value:.1f} [{number.low:.1f}, {number.high:.1f}]",
        f"{share.points:.2f}",
        ", ".join(_sample_name(sample) for sample in share.examples),
    )


def _sample_name(sample: FailureSample) -> str:
    if sample.seed is None:
        return sample.id
    return f"{sample.id}/{sample.seed}"


def _change_rows(changes: Sequence[GroupChange]) -> list[tuple[str, ...]]:
    rows = [
        (
            change.benchmark,
            change.title,
            f"{change.samples[0]:,} → {change.samples[1]:,}",
            f"{change.points[0]:.2f} → {change.points[1]:.2f}",
            f"{change.change:+.2f}",
        )
        for change in changes
    ]
    return [("benchmark", "group", "samples", "points", "change"), *rows]


def diagnosis_blocks(
    diagnosis: RunDiagnosis, changes: Sequence[GroupChange], other: RunDiagnosis | None
) -> list[Block]:
    """Return the page: the difference first where there are two runs, then each benchmark with its groups."""
    page: list[Block] = [Paragraph(_METHOD_TEXT)]
    if other is not None:
        page.append(Heading(f"{diagnosis.run} → {other.run}"))
        if changes:
            page.append(Table(_change_rows(changes)))
        else:
            page.append(Paragraph("The runs have no failures in common benchmarks."))
    for side in (diagnosis, other):
        if side is None:
            continue
        for benchmark in side.benchmarks:
            page += _benchmark_blocks(side.run, benchmark)
        if side.notes:
            page += [Heading(f"Notes on {side.run}", 3), *map(Paragraph, side.notes)]
    return page


def _benchmark_blocks(run: str, benchmark: BenchmarkDiagnosis) -> Iterator[Block]:
    yield Heading(f"{benchmark.benchmark} · {run}")
    yield Paragraph(_benchmark_summary(benchmark))
    if not benchmark.groups:
        yield Paragraph("No sample failed.")
        return
    yield Table([_TABLE_HEAD, *map(_share_row, benchmark.groups)])
    links = [(share.title, _group_anchor(run, benchmark, share)) for share in benchmark.groups]
    yield LinkList("Groups", links)
    for share in benchmark.groups:
        yield from _group_blocks(share, _group_anchor(run, benchmark, share))


def _group_anchor(run: str, benchmark: BenchmarkDiagnosis, share: FailureShare) -> str:
    return f"{run} {benchmark.benchmark} {share.group}"


def _group_blocks(share: FailureShare, anchor: str) -> Iterator[Block]:
    yield Heading(f"{share.title[0].upper()}{share.title[1:]}", 3, anchor)
    reasons = ", ".join(f"{reason} {count:,}" for reason, count in share.reasons.items())
    summary = f"{counted(share.samples, 'sample')}, {share.points:.2f} points."
    if share.unscored:
        summary += f" {share.unscored:,} without a score."
    yield Paragraph(summary)
    yield Paragraph(f"Rule: {GROUPS[share.group].rule}. By reason: {reasons}.")
    yield Paragraph(f"What would change it: {share.change}")
    for claim in share.claims:
        yield Paragraph(f"Model: {claim.text} Samples: {', '.join(claim.ids)}.")
        yield Preformatted("\n".join(claim.quotes))
    if share.dropped:
        why = ", ".join(f"{reason} {count:,}" for reason, count in share.dropped.items())
        yield Paragraph(f"Claims of the model that were dropped: {why}.")
    for sample in share.examples:
        yield Fold(f"{_sample_name(sample)}: {sample.reason}", [Preformatted(_sample_text(sample))], level=4)


def _sample_text(sample: FailureSample) -> str:
    texts = (
        ("question", sample.question),
        ("expected", sample.expected),
        ("extracted", sample.extracted or "—"),
        ("quote", sample.quote),
        ("read it", sample.command),
        ("ns view", sample.viewer),
    )
    return "\n".join(f"{name}: {' '.join(text.split())}" for name, text in texts if text)
