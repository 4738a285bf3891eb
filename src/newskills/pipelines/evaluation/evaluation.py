# SPDX-License-Identifier: Apache-2.0
"""What `newskills.evaluate` returns: scores, samples and a table of what was evaluated."""

from __future__ import annotations

from html import escape
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import asdict

from newskills.base.errors import UnknownNameError
from newskills.base.records import Cause, Number, Outcome, Report, Row
from newskills.pipelines.notices import print_note
from newskills.run.evaluate import EvaluationOutcome
from newskills.run.reporting.tables import NO_ANSWER, render_tables

if TYPE_CHECKING:
    from newskills.view.samples import SelectedSample


class Evaluation(EvaluationOutcome, kw_only=True):
    """An evaluation that has ended. `str()` of it is the table that `ns eval` prints.

    output_dir   folder with its results
    accept_lost  percent of samples that may be unscored before the table withholds scores
    """

    output_dir: Path
    accept_lost: float = 1.0

    @property
    def scores(self) -> dict[str, Number]:
        """The first score of each benchmark's table, with its interval: `evaluation.scores["gsm8k"].value`."""
        first = ((report.benchmark, _first_score(report)) for report in self.reports)
        return {benchmark: number for benchmark, number in first if number is not None}

    def __getitem__(self, benchmark: str) -> Report:
        """Return the report of a benchmark. Raises UnknownNameError."""
        reports = {report.benchmark: report for report in self.reports}
        if benchmark not in reports:
            raise UnknownNameError("benchmark of this evaluation", benchmark, reports)
        return reports[benchmark]

    def table(self, width: int | None = None) -> str:
        """Return the tables of all benchmarks as text; `width`: what is wider goes into further blocks."""
        return render_tables(self.reports, self.accept_lost / 100, width)

    def rows(self) -> list[Row]:
        """Return all scores as rows for a data frame: benchmark, mode, score, value, low, high, n, unscored, method."""
        return [
            {"benchmark": report.benchmark, "mode": mode, "score": score, **asdict(number)}
            for report in self.reports
            for mode, numbers in report.numbers.items()
            for score, number in numbers.items()
        ]

    def samples(
        self,
        benchmark: str | None = None,
        *,
        outcome: Outcome | None = None,
        cause: Cause | None = None,
        seed: int | None = None,
        search: str | None = None,
        number: int | None = None,
    ) -> list[SelectedSample]:
        """Return the samples that fit, `number` at most, each with its record: what was asked, answered and graded.
        Lines that cannot be read are told of on standard error.

        Raises UnknownNameError for a benchmark that was not evaluated, DataError where its files are gone.
        """
        from newskills.view.samples import SampleFilter, iter_samples

        if benchmark is None:
            names = tuple(report.benchmark for report in self.reports)
        else:
            names = (benchmark,)
        selection = SampleFilter(benchmarks=names, outcome=outcome, cause=cause, seed=seed, search=search)
        notes: list[str] = []
        samples = list(islice(iter_samples(self.output_dir, selection, notes), number))
        for note in notes:
            print_note(note)
        return samples

    def __str__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        """Return a table for notebooks: one line for each score."""
        head = "<tr><th>benchmark</th><th>mode</th><th>score</th><th>value</th><th>95% interval</th></tr>"
        lines = (
            f"<tr><td>{escape(row['benchmark'])}</td><td>{escape(row['mode'])}</td><td>{escape(row['score'])}</td>"
            f"<td>{row['value']:.2f}</td><td>[{row['low']:.2f}, {row['high']:.2f}]</td></tr>"
            for row in self.rows()
        )
        return f"<table>{head}{''.join(lines)}</table>"


def _first_score(report: Report) -> Number | None:
    """Return the number in the first cell of the report's table that holds a score; None where none does."""
    for mode in (*report.shown, *report.modes):
        numbers = report.numbers.get(mode, {})
        for name in (*report.columns, *numbers):
            if name in numbers and name != NO_ANSWER:
                return numbers[name]
    return None
