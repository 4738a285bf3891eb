# SPDX-License-Identifier: Apache-2.0
"""The report of `ns improve`: the curve, what each round cost and gained, the problems that changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from newskills.base.errors import DataError
from newskills.base.store import atomic_write
from newskills.recipes.improve.loop import Improvement
from newskills.recipes.improve.records import BASE, EVALUATIONS_FOLDER, ImproveSpec, RoundRecord, stage_seconds
from newskills.view.comparison import shown
from newskills.view.comparison.paired_runs import CompareOptions, compare_run_folders
from newskills.view.documents.charts import Series, line_chart
from newskills.view.documents.document import Block, Figure, Heading, Paragraph, Table, as_html, as_markdown
from newskills.view.documents.trainings import training_blocks

FLIPS = 10
"""Problems that changed, listed for each round and benchmark."""


def write_improvement_report(spec: ImproveSpec, improvement: Improvement) -> Path:
    """Write `report.html`, whose path is returned, and `report.md`. Raises DataError, StorageError."""
    title = f"{spec.model} on {spec.benchmark}: {len(improvement.kept)} of {len(improvement.rounds)} rounds kept"
    blocks = list(_report_blocks(spec, improvement))
    for name, text in (("report.md", as_markdown(title, blocks)), ("report.html", as_html(title, blocks))):
        with atomic_write(spec.output_dir / name) as file:
            file.write(text.encode())
    return spec.output_dir / "report.html"


def _report_blocks(spec: ImproveSpec, improvement: Improvement) -> Iterator[Block]:
    rounds = improvement.rounds
    yield Paragraph(f"It ended because {improvement.why}. The model is {improvement.model}.")
    yield Heading("Rounds")
    yield Table([ROUND_HEAD, *(_round_row(record) for record in rounds)])
    yield from _curve_blocks(rounds)
    yield Heading("Cost")
    yield Table([COST_HEAD, *_cost_rows(rounds, stage_seconds(spec.output_dir))])
    yield Heading("Why")
    for record in rounds:
        outcome = "kept" if record.kept else "not kept"
        yield Paragraph(f"{record.name}, {outcome}: {record.why}.")
    yield Paragraph(
        f"A round is kept where p is below the level of its test and no guard may have lost {spec.margin:g} points or "
        f"more against the initial model. The levels of all tests add up to {spec.keys.alpha:g}."
    )
    if spec.guards:
        yield Heading("Guards")
        yield Table([GUARD_HEAD, *_guard_rows(rounds)])
    for record in rounds:
        yield from _flip_blocks(spec, record)
    yield from training_blocks(spec.output_dir / "rounds")


ROUND_HEAD = ("round", "from", "mixture", "before", "after", "points", "95 % interval", "p", "level", "kept")
COST_HEAD = (
    "round",
    "problems",
    "replies",
    "correct, new and short enough",
    "examples",
    "tokens sampled",
    "tokens trained on",
    "seconds",
)
GUARD_HEAD = ("round", "guard", "points", "95 % interval", "problems", "passed")


def _round_row(record: RoundRecord) -> tuple[str, ...]:
    test, kept = record.test, "yes" if record.kept else "no"
    if test is None:
        return (record.name, record.begun_from, record.mixture, *["—"] * 6, kept)
    return (
        record.name,
        record.begun_from,
        record.mixture,
        f"{test.before:.1f} %",
        f"{test.after:.1f} %",
        f"{test.difference:+.1f}",
        f"[{test.low:.1f}, {test.high:.1f}]",
        f"{test.p_value:.2g}",
        f"{test.level:.2g}",
        kept,
    )


def _cost_rows(rounds: list[RoundRecord], seconds: Mapping[int, Mapping[str, float]]) -> Iterator[tuple[str, ...]]:
    for record in rounds:
        count, stages = record.examples, seconds.get(record.round, {})
        spent = ", ".join(f"{stage} {value:,.0f}" for stage, value in stages.items())
        yield (
            record.name,
            f"{count.problems:,}",
            f"{count.replies:,}",
            f"{count.examples - count.earlier:,}",
            f"{count.examples:,}",
            f"{record.tokens_sampled:,}",
            f"{record.tokens_trained:,}",
            f"{sum(stages.values()):,.0f} ({spent})" if stages else "—",
        )


def _guard_rows(rounds: list[RoundRecord]) -> Iterator[tuple[str, ...]]:
    for record in rounds:
        for guard in record.guards:
            yield (
                record.name,
                guard.benchmark,
                f"{guard.difference:+.1f}",
                f"[{guard.low:.1f}, {guard.high:.1f}]",
                f"{guard.problems:,}",
                "yes" if guard.passed else "no",
            )


def _curve_blocks(rounds: list[RoundRecord]) -> Iterator[Block]:
    """Yield the curve of every candidate, and of the model that was kept after each round."""
    tested = [(record, record.test) for record in rounds if record.test is not None]
    if not tested:
        return
    score = tested[0][1].before
    kept = [(0.0, score)]
    for record, test in tested:
        if record.kept:
            score = test.after
        kept.append((float(record.round), score))
    candidates = [(float(record.round), test.after) for record, test in tested]
    caption = ", ".join(f"{value:.1f} % after round {number:g}" for number, value in kept)
    series = [Series("kept model", kept), Series("candidate", candidates)]
    yield Figure(line_chart(series, "round", "percent correct"), f"The kept model: {caption}.")


def _flip_blocks(spec: ImproveSpec, record: RoundRecord) -> Iterator[Block]:
    """Yield blocks that compare the candidate with the model that it began from, on the held-out problems and the
    guards."""
    if record.test is None:
        return
    evaluations = spec.output_dir / EVALUATIONS_FOLDER
    yield Heading(f"{record.name} against {record.begun_from}")
    try:
        comparison = compare_run_folders(
            [evaluations / (record.begun_from or BASE), evaluations / record.name], CompareOptions()
        )
    except DataError as error:
        yield Paragraph(error.message)
        return
    yield from shown.comparison_blocks(comparison, FLIPS, level=3)
