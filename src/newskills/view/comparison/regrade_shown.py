# SPDX-License-Identifier: Apache-2.0
"""New verdicts as text of 80 columns."""

from __future__ import annotations

from collections.abc import Iterator

from newskills.base.records import Number
from newskills.base.terminal import counted, printable
from newskills.view.comparison.regrade import Regraded
from newskills.view.comparison.shown import align_columns, shorten_text, wrap_text

_MAX_ANSWER_CHARS = 16


def as_text(done: Regraded, flips: int) -> str:
    """Render a regraded run; `flips`: how many samples with another verdict are listed."""
    return printable("\n".join(_regrade_lines(done, flips))) + "\n"


def _regrade_lines(done: Regraded, flips: int) -> Iterator[str]:
    changed = f"{len(done.flips):,} of {counted(done.samples, 'verdict')} changed"
    yield from wrap_text(f"{done.benchmark}: {done.grader_before} → {done.grader_after}: {changed}", "")
    yield from align_columns(
        [
            ("", "score", "95 % interval", "problems", "unscored"),
            ("before", *_score_cells(done.before)),
            ("after", *_score_cells(done.after)),
        ]
    )
    if done.spread:
        values = [number.value for number in done.spread.values()]
        yield ""
        rows = [(name, *_score_cells(number)) for name, number in done.spread.items()]
        yield from align_columns([("extraction", "score", "95 % interval", "problems", "unscored"), *rows])
        yield from wrap_text(f"grader spread: {max(values) - min(values):.2f} points", "")
    for change, number in done.changes.items():
        yield f"  {number:>6,}  {change}"
    if done.flips and flips:
        yield ""
        head = ("sample", "seed", "before", "after", "extracted", "now")
        yield from align_columns(
            [
                head,
                *(
                    (
                        flip.id,
                        "—" if flip.seed is None else str(flip.seed),
                        flip.before,
                        flip.after,
                        _short_answer(flip.extracted_before),
                        _short_answer(flip.extracted_after),
                    )
                    for flip in done.flips[:flips]
                ),
            ]
        )
        if len(done.flips) > flips:
            yield f"and {len(done.flips) - flips:,} more (--flips N shows more, --json all)"


def _short_answer(text: str | None) -> str:
    if text is None:
        return "none"
    return shorten_text(printable(" ".join(text.split())), _MAX_ANSWER_CHARS)


def _score_cells(number: Number) -> tuple[str, str, str, str]:
    return (
        f"{number.value:.2f}",
        f"[{number.low:.2f}, {number.high:.2f}]",
        f"{number.n:,}",
        f"{number.unscored:,}",
    )
